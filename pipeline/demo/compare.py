"""Measured beside truth: is every number of every source exactly right?"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.demo.sources import Counts
from pipeline.demo.verdicts import VERDICTS, Difference, Sessions, differences, facts_of_account, tally
from pipeline.simulation.hard.scene import Where
from pipeline.simulation.ledger import Account
from pipeline.simulation.world import World


@dataclass(frozen=True, slots=True)
class Row:
    """One rate of one family; the family of the whole system is ''."""

    family: str
    rate: str
    truth: tuple[int, int]
    measured: dict[str, tuple[int, int]]

    @property
    def exact(self) -> bool:
        return bool(self.measured) and all(counts == self.truth for counts in self.measured.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every rate, by every source; and of a world that tells it, every session, by every source that lists them.

    Args:
        differences: source -> what it has otherwise.
    """

    rows: list[Row]
    differences: Mapping[str, Sequence[Difference]] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        return bool(self.rows) and all(row.exact for row in self.rows) and not any(self.differences.values())

    @property
    def wrong(self) -> list[Row]:
        return [row for row in self.rows if not row.exact]


def compare(truth: Mapping[tuple[str, str], tuple[int, int]], measured: Mapping[str, Counts]) -> Comparison:
    """Rows of all that is in the truth or in any source; what a source does not tell is (0, 0) there.

    Args:
        measured: source -> what it says.
    """
    places = [*truth, *sorted({place for counts in measured.values() for place in counts} - truth.keys())]
    return Comparison(
        [
            Row(
                *place,
                truth.get(place, (0, 0)),
                {source: counts.get(place, (0, 0)) for source, counts in measured.items()},
            )
            for place in places
        ]
    )


def with_sessions(rates: Comparison, truth: Mapping[Where, Account], seen: Mapping[str, Sessions]) -> Comparison:
    """The same with each session beside its truth, and what the verdicts tell that no rate does.

    Args:
        seen: source -> the sessions that it has; of `VERDICTS` all facts.
    """
    told = compare(tally(map(facts_of_account, truth.values())), {VERDICTS: tally(seen.get(VERDICTS, {}).values())})
    found = {source: differences(truth, sessions) for source, sessions in seen.items()}
    return Comparison([*rates.rows, *told.rows], found)


def write_summary(file: Path, world: World, comparison: Comparison, seconds: Mapping[str, float], kills: int) -> None:
    """`summary.json`: of a rate that two sources see differently, the one that is wrong is written."""
    rows, system = [], []
    for row in comparison.rows:
        seen = next((counts for counts in row.measured.values() if counts != row.truth), row.truth)
        if not row.measured:
            seen = (0, 0)
        numbers = {
            "numerator": seen[0],
            "denominator": seen[1],
            "true_numerator": row.truth[0],
            "true_denominator": row.truth[1],
        }
        if row.family:
            rows.append({"family": row.family, "rate": row.rate, **numbers})
        else:
            system.append({"rate": row.rate, **numbers})
    summary: dict[str, object] = {
        "exact": comparison.exact,
        "seed": world.seed,
        "sessions": world.sessions,
        "late": world.faults.late,
        "duplicates": world.faults.duplicates,
        "reordered": world.faults.reordered,
        "rows": rows,
        "system": system,
        "sources": sorted({source for row in comparison.rows for source in row.measured}),
        "kills": kills,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }
    if world.kinds:
        summary["kinds"] = dict(world.kinds)
        summary["differences"] = {
            source: [str(one) for one in found] for source, found in comparison.differences.items()
        }
    write_json(file, summary)


def write_json(file: Path, value: object) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".tmp")
    draft.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(draft, file)
