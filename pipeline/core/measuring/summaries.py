"""Means of a window and its sessions by state, stage and criterion, from the partials of its buckets.

The rule this file keeps: whole numbers are added, so that the same sessions give the same mean in any order; a mean
says of how many sessions it is, and of none there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pipeline.core.contracts.book import ContractBook
from schemas.segment import MICRO, CountReading, Dimensions, MeanReading, Measure, Partial


def means_of(
    cube: str, dimensions: Dimensions, window: str, partials: Sequence[Partial], book: ContractBook, as_of: int
) -> list[MeanReading]:
    """The means of a segment in a window, over the sessions that have each measure."""
    sums: dict[str, list[int]] = {}
    for partial in partials:
        for measure, n, total in partial.means:
            known = sums.setdefault(measure, [0, 0])
            known[0] += n
            known[1] += total
    contracts = _weights(partials)
    return [
        MeanReading(cube, dimensions, name, window, total / MICRO / n, n, _target(book, contracts, name), as_of)
        for name in map(str, Measure)
        for n, total in [sums.get(name, [0, 0])]
        if n
    ]


def counts_of(
    cube: str, dimensions: Dimensions, window: str, partials: Sequence[Partial], as_of: int
) -> list[CountReading]:
    """Sessions of a segment in a window by state, by the stage in which they failed, and by criterion."""
    found = [
        CountReading(cube, dimensions, "state", name, window, n, as_of) for name, n in by_state(partials).items() if n
    ]
    failures: Counter[str] = Counter()
    for partial in partials:
        failures.update(partial.failures)
    for key, n in sorted(failures.items()):
        what, _, name = key.partition("/")
        if n:
            found.append(CountReading(cube, dimensions, what, name, window, n, as_of))
    return found


def by_state(partials: Iterable[Partial]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for partial in partials:
        for name, n in partial.states.items():
            sums[name] = sums.get(name, 0) + n
    return dict(sorted(sums.items()))


def _weights(partials: Sequence[Partial]) -> dict[str, int]:
    """Contract -> its eligible sessions."""
    found: Counter[str] = Counter()
    for partial in partials:
        for cell in partial.cells:
            if cell.rate == "completion" and cell.stratum:
                found[cell.stratum] += cell.n
    return {name: n for name, n in sorted(found.items()) if n}


def _target(book: ContractBook, contracts: dict[str, int], measure: str) -> float | None:
    """The targets of the contracts that judged them, by their sessions; None where one of them names none."""
    known = [(contract.targets.get(measure), n) for name, n in contracts.items() if (contract := book.named(name))]
    if not known or len(known) != len(contracts) or any(value is None for value, _ in known):
        return None
    return sum(value * n for value, n in known if value is not None) / sum(n for _, n in known)
