"""Stage 5 for one partition: the latest partial of every (segment, bucket, owner), their sums, and what is published.

A partial is absolute, so that hearing it twice changes nothing; of two the higher version holds. When a worker died and
another took its partition over, a reset voids whatever the dead one sent last and the new one did not send again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.effects import Changed, Outbox, Result, Versions
from pipeline.core.measuring.buckets import BucketState, metric_row
from pipeline.core.measuring.readings import read_segment, sum_cells
from pipeline.core.measuring.series import Series
from pipeline.core.measuring.summaries import KeptTallies, Tallies, counts_of, means_of
from pipeline.core.timeline import SECOND, TimeRules
from pipeline.core.windows import forgotten_before, window_bounds
from schemas.segment import (
    WINDOWS,
    Cell,
    CountReading,
    Dimensions,
    MeanReading,
    Partial,
    PartialReset,
    Rate,
    RateReading,
)
from schemas.topics import Topic

_encode = msgspec.msgpack.Encoder().encode
BUCKET, RESET = b"b", b"r"
Segment = tuple[str, Dimensions]


_decode_bucket = msgspec.msgpack.Decoder(BucketState).decode
_decode_reset = msgspec.msgpack.Decoder(tuple[int, int]).decode


class MeasureStep:
    """One partition of stage 5."""

    def __init__(self, partition: int, book: ContractBook, rules: TimeRules) -> None:
        self.partition, self.book, self.rules = partition, book, rules
        self.outbox, self.versions = Outbox(), Versions()
        self.watermark = 0
        self._states: dict[bytes, BucketState] = {}
        self._segments: dict[Segment, dict[int, bytes]] = {}
        self._sums: dict[bytes, dict[tuple[str, str], Cell]] = {}
        self._series: dict[Segment, dict[tuple[str, str], Series]] = {}
        self._tallies = KeptTallies()
        self._resets: dict[int, int] = {}
        self._unpublished: set[bytes] = set()
        self._rows_due: set[bytes] = set()
        self._sent: dict[tuple[bytes, Rate], tuple[int, int, int, int, bool]] = {}  # by this worker
        self._dirty: set[bytes] = set()
        self._gone: list[bytes] = []
        self._begins = 0  # buckets that begin before are forgotten, ns
        self._replaying = False
        self.heard: set[int] = set()  # when outcomes were written that the gauges have since taken up, ns

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        if key[:1] == RESET:
            owner, version = _decode_reset(state)
            self._resets[owner] = version
            return
        one = _decode_bucket(state)
        self._forget(key)
        self._states[key] = one
        self._segments.setdefault((one.cube, one.dimensions), {})[one.bucket] = key
        self._out_of_date(key, (one.cube, one.dimensions))
        if one.first is None:
            self._unpublished.add(key)

    def unload(self, key: bytes) -> None:
        """A follower heard that the key is gone."""
        self._forget(key)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self._forget_buckets()
        self._replaying = True

    def caught_up(self) -> None:
        self._replaying = False

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[Partial | PartialReset]) -> None:
        for record in records:
            if isinstance(record, PartialReset):
                self._reset(record)
            elif record.bucket < self._begins:
                self.outbox.count(Result.DROPPED, "sealed_partial")
            elif record.version > self._resets.get(record.owner, 0):
                self._take(record)
            else:
                self.outbox.count(Result.DROPPED, "void_partial")

    def _take(self, partial: Partial) -> None:
        key = BUCKET + _encode((partial.cube, partial.dimensions, partial.bucket))
        state = self._states.get(key)
        if state is None:
            late = self._is_published(partial.bucket)
            state = BucketState(partial.cube, partial.dimensions, partial.bucket, {}, {} if late else None)
            self._states[key] = state
            self._segments.setdefault((partial.cube, partial.dimensions), {})[partial.bucket] = key
            if not late:
                self._unpublished.add(key)
        known = state.owners.get(partial.owner)
        if known is not None and known.version >= partial.version:
            self.outbox.count(Result.DROPPED, "superseded_partial")
            return
        if partial.outcome_at and not self._replaying:
            self.heard.add(partial.outcome_at)
        state.owners[partial.owner] = msgspec.structs.replace(partial, outcome_at=0)
        self.outbox.count(Result.USED, "partial")
        self._changed(key)

    def _reset(self, reset: PartialReset) -> None:
        if reset.version <= self._resets.get(reset.owner, 0):
            return
        self._resets[reset.owner] = reset.version
        self._dirty.add(RESET + _encode(reset.owner))
        for key, state in self._states.items():
            partial = state.owners.get(reset.owner)
            if partial is not None and partial.version < reset.version:
                del state.owners[reset.owner]
                self.outbox.count(Result.NOTED, "voided_partial")
                self._changed(key)

    def _changed(self, key: bytes) -> None:
        state = self._states[key]
        self._out_of_date(key, (state.cube, state.dimensions))
        self._dirty.add(key)
        self._rows_due.add(key)

    def _cells(self, key: bytes) -> dict[tuple[str, str], Cell]:
        cells = self._sums.get(key)
        if cells is None:
            owners = self._states[key].owners
            cells = self._sums[key] = sum_cells(owners[owner].cells for owner in sorted(owners))
        return cells

    def _totals(self, key: bytes) -> dict[str, tuple[int, int]]:
        """rate -> (numerator, denominator) of a bucket."""
        found: dict[str, tuple[int, int]] = {}
        for (rate, _), cell in self._cells(key).items():
            good, n = found.get(rate, (0, 0))
            found[rate] = (good + cell.good, n + cell.n)
        return found

    # -- time ----------------------------------------------------------------------------------------------------------

    def _is_published(self, bucket: int) -> bool:
        """Whether the watermark is past the moment at which the bucket counts as first published (DESIGN.md 6)."""
        quiet = max(self.rules.session_gap, self.rules.resume_window)
        return self.watermark > bucket + self.rules.bucket + quiet + self.rules.lateness

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        for key in [key for key in self._unpublished if self._is_published(self._states[key].bucket)]:
            self._unpublished.discard(key)
            self._states[key].first = self._totals(key)
            self._changed(key)
        self._forget_buckets()

    def _forget_buckets(self) -> None:
        before = forgotten_before(self.watermark, self.rules, self.book.longest_horizon(self.rules.reopen_window))
        if before > self._begins:
            self._begins = before
            for key in [key for key, state in self._states.items() if state.bucket < before]:
                self._forget(key)
                self._gone.append(key)

    def passes_on(self, watermark: int) -> int:
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Rows of `segment_metrics` for the buckets that changed."""
        for key in sorted(self._rows_due):
            state = self._states[key]
            totals, first = self._totals(key), state.first or {}
            # Every rate, also where nothing counts: what was counted before may have moved to another bucket.
            for rate in Rate:
                good, n = totals.get(rate, (0, 0))
                first_good, first_n = first.get(rate, (0, 0))
                counts = (good, n, first_good, first_n, state.first is None)
                if self._sent.get((key, rate)) == counts:
                    continue
                self._sent[key, rate] = counts
                published = (first_good, first_n) if state.first is not None else None
                row = metric_row(state, rate, (good, n), published, self.versions.next(), self.watermark)
                self.outbox.send(Topic.ROWS, self.partition, row)
        self._rows_due = set()

    def changed(self) -> Changed:
        states = []
        for key in self._dirty:
            if key[:1] == RESET:
                owner = msgspec.msgpack.decode(key[1:], type=int)
                states.append((key, _encode((owner, self._resets[owner]))))
            elif key in self._states:
                states.append((key, _encode(self._states[key])))
        gone, self._gone = self._gone, []
        self._dirty = set()
        return Changed(states, gone)

    def _forget(self, key: bytes) -> None:
        state = self._states.pop(key, None)
        if state is not None:
            segment = state.cube, state.dimensions
            buckets = self._segments[segment]
            del buckets[state.bucket]
            if not buckets:
                del self._segments[segment]
            self._unpublished.discard(key)
            self._rows_due.discard(key)
            for rate in Rate:
                self._sent.pop((key, rate), None)
            self._out_of_date(key, segment)

    def _out_of_date(self, key: bytes, segment: Segment) -> None:
        """Sums that a bucket is in are made anew when they are asked for."""
        self._sums.pop(key, None)
        self._series.pop(segment, None)
        self._tallies.out_of_date(key, segment)

    def _series_of(self, segment: Segment) -> dict[tuple[str, str], Series]:
        series = self._series.get(segment)
        if series is None:
            cells: dict[tuple[str, str], list[tuple[int, Cell]]] = {}
            for bucket, key in self._segments[segment].items():
                for name, cell in self._cells(key).items():
                    cells.setdefault(name, []).append((bucket, cell))
            series = self._series[segment] = {name: Series(found) for name, found in cells.items()}
        return series

    # -- what is published ---------------------------------------------------------------------------------------------

    def readings(self, watermark: int | None = None) -> list[RateReading]:
        """Every rate of every segment that this partition holds."""
        windows = {name: seconds * SECOND for name, seconds in WINDOWS.items()}
        found: list[RateReading] = []
        for cube, dimensions in sorted(self._segments):
            found += read_segment(
                cube,
                dimensions,
                self._series_of((cube, dimensions)),
                windows,
                self.book,
                self.rules,
                self.watermark if watermark is None else watermark,
            )
        return found

    def summaries(self, watermark: int | None = None) -> tuple[list[MeanReading], list[CountReading]]:
        """Means, and sessions by state, stage and criterion, of every segment that this partition holds."""
        now = self.watermark if watermark is None else watermark
        means: list[MeanReading] = []
        counts: list[CountReading] = []
        for cube, dimensions in sorted(self._segments):
            tallies = self._tallies_of((cube, dimensions))
            for window, seconds in WINDOWS.items():
                counted = tallies.between(*window_bounds(now, seconds * SECOND, self.rules))
                means += means_of(cube, dimensions, window, counted, self.book, now)
                counts += counts_of(cube, dimensions, window, counted, now)
        return means, counts

    def states(self, start: int, end: int) -> dict[Segment, dict[str, int]]:
        """Sessions by state, per segment, in the buckets of [start, end) ns."""
        return {
            segment: {
                name: n for (what, name), n in self._tallies_of(segment).between(start, end).items() if what == "state"
            }
            for segment in self._segments
        }

    def _tallies_of(self, segment: Segment) -> Tallies:
        return self._tallies.of(segment, self._segments[segment], lambda key: self._states[key].owners.values())
