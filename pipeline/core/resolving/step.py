"""Stage 2 for one partition: everything that moves a trace's state.

```
span --> known? a copy: the better one holds
     --> an id on any span of the trace --> its conversation; all that is held goes there
     --> no id until `trace_timeout` after its first end --> trace:<id>, unattributed; without work: no_work
an id that comes later, or nearer the root --> the trace moves: a tombstone to the old conversation, all to the new
```
What is sent is a function of the messages in log order: a replay after a crash sends the same, with higher stamps.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from pipeline.core.effects import Changed, Outbox, Result, Versions
from pipeline.core.resolving.state import TraceState, better, head_of
from pipeline.core.timeline import TimeRules
from schemas.span import SpanArrival, Stated, TraceGone, TraceSpans
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter, Keyed

_encode = msgspec.msgpack.Encoder().encode
_decode_trace = msgspec.msgpack.Decoder(TraceState).decode
TRACE_KEY = "trace_id"


class ResolveStep:
    """One partition of stage 2.

    Args:
        settles_after: how long after a trace's end its sessions have settled, ns; its spans are dropped then.
    """

    def __init__(self, partition: int, partitions: int, rules: TimeRules, settles_after: int) -> None:
        self.partition, self.partitions, self.rules = partition, partitions, rules
        self.settles_after = settles_after + rules.bucket
        self.outbox, self.versions = Outbox(), Versions()
        self.traces: dict[bytes, TraceState] = {}
        self.watermark = 0
        self._timers: list[tuple[int, bytes]] = []
        self._armed: set[bytes] = set()
        self._holding: list[tuple[int, bytes]] = []
        self._dirty: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._resent: set[bytes] | None = None

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        trace = _decode_trace(state)
        self.traces[key] = trace
        self._schedule(key, trace)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self._resent = set()

    def caught_up(self) -> None:
        self._resent = None

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[SpanArrival]) -> None:
        fresh: dict[bytes, list[bytes]] = {}
        oldest = self.watermark - self.rules.retention
        for record in records:
            if record.end < oldest:
                self._refuse(record, "sealed", "a span that ended before the retention of outcomes")
                continue
            key = record.tenant.encode() + b"\0" + record.trace_id
            trace = self.traces.get(key)
            if trace is None:
                trace = self.traces[key] = TraceState(record.tenant, record.trace_id, {}, first_end=record.end, keys=[])
                self._gone.discard(key)
            if self._take(trace, record):
                fresh.setdefault(key, []).append(record.span_id)
        for key, span_ids in fresh.items():
            trace = self.traces[key]
            self._resolve(key, trace, span_ids)
            self._schedule(key, trace)
            self._dirty.add(key)

    def _take(self, trace: TraceState, record: SpanArrival) -> bool:
        """Whether the span, or this copy of it, is news."""
        known = trace.spans.get(record.span_id)
        if trace.settled is not None and record.span_id in trace.settled:
            self.outbox.count(Result.DROPPED, "duplicate")
            return False
        head = head_of(record)
        if trace.settled is not None:
            self._take_late(trace, record)
            return False
        if known is None:
            trace.spans[record.span_id] = head
            trace.first_end = min(trace.first_end, record.end)
            self.outbox.count(Result.USED, "span")
            return True
        self.outbox.count(Result.DROPPED, "duplicate")
        holds = better(known, head)
        if holds is known:
            return self._resent is not None
        trace.spans[record.span_id] = holds
        if holds.body != known.body:
            self.outbox.count(Result.NOTED, "unequal_copy")
        return True

    def _take_late(self, trace: TraceState, record: SpanArrival) -> None:
        """A span unknown so far, of a trace whose spans are gone: stage 4 says whether it changes what is settled."""
        assert trace.settled is not None
        if not trace.conversation:
            self._refuse(record, "settled", "a span of a trace without work that had settled when it came")
            return
        trace.settled.append(record.span_id)
        self.outbox.count(Result.USED, "span")
        partition = partition_of(self.partitions, trace.tenant, trace.conversation)
        spans = [(record.span_id, record.record_time, record.body)]
        late = TraceSpans(trace.tenant, trace.conversation, trace.trace_id, trace.stamp, spans)
        self.outbox.send(Topic.SESSION_EVENTS, partition, late)
        self._dirty.add(record.tenant.encode() + b"\0" + record.trace_id)

    def _refuse(self, record: SpanArrival, why: str, detail: str) -> None:
        self.outbox.count(Result.DEAD_LETTERED, why)
        letter = DeadLetter(
            why, detail, Topic.SPANS, self.partition, -1, len(record.body), record.record_time, record.tenant,
            record.trace_id.hex(),
        )  # fmt: skip
        self.outbox.send(Topic.DEAD_LETTERS, self.partition, Keyed(Topic.SPANS.encode(), msgspec.json.encode(letter)))

    # -- where it belongs ----------------------------------------------------------------------------------------------

    def _resolve(self, key: bytes, trace: TraceState, fresh: Sequence[bytes]) -> None:
        target = trace.stated_id() or trace.conversation
        if not target and trace.idle and trace.has_work:
            target = trace.pseudo
        ids = {head.ids[0] for head in trace.spans.values() if head.ids}
        if len(ids) > 1 and any(trace.spans[one].ids for one in fresh):
            self.outbox.count(Result.NOTED, "id_conflict")
        again = self._resent is not None and key not in self._resent
        if target != trace.conversation or (again and target):
            self._move(key, trace, target)
        elif target:
            self._send_spans(trace, fresh)
            self._tell_keys(trace)

    def _move(self, key: bytes, trace: TraceState, target: str) -> None:
        """Send the whole trace to `target`; whoever may hold it now is told that it is gone."""
        trace.stamp = self.versions.next()
        former = {trace.conversation}
        if self._resent is not None:
            self._resent.add(key)
            former.add(trace.pseudo)  # a worker that died may have given up waiting, unheard
        for conversation in sorted(former - {"", target}):
            partition = partition_of(self.partitions, trace.tenant, conversation)
            gone = TraceGone(trace.tenant, conversation, trace.trace_id, trace.stamp)
            self.outbox.send(Topic.SESSION_EVENTS, partition, gone)
        trace.conversation, trace.idle = target, False
        self._send_spans(trace, list(trace.spans))
        self._tell_keys(trace, again=True)

    def _send_spans(self, trace: TraceState, span_ids: Sequence[bytes]) -> None:
        spans = [(one, trace.spans[one].record_time, trace.spans[one].body) for one in span_ids]
        partition = partition_of(self.partitions, trace.tenant, trace.conversation)
        record = TraceSpans(trace.tenant, trace.conversation, trace.trace_id, trace.stamp, spans)
        self.outbox.send(Topic.SESSION_EVENTS, partition, record)

    def _tell_keys(self, trace: TraceState, again: bool = False) -> None:
        """Tell the keys that the trace states, its own id among them, where it is and when it started."""
        told = (trace.start, trace.conversation)
        stated = {(TRACE_KEY, trace.trace_id.hex())} | {key for head in trace.spans.values() for key in head.stated}
        news = stated if again or told != trace.told else stated - set(trace.keys)
        dropped = set(trace.keys) - stated if again else set()
        for name, value in sorted(news | dropped):
            conversation = trace.conversation if (name, value) in stated else ""
            record = Stated(trace.tenant, name, value, trace.trace_id, self.versions.next(), trace.start, conversation)
            self.outbox.send(Topic.CORRELATIONS, partition_of(self.partitions, trace.tenant, name, value), record)
        trace.told, trace.keys = told, sorted(stated)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _schedule(self, key: bytes, trace: TraceState) -> None:
        if trace.held:
            heapq.heappush(self._holding, (trace.start, key))
        if key not in self._armed:
            self._armed.add(key)
            heapq.heappush(self._timers, (self._due(trace), key))

    def _due(self, trace: TraceState) -> int:
        """When to look again: the wait for an id ends, the sessions have settled, retention is over."""
        if trace.held:
            return trace.first_end + self.rules.trace_timeout
        if trace.settled is None:
            return trace.end + self.settles_after
        return trace.last_end + self.rules.retention

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        while self._timers and self._timers[0][0] < watermark:
            _, key = heapq.heappop(self._timers)
            self._armed.discard(key)
            trace = self.traces.get(key)
            if trace is None:
                continue
            if self._due(trace) < watermark:
                self._look_at(key, trace)
            if key in self.traces:
                self._schedule(key, trace)

    def _look_at(self, key: bytes, trace: TraceState) -> None:
        self._dirty.add(key)
        if trace.held:
            if trace.has_work:
                self._move(key, trace, trace.pseudo)
            else:
                trace.idle = True
        elif trace.settled is None:
            if not trace.conversation:
                self.outbox.count(Result.DROPPED, "no_work", len(trace.spans))
            trace.last_end = trace.end
            trace.settled = sorted(trace.spans)
            trace.spans = {}
        else:
            del self.traces[key]
            self._gone.add(key)

    def passes_on(self, watermark: int) -> int:
        """Not past the start of the oldest span that still waits for its conversation."""
        while self._holding:
            start, key = self._holding[0]
            trace = self.traces.get(key)
            if trace is not None and trace.held and trace.start == start:
                return min(watermark, start)
            heapq.heappop(self._holding)
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Nothing waits: what is sent is decided record by record."""

    def changed(self) -> Changed:
        states = [(key, _encode(self.traces[key])) for key in self._dirty if key in self.traces]
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        return Changed(states, gone)

    def unresolved(self) -> int:
        return sum(trace.held for trace in self.traces.values())
