"""What stage 2 tells the others of a trace: which conversation holds it, its spans, and the keys that it states."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.resolving.leads import Way, pseudo
from pipeline.core.resolving.state import TraceState
from schemas.outcome import TRACE_KEY
from schemas.span import SPAN_ID_BYTES, SpanArrival, Stated, TraceGone, TraceSpans, is_told
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter, Keyed

MOST_SPANS = 500
"""In one record: a trace may have more spans than a message may hold."""


class Membership:
    """Writes to the step's outbox; keeps in the trace's state what was told."""

    def __init__(self, partition: int, partitions: int, outbox: Outbox, versions: Versions) -> None:
        self.partition, self.partitions, self.outbox, self.versions = partition, partitions, outbox, versions

    def move(self, trace: TraceState, target: str, way: Way, replaying: bool) -> None:
        """Send the whole trace to `target`; whoever may hold it now is told that it is gone."""
        trace.stamp = self.versions.next()
        former = {trace.conversation}
        if replaying:
            former.add(pseudo(trace.trace_id))  # a worker that died may have given up waiting, unheard
        for conversation in sorted(former - {"", target}):
            partition = partition_of(self.partitions, trace.tenant, conversation)
            gone = TraceGone(trace.tenant, conversation, trace.trace_id, trace.stamp)
            self.outbox.send(Topic.SESSION_EVENTS, partition, gone)
        if target and not trace.used:
            trace.used = True
            self.outbox.count(Result.USED, "span", len(trace.known))
        trace.conversation, trace.lead = target, way.end
        if target:
            self.send_spans(trace, list(trace.known))
        self.tell_keys(trace, again=True)

    def send_spans(self, trace: TraceState, span_ids: Sequence[bytes]) -> None:
        """Also those that do not count, as far as they are known: stage 4 sees by them that there are more."""
        known = trace.known
        spans = [(one, known[one].record_time, known[one].body) for one in span_ids]
        if spans:
            partition = partition_of(self.partitions, trace.tenant, trace.conversation)
            lead = b"" if trace.lead == trace.trace_id else trace.lead
            for first in range(0, len(spans), MOST_SPANS):
                part = spans[first : first + MOST_SPANS]
                record = TraceSpans(trace.tenant, trace.conversation, trace.trace_id, trace.stamp, part, lead)
                self.outbox.send(Topic.SESSION_EVENTS, partition, record)

    def tell_keys(self, trace: TraceState, again: bool = False) -> None:
        """Tell the keys that the trace states, its own id among them, where it is and when it started."""
        alone = not trace.askers and trace.lead in (b"", trace.trace_id)
        home = "" if alone and not trace.has_work else trace.conversation  # without work it is in no session (rule 6)
        told = (trace.start, home)
        stated = {(TRACE_KEY, trace.trace_id.hex())} | {key for head in trace.spans.values() for key in head.stated}
        news = stated if again or told != trace.told else stated - set(trace.keys)
        dropped = set(trace.keys) - stated
        for name, value in sorted(news | dropped):
            conversation = home if (name, value) in stated else ""
            record = Stated(trace.tenant, name, value, trace.trace_id, self.versions.next(), trace.start, conversation)
            self.outbox.send(Topic.CORRELATIONS, partition_of(self.partitions, trace.tenant, name, value), record)
        trace.told, trace.keys = told, sorted(stated)

    def count_conflicts(self, trace: TraceState, fresh: Sequence[bytes]) -> None:
        """Each id of a trace beyond its first is counted once, when it comes (rule 4)."""
        new = {trace.spans[one].ids[0] for one in fresh if one in trace.spans and trace.spans[one].ids}
        if not new:
            return
        came = set(fresh)
        known = {head.ids[0] for span_id, head in trace.spans.items() if head.ids and span_id not in came}
        conflicts = max(0, len(new | known) - 1) - max(0, len(known) - 1)
        if conflicts:
            self.outbox.count(Result.NOTED, "id_conflict", conflicts)

    def count_unused(self, trace: TraceState) -> None:
        """What a trace that has settled held in vain: all of it without work; else what tells of spans that never came.

        An evaluation of a response tells of no span.
        """
        if not trace.conversation:
            self.outbox.count(Result.DROPPED, "no_work", 0 if trace.used else len(trace.known))
            return
        about = [one[:SPAN_ID_BYTES] for one in trace.spans if is_told(one)]
        alone = sum(one not in trace.spans and any(one) for one in about)
        if alone:
            self.outbox.count(Result.NOTED, "log_without_span", alone)

    def take_late(self, trace: TraceState, record: SpanArrival) -> None:
        """A span of a trace whose spans are gone: stage 4 says whether it is news, and changes what is settled."""
        if not trace.conversation:
            if record.span_id in (trace.settled or ()):
                self.outbox.count(Result.DROPPED, "duplicate")
            else:
                self.refuse(record, "settled", "a span of a trace without work that had settled when it came")
            return
        self.outbox.count(Result.USED, "span")
        partition = partition_of(self.partitions, trace.tenant, trace.conversation)
        spans = [(record.span_id, record.record_time, record.body)]
        late = TraceSpans(trace.tenant, trace.conversation, trace.trace_id, trace.stamp, spans, trace.lead)
        self.outbox.send(Topic.SESSION_EVENTS, partition, late)

    def refuse(self, record: SpanArrival, why: str, detail: str) -> None:
        self.outbox.count(Result.DEAD_LETTERED, why)
        trace_id = record.trace_id.hex()
        size, came = len(record.body), record.record_time
        letter = DeadLetter(why, detail, Topic.SPANS, self.partition, -1, size, came, record.tenant, trace_id)
        self.outbox.send(Topic.DEAD_LETTERS, self.partition, Keyed(Topic.SPANS.encode(), msgspec.json.encode(letter)))
