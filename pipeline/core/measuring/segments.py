"""The buckets of stage 5 by segment, and sums over them, which are made anew where a bucket has changed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pipeline.core.measuring.buckets import BucketState, Counts
from pipeline.core.measuring.readings import sum_cells
from pipeline.core.measuring.series import Series
from pipeline.core.measuring.summaries import KeptTallies, Tallies
from schemas.segment import Cell, Dimensions

Segment = tuple[str, Dimensions]
BUCKET = b"b"
"""Before the key of a bucket's state."""

_encode = msgspec.msgpack.Encoder().encode


def key_of(segment: Segment, bucket: int) -> bytes:
    """Of the state of a bucket that begins there."""
    return BUCKET + _encode((*segment, bucket))


class Segments:
    """Every bucket of every segment of one partition."""

    def __init__(self) -> None:
        self.states: dict[bytes, BucketState] = {}
        self._segments: dict[Segment, dict[int, bytes]] = {}
        self._sums: dict[bytes, dict[tuple[str, str], Cell]] = {}
        self._series: dict[Segment, dict[tuple[str, str], Series]] = {}
        self._tallies = KeptTallies()

    def __iter__(self) -> Iterator[Segment]:
        yield from sorted(self._segments)

    def at(self, segment: Segment, bucket: int) -> BucketState | None:
        """The bucket that begins there."""
        key = self._segments.get(segment, {}).get(bucket)
        return self.states[key] if key is not None else None

    def put(self, key: bytes, state: BucketState) -> None:
        """Keep a bucket; one that was there under this key is replaced."""
        segment = state.cube, state.dimensions
        self.states[key] = state
        self._segments.setdefault(segment, {})[state.bucket] = key
        self.changed(key)

    def changed(self, key: bytes) -> None:
        """Sums that the bucket is in are made anew when they are asked for."""
        state = self.states[key]
        segment = state.cube, state.dimensions
        self._sums.pop(key, None)
        self._series.pop(segment, None)
        self._tallies.out_of_date(key, segment)

    def forget(self, key: bytes) -> None:
        """Forget a bucket, if it is there."""
        if key in self.states:
            self.changed(key)
            state = self.states.pop(key)
            segment = state.cube, state.dimensions
            buckets = self._segments[segment]
            del buckets[state.bucket]
            if not buckets:
                del self._segments[segment]

    # -- sums ----------------------------------------------------------------------------------------------------------

    def totals(self, key: bytes) -> Counts:
        """What a bucket counts now."""
        found: Counts = {}
        for (rate, _), cell in self._cells(key).items():
            good, n = found.get(rate, (0, 0))
            found[rate] = (good + cell.good, n + cell.n)
        return found

    def series_of(self, segment: Segment) -> dict[tuple[str, str], Series]:
        """(rate, stratum) -> its counts over time."""
        series = self._series.get(segment)
        if series is None:
            cells: dict[tuple[str, str], list[tuple[int, Cell]]] = {}
            for bucket, key in self._segments[segment].items():
                for name, cell in self._cells(key).items():
                    cells.setdefault(name, []).append((bucket, cell))
            series = self._series[segment] = {name: Series(found) for name, found in cells.items()}
        return series

    def tallies_of(self, segment: Segment) -> Tallies:
        """Means, and sessions by state, stage and criterion, over time."""
        return self._tallies.of(segment, self._segments[segment], lambda key: self.states[key].partials())

    def _cells(self, key: bytes) -> dict[tuple[str, str], Cell]:
        cells = self._sums.get(key)
        if cells is None:
            cells = self._sums[key] = sum_cells(one.cells for one in self.states[key].partials())
        return cells
