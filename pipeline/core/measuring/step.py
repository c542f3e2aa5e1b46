"""Stage 5 for one partition: the latest partial of every (segment, bucket, owner), their sums, and what is published.

A partial is absolute, so that hearing it twice changes nothing; of two the higher version holds. When a worker died and
another took its partition over, a reset voids whatever the dead one sent last and the new one did not send again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.effects import Changed, Outbox, Result, Versions
from pipeline.core.measuring.buckets import BucketState, folded, metric_row
from pipeline.core.measuring.readings import read_segment
from pipeline.core.measuring.segments import Segment, Segments, key_of
from pipeline.core.measuring.summaries import counts_of, means_of
from pipeline.core.timeline import SECOND, TimeRules
from pipeline.core.windows import forgotten_before, hour_of, window_bounds
from schemas.segment import (
    WINDOWS,
    CountReading,
    MeanReading,
    Partial,
    PartialReset,
    Rate,
    RateReading,
)
from schemas.topics import Topic

RESET = b"r"
"""Before the key of what voids an owner's partials."""

_encode = msgspec.msgpack.Encoder().encode
_decode_bucket = msgspec.msgpack.Decoder(BucketState).decode
_decode_reset = msgspec.msgpack.Decoder(tuple[int, int]).decode


class MeasureStep:
    """One partition of stage 5."""

    def __init__(self, partition: int, book: ContractBook, rules: TimeRules) -> None:
        self.partition, self.book, self.rules = partition, book, rules
        self.outbox, self.versions = Outbox(), Versions()
        self.watermark = 0
        self._segments = Segments()
        self._resets: dict[int, int] = {}
        self._unpublished: set[bytes] = set()
        self._rows_due: set[bytes] = set()
        self._sent: dict[tuple[bytes, Rate], tuple[int, int, int, int, bool]] = {}  # by this worker
        self._folded_away: list[BucketState] = []  # the store still has their rows
        self._dirty: set[bytes] = set()
        self._gone: set[bytes] = set()
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
        self.unload(key)
        self._segments.put(key, one)
        if one.first is None:
            self._unpublished.add(key)

    def unload(self, key: bytes) -> None:
        """Forget a bucket; what its owner has forgotten, a follower does."""
        self._segments.forget(key)
        self._unpublished.discard(key)
        self._rows_due.discard(key)
        for rate in Rate:
            self._sent.pop((key, rate), None)

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
        state = self._state_for(partial)
        if not state.take(msgspec.structs.replace(partial, outcome_at=0)):
            self.outbox.count(Result.DROPPED, "superseded_partial")
            return
        if partial.outcome_at and not self._replaying:
            self.heard.add(partial.outcome_at)
        self.outbox.count(Result.USED, "partial")
        self._changed(key_of((state.cube, state.dimensions), state.bucket))

    def _state_for(self, partial: Partial) -> BucketState:
        """The bucket that a partial is about: its own, or its hour where any partition has folded that."""
        segment = partial.cube, partial.dimensions
        hour = hour_of(partial.bucket, self.rules)
        at_hour = self._segments.at(segment, hour)
        if partial.width > self.rules.bucket:
            return at_hour if at_hour is not None and at_hour.width == partial.width else self._fold(segment, partial)
        if at_hour is not None and at_hour.width > self.rules.bucket:
            return at_hour
        own = self._segments.at(segment, partial.bucket)
        return own if own is not None else self._begin(segment, partial.bucket, partial.width)

    def _begin(self, segment: Segment, bucket: int, width: int) -> BucketState:
        """A bucket of which nothing is known; one that comes late counted nothing when it was published."""
        state = BucketState(*segment, bucket, width, {}, {} if self._is_published(bucket + width) else None)
        return self._keep(state)

    def _keep(self, state: BucketState) -> BucketState:
        key = key_of((state.cube, state.dimensions), state.bucket)
        self._segments.put(key, state)
        self._gone.discard(key)
        if state.first is None:
            self._unpublished.add(key)
        return state

    def _fold(self, segment: Segment, partial: Partial) -> BucketState:
        """The first partition of stage 4 has folded an hour: its buckets become one, with what all others sent."""
        starts = range(partial.bucket, partial.bucket + partial.width, self.rules.bucket)
        parts = [state for start in starts if (state := self._segments.at(segment, start)) is not None]
        if not parts:
            return self._begin(segment, partial.bucket, partial.width)
        counted = {part.bucket: self._segments.totals(key_of(segment, part.bucket)) for part in parts}
        for part in parts:
            key = key_of(segment, part.bucket)
            self.unload(key)
            if part.bucket != partial.bucket:
                self._gone.add(key)
                self._folded_away.append(part)
        state = self._keep(folded(parts, BucketState(*segment, partial.bucket, partial.width), counted))
        self._changed(key_of(segment, state.bucket))
        return state

    def _reset(self, reset: PartialReset) -> None:
        if reset.version <= self._resets.get(reset.owner, 0):
            return
        self._resets[reset.owner] = reset.version
        self._dirty.add(RESET + _encode(reset.owner))
        for key, state in self._segments.states.items():
            if voided := state.void(reset.owner, reset.version):
                self.outbox.count(Result.NOTED, "voided_partial", voided)
                self._changed(key)

    def _changed(self, key: bytes) -> None:
        self._segments.changed(key)
        self._dirty.add(key)
        self._rows_due.add(key)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _is_published(self, end: int) -> bool:
        """Whether the watermark is past the moment at which a bucket counts as first published (DESIGN.md 6)."""
        quiet = max(self.rules.session_gap, self.rules.resume_window)
        return self.watermark > end + quiet + self.rules.lateness

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        states = self._segments.states
        for key in [key for key in self._unpublished if self._is_published(states[key].bucket + states[key].width)]:
            self._unpublished.discard(key)
            states[key].first = self._segments.totals(key)
            self._changed(key)
        self._forget_buckets()

    def _forget_buckets(self) -> None:
        before = forgotten_before(self.watermark, self.rules, self.book.longest_horizon(self.rules.reopen_window))
        if before > self._begins:
            self._begins = before
            for key in [key for key, state in self._segments.states.items() if state.bucket < before]:
                self.unload(key)
                self._gone.add(key)

    def passes_on(self, watermark: int) -> int:
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Rows of `segment_metrics` for the buckets that changed, and tombstones of those folded into an hour."""
        for state in self._folded_away:
            for rate in Rate:
                row = metric_row(state, rate, (0, 0), None, self.versions.next(), self.watermark, deleted=True)
                self.outbox.send(Topic.ROWS, self.partition, row)
        self._folded_away = []
        for key in sorted(self._rows_due):
            state = self._segments.states[key]
            totals, first = self._segments.totals(key), state.first or {}
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
            elif key in self._segments.states:
                states.append((key, _encode(self._segments.states[key])))
        gone, self._gone = list(self._gone), set()
        self._dirty = set()
        return Changed(states, gone)

    # -- what is published ---------------------------------------------------------------------------------------------

    def readings(self, watermark: int | None = None) -> list[RateReading]:
        """Every rate of every segment that this partition holds."""
        windows = {name: seconds * SECOND for name, seconds in WINDOWS.items()}
        now = self.watermark if watermark is None else watermark
        found: list[RateReading] = []
        for segment in self._segments:
            series = self._segments.series_of(segment)
            found += read_segment(*segment, series, windows, self.book, self.rules, now)
        return found

    def summaries(self, watermark: int | None = None) -> tuple[list[MeanReading], list[CountReading]]:
        """Means, and sessions by state, stage and criterion, of every segment that this partition holds."""
        now = self.watermark if watermark is None else watermark
        means: list[MeanReading] = []
        counts: list[CountReading] = []
        for segment in self._segments:
            tallies = self._segments.tallies_of(segment)
            for window, seconds in WINDOWS.items():
                counted = tallies.between(*window_bounds(now, seconds * SECOND, self.rules))
                means += means_of(*segment, window, counted, self.book, now)
                counts += counts_of(*segment, window, counted, now)
        return means, counts

    def partials(self) -> list[Partial]:
        """The latest of every segment, bucket and partition of stage 4."""
        return [one for state in self._segments.states.values() for one in state.partials()]

    def states(self, start: int, end: int) -> dict[Segment, dict[str, int]]:
        """Sessions by state, per segment, in the buckets of [start, end) ns."""
        return {
            segment: {
                name: n
                for (what, name), n in self._segments.tallies_of(segment).between(start, end).items()
                if what == "state"
            }
            for segment in self._segments
        }
