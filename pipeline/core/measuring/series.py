"""Counts of one rate of one stratum over its buckets, summed once, so that any range of time costs two look-ups."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from schemas.segment import Cell


class Series:
    """Running sums over buckets in order of time.

    Args:
        cells: (bucket start in ns, cell), in any order, each bucket once.
    """

    __slots__ = ("_events", "_good", "_n", "_starts")

    def __init__(self, cells: Iterable[tuple[int, Cell]]) -> None:
        ordered = sorted(cells, key=lambda one: one[0])
        self._starts = [bucket for bucket, _ in ordered]
        self._n = [0, *accumulate(cell.n for _, cell in ordered)]
        self._good = [0, *accumulate(cell.good for _, cell in ordered)]
        ages = max((len(cell.events) for _, cell in ordered), default=0)
        self._events = [
            [0, *accumulate(cell.events[age] if age < len(cell.events) else 0 for _, cell in ordered)]
            for age in range(ages)
        ]

    def counts(self, start: int, end: int) -> tuple[int, int]:
        """(denominator, numerator) of the buckets that begin in [start, end)."""
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return self._n[high] - self._n[low], self._good[high] - self._good[low]

    def at_age(self, age: int, start: int, end: int) -> tuple[int, int]:
        """(at risk, events) of age bucket `age`, of the cohorts that begin in [start, end)."""
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        risk = self._n[high] - self._n[low]
        for earlier in self._events[:age]:
            risk -= earlier[high] - earlier[low]
        events = self._events[age] if age < len(self._events) else None
        return risk, events[high] - events[low] if events is not None else 0
