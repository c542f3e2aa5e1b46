"""Means of a window and its sessions by state, stage and criterion, from the partials of its buckets.

The rule this file keeps: whole numbers are added, so that the same sessions give the same mean in any order; a mean
says of how many sessions it is, and of none there is none. Sums run over a segment's buckets once, so that any range of
time costs two look-ups, and only where something is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from pipeline.core.contracts.book import ContractBook
from schemas.segment import MICRO, CountReading, Dimensions, MeanReading, Measure, Partial, Rate

Segment = tuple[str, Dimensions]
Name = tuple[str, str]
"""What is counted, and which of them: `sessions` and `sum` of a measure, `state`, `stage`, `criterion`, `judged`."""
COUNTS = ("state", "stage", "criterion")


def tally(partials: Iterable[Partial]) -> Counter[Name]:
    """One bucket of a segment: the partials of all its owners together."""
    found: Counter[Name] = Counter()
    for partial in partials:
        for measure, n, total in partial.means:
            found["sessions", measure] += n
            found["sum", measure] += total
        for state, n in partial.states.items():
            found["state", state] += n
        for failure, n in partial.failures.items():
            what, _, name = failure.partition("/")
            found[what, name] += n
        for cell in partial.cells:
            if cell.rate == Rate.COMPLETION and cell.stratum:
                found["judged", cell.stratum] += cell.n
    return found


class Tallies:
    """Running sums of a segment.

    Args:
        buckets: (start in ns, its tally), in any order, each bucket once.
    """

    __slots__ = ("_sums",)

    def __init__(self, buckets: Iterable[tuple[int, Mapping[Name, int]]]) -> None:
        self._sums: dict[Name, tuple[list[int], list[int]]] = {}
        for start, counts in sorted(buckets, key=lambda one: one[0]):
            for name, n in counts.items():
                if n:
                    starts, sums = self._sums.setdefault(name, ([], [0]))
                    starts.append(start)
                    sums.append(sums[-1] + n)

    def between(self, start: int, end: int) -> dict[Name, int]:
        """What is counted in the buckets that begin in [start, end); no zeros."""
        found = {}
        for name, (starts, sums) in self._sums.items():
            n = sums[bisect_left(starts, end)] - sums[bisect_left(starts, start)]
            if n:
                found[name] = n
        return found


class KeptTallies:
    """The running sums of segments, made anew where a bucket has changed."""

    def __init__(self) -> None:
        self._buckets: dict[bytes, Counter[Name]] = {}
        self._segments: dict[Segment, Tallies] = {}

    def out_of_date(self, key: bytes, segment: Segment) -> None:
        """The bucket of this key has changed."""
        self._buckets.pop(key, None)
        self._segments.pop(segment, None)

    def of(
        self, segment: Segment, keys: Mapping[int, bytes], partials: Callable[[bytes], Iterable[Partial]]
    ) -> Tallies:
        """
        Args:
            keys: start of each bucket -> its key; partials: of a bucket, one of each owner.
        """
        tallies = self._segments.get(segment)
        if tallies is None:
            for key in keys.values():
                if key not in self._buckets:
                    self._buckets[key] = tally(partials(key))
            tallies = Tallies((start, self._buckets[key]) for start, key in keys.items())
            self._segments[segment] = tallies
        return tallies


def means_of(
    cube: str, dimensions: Dimensions, window: str, counted: Mapping[Name, int], book: ContractBook, as_of: int
) -> list[MeanReading]:
    """The means of a segment in a window, over the sessions that have each measure."""
    contracts = {name: n for (what, name), n in sorted(counted.items()) if what == "judged"}
    found = []
    for name in map(str, Measure):
        n = counted.get(("sessions", name), 0)
        if n:
            mean = counted.get(("sum", name), 0) / MICRO / n
            found.append(MeanReading(cube, dimensions, name, window, mean, n, _target(book, contracts, name), as_of))
    return found


def counts_of(
    cube: str, dimensions: Dimensions, window: str, counted: Mapping[Name, int], as_of: int
) -> list[CountReading]:
    """Sessions of a segment in a window by state, by the stage in which they failed, and by criterion."""
    return [
        CountReading(cube, dimensions, what, name, window, n, as_of)
        for (what, name), n in sorted(counted.items())
        if what in COUNTS
    ]


def _target(book: ContractBook, contracts: Mapping[str, int], measure: str) -> float | None:
    """The targets of the contracts that judged them, by their sessions; None where one of them names none."""
    known = [(contract.targets.get(measure), n) for name, n in contracts.items() if (contract := book.named(name))]
    if not known or len(known) != len(contracts) or any(value is None for value, _ in known):
        return None
    return sum(value * n for value, n in known if value is not None) / sum(n for _, n in known)
