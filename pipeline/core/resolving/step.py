"""Stage 2 for one partition: everything that moves a trace's state.

```
span --> known? a copy: the better one holds
     --> an id on any span of the trace --> its conversation; all that is held goes there
     --> no id: ask where its links and response ids lead; a conversation at their end is its own
     --> nothing until `trace_timeout` after its first end --> trace:<id of the end>, unattributed; no work: no_work
an id, a link or an answer that comes later --> the trace moves: a tombstone to the old conversation, all to the new
```
What is sent is a function of the messages in log order: a replay after a crash sends the same, with higher stamps.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from pipeline.core.effects import Changed, Outbox, Versions
from pipeline.core.resolving.asking import Asking
from pipeline.core.resolving.erase import QUESTION, TraceEraser, question_key
from pipeline.core.resolving.intake import Fresh, Intake
from pipeline.core.resolving.leads import Way
from pipeline.core.resolving.limit import SpanLimit, last_that_counts
from pipeline.core.resolving.membership import Membership
from pipeline.core.resolving.state import TraceState
from pipeline.core.resolving.traces import Traces
from pipeline.core.timeline import TimeRules
from schemas.erasing import Forgotten, Unasked
from schemas.span import Answer, Asked, SpanArrival

_encode = msgspec.msgpack.Encoder().encode
_decode_question = msgspec.msgpack.Decoder(tuple[str, str, list[bytes], int]).decode
TRACE = b"t"
NEVER = 2**63 - 1


class ResolveStep:
    """One partition of stage 2.

    Args:
        settles_after: how long after a trace's end its sessions have settled, ns; its spans are dropped then.
    """

    def __init__(self, partition: int, partitions: int, rules: TimeRules, settles_after: int) -> None:
        self.partition, self.partitions, self.rules = partition, partitions, rules
        self.settles_after = settles_after + rules.bucket
        self.outbox, self.versions = Outbox(), Versions()
        self.traces = Traces(rules.retention)
        self.watermark = 0
        self._membership = Membership(partition, partitions, self.outbox, self.versions)
        self._asking = Asking(partition, partitions, self.outbox, self.versions)
        limit = SpanLimit(rules.max_spans_per_trace, self.outbox)
        self._intake = Intake(limit, self._membership, self._asking, self.outbox)
        self._asked_at: dict[bytes, int] = {}
        self._timers: list[tuple[int, bytes]] = []
        self._armed: dict[bytes, int] = {}
        self._holding: list[tuple[int, bytes]] = []
        self._dirty, self._gone = set[bytes](), set[bytes]()
        self._resent: set[bytes] | None = None
        self._eraser = TraceEraser(
            partition, partitions, self.outbox, self.versions, self._asking, self.traces, self._asked_at
        )

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        if self._eraser.tombstones.load(key, state):
            return
        if key[:1] == QUESTION:
            tenant, response_id, askers, asked_at = _decode_question(state)
            self._asking.questions[tenant, response_id] = askers
            self._asked_at[key] = asked_at
            heapq.heappush(self._timers, (asked_at + self.rules.retention, key))
            return
        trace = self.traces.load(key, state)
        if trace is None:
            return
        for response_id in trace.own_responses():
            self._asking.who_has.setdefault((trace.tenant, response_id), set()).add(key)
        self._schedule(key, trace)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self._resent = set()

    def caught_up(self) -> None:
        self._resent = None

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[SpanArrival | Asked | Answer | Forgotten | Unasked]) -> None:
        fresh: Fresh = defaultdict(dict)
        oldest = self.watermark - self.rules.retention
        for record in records:
            if isinstance(record, Forgotten | Unasked):
                self._eraser.order(record)
                continue
            if isinstance(record, Asked) and record.response_id:
                self._take_question(record)
                continue
            trace_id = record.about if isinstance(record, Asked) else record.trace_id
            if isinstance(record, SpanArrival) and record.end < oldest:
                self._membership.refuse(record, "sealed", "a span that ended before the retention of outcomes")
                continue
            key = TRACE + record.tenant.encode() + b"\0" + trace_id
            trace = self.traces.find(key)
            if trace is None:
                if self._eraser.refuses(record):
                    continue
                first_end = record.end if isinstance(record, SpanArrival) else 0
                trace = self.traces[key] = TraceState(record.tenant, trace_id, {}, first_end=first_end, keys=[])
                trace.last_end = max(self.watermark, record.at if isinstance(record, Asked) else 0)
                self._gone.discard(key)
            if isinstance(record, SpanArrival):
                self._intake.take(key, trace, record, fresh, self._resent is not None)
            elif isinstance(record, Asked):
                self._asking.answer_link(trace, record.trace_id)
                fresh.setdefault(key, {})
            else:
                self._asking.hear(trace, record)
                fresh.setdefault(key, {})
        for key, came in fresh.items():
            self._intake.sort_out(key, self.traces[key], came)
        self._eraser.forget(self._gone, self._dirty)
        for key, came in fresh.items():
            trace = self.traces.get(key)
            if trace is None:
                continue
            if trace.spans and trace.settled is None:
                self._resolve(key, trace, [one for one in came if one in trace.known])
            self._schedule(key, trace)
            self._dirty.add(key)
        self.traces.settle_all()

    def _take_question(self, asked: Asked) -> None:
        if self._eraser.refuses_question(asked):
            return
        key = question_key(asked.tenant, asked.response_id)
        having = self._asking.who_has.get((asked.tenant, asked.response_id), ())
        self._asking.answer_shared(asked, [self.traces[one] for one in sorted(having)])
        self._dirty.update(having)
        self._dirty.add(key)
        self._gone.discard(key)
        if key not in self._asked_at:
            self._asked_at[key] = max(self.watermark, asked.at)
            heapq.heappush(self._timers, (self._asked_at[key] + self.rules.retention, key))

    # -- where it belongs ----------------------------------------------------------------------------------------------

    def _resolve(self, key: bytes, trace: TraceState, fresh: Sequence[bytes]) -> None:
        again = self._resent is not None and key not in self._resent
        if self._resent is not None:
            self._resent.add(key)  # once: a trace that asked again at every answer would never stop asking
        own = trace.stated_id()
        if not own:
            self._asking.ask(trace, again)
        way = trace.leads()
        target = self._target(trace, way)
        if self._eraser.takes(key, trace, target):
            self._gone.add(key)
            return
        if way != trace.way or trace.start != trace.told_start or again:
            trace.way, trace.told_start = way, trace.start
            self._asking.tell(trace)
        self._membership.count_conflicts(trace, fresh)
        if target != trace.conversation or (target and (again or way.end != trace.lead)):
            self._membership.move(trace, target, way, replaying=self._resent is not None)
        elif target:
            self._membership.send_spans(trace, fresh)
            self._membership.tell_keys(trace)

    def _target(self, trace: TraceState, way: Way) -> str:
        """The conversation it belongs to now; empty while it waits, or has nothing to do with work."""
        if way.attributed:
            return way.conversation
        if trace.waited and (trace.has_work or trace.askers or way.end != trace.trace_id):
            return way.conversation
        return ""

    # -- time ----------------------------------------------------------------------------------------------------------

    def _schedule(self, key: bytes, trace: TraceState) -> None:
        if trace.settled is not None:
            self.traces.settle(key)
            return
        if trace.held:
            heapq.heappush(self._holding, (trace.start, key))
        due = self._due(trace)
        if due < self._armed.get(key, due + 1):  # a later one is found out when the earlier one rings
            self._armed[key] = due
            heapq.heappush(self._timers, (due, key))

    def _due(self, trace: TraceState) -> int:
        """When to look again: the wait for an id ends, the sessions have settled, retention is over."""
        if not trace.spans:
            return trace.last_end + self.rules.retention
        if not trace.conversation and not trace.waited:
            return trace.first_end + self.rules.trace_timeout
        if any(trace.asked.values()):
            return NEVER  # an answer under way, which arms it again, may still move it
        return trace.end + self.settles_after

    def advance(self, watermark: int) -> None:
        if watermark < self.watermark:
            return
        self._eraser.tombstones.expire(watermark)
        self.watermark = watermark  # the same again, too: what came since may be due already
        while self._timers and self._timers[0][0] < watermark:
            due, key = heapq.heappop(self._timers)
            if key[:1] == QUESTION:
                tenant, _, response_id = key[1:].decode().partition("\0")
                if self._asked_at.get(key, due) == due - self.rules.retention:
                    del self._asking.questions[tenant, response_id], self._asked_at[key]
                    self._gone.add(key)
                continue
            if self._armed.get(key) != due:
                continue
            del self._armed[key]
            trace = self.traces.awake.get(key)
            if trace is None:
                continue
            if self._due(trace) < watermark:
                self._look_at(key, trace)
            if key in self.traces:
                self._schedule(key, trace)
        for key in self.traces.due(watermark):
            del self.traces[key]
            self._gone.add(key)

    def _look_at(self, key: bytes, trace: TraceState) -> None:
        self._dirty.add(key)
        if not trace.spans:
            del self.traces[key]
            self._gone.add(key)
        elif not trace.conversation and not trace.waited:
            trace.waited = True
            self._resolve(key, trace, ())
        else:
            self._membership.count_unused(trace)
            self._asking.forget(key, trace)
            trace.beyond = last_that_counts(trace.spans) if trace.spare else None
            trace.last_end, trace.settled = trace.end, [] if trace.conversation else sorted(trace.spans)
            trace.spans, trace.spare, trace.linked, trace.shared, trace.asked = {}, {}, {}, {}, {}

    def passes_on(self, watermark: int) -> int:
        """Not past the start of the oldest span that still waits for its conversation."""
        while self._holding:
            start, key = self._holding[0]
            trace = self.traces.awake.get(key)
            if trace is not None and trace.held and trace.start == start:
                return min(watermark, start)
            heapq.heappop(self._holding)
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Nothing waits: what is sent is decided record by record."""

    def changed(self) -> Changed:
        states: list[tuple[bytes, bytes]] = []
        for key in self._dirty:
            if (state := self.traces.state(key)) is not None:
                states.append((key, state))
            elif key in self._asked_at:
                tenant, _, response_id = key[1:].decode().partition("\0")
                askers = self._asking.questions[tenant, response_id]
                states.append((key, _encode((tenant, response_id, askers, self._asked_at[key]))))
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        return self._eraser.tombstones.with_changes(states, gone)

    def unresolved(self) -> int:
        return sum(trace.held for trace in self.traces.awake.values())
