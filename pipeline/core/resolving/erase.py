"""Erasure in stage 2: traces of a conversation that is erased go, and what comes of them later is refused.

The rule this file keeps: of an erased trace nothing stays but its digest; those that asked it are told that it leads to
something erased, so that a trace without an id that follows it goes the same way, in any order of arrival.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from msgspec import structs

from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.erasing import (
    CONVERSATION,
    ERASED,
    REASON,
    RESPONSE,
    TRACE,
    Tombstone,
    Tombstones,
    bury,
    conversation_digest,
    digest_of,
    receipt,
)
from pipeline.core.resolving.asking import Asking
from pipeline.core.resolving.leads import pseudo
from pipeline.core.resolving.state import TraceState
from schemas.erasing import ERASE_ROWS, EraseRows, Forgotten, Unasked
from schemas.span import Answer, Asked, SpanArrival, Stated, TraceGone
from schemas.topics import Stage, Topic, partition_of
from schemas.wire import Row

QUESTION = b"q"


def question_key(tenant: str, response_id: str) -> bytes:
    """Of the state of a question for a response id."""
    return QUESTION + tenant.encode() + b"\0" + response_id.encode()


class TraceEraser:
    """Erases from one partition's traces, and remembers what.

    Args:
        traces, asked_at: the step's, by state key.
    """

    def __init__(
        self,
        partition: int,
        partitions: int,
        outbox: Outbox,
        versions: Versions,
        asking: Asking,
        traces: MutableMapping[bytes, TraceState],
        asked_at: MutableMapping[bytes, int],
    ) -> None:
        self.tombstones = Tombstones()
        self._partition, self._partitions, self._outbox, self._versions = partition, partitions, outbox, versions
        self._asking, self._traces, self._asked_at = asking, traces, asked_at
        self._orders: list[Forgotten | Unasked] = []

    def order(self, order: Forgotten | Unasked) -> None:
        """Refuse what comes from now on; `forget` erases what is there."""
        if isinstance(order, Forgotten):
            self.tombstones.add(order.digest, Tombstone(order.until))
        self._orders.append(order)

    def forget(self, gone: set[bytes], changed: set[bytes]) -> None:
        """Erase what was ordered, in one look at all that is kept; state keys that are gone or changed are noted."""
        if not self._orders:
            return
        orders, self._orders = self._orders, []
        if conversations := [one for one in orders if isinstance(one, Forgotten)]:
            gone |= self._erase_traces(conversations)
        if traces := {(one.tenant, one.trace_id) for one in orders if isinstance(one, Unasked)}:
            self._drop_askers(traces, gone, changed)

    def _drop_askers(self, erased: set[tuple[str, bytes]], gone: set[bytes], changed: set[bytes]) -> None:
        for (tenant, response_id), askers in list(self._asking.questions.items()):
            left = [one for one in askers if (tenant, one) not in erased]
            if len(left) == len(askers):
                continue
            key = question_key(tenant, response_id)
            self._asking.questions[tenant, response_id] = left
            if left:
                changed.add(key)
            else:
                del self._asking.questions[tenant, response_id], self._asked_at[key]
                gone.add(key)
        for key, trace in self._traces.items():
            if any((trace.tenant, asker) in erased for asker, _ in trace.askers):
                trace.askers = [one for one in trace.askers if (trace.tenant, one[0]) not in erased]
                changed.add(key)

    def _erase_traces(self, orders: Sequence[Forgotten]) -> set[bytes]:
        erased: set[bytes] = set()
        wanted = {one.digest: one for one in orders}
        found = dict.fromkeys(wanted, 0)
        tenants = {one.tenant for one in orders}
        known: dict[tuple[str, str], bytes] = {}
        for key, trace in list(self._traces.items()):
            if not trace.conversation or trace.tenant not in tenants:
                continue
            name = trace.tenant, trace.conversation
            digest = known[name] = known.get(name) or conversation_digest(*name)
            if digest in wanted:
                found[digest] += 1
                self._erase(key, trace, wanted[digest].until)
                erased.add(key)
        for digest, n in found.items():
            order = wanted[digest]
            row = receipt(order.order, Stage.RESOLVE, self._partition, order.alias, "traces", n)
            self._outbox.send(Topic.ROWS, self._partition, row)
        return erased

    def refuses(self, record: SpanArrival | Asked | Answer) -> bool:
        """Whether a record, for a trace that is not known, is for one that is erased; then it is dealt with."""
        if not self.tombstones:
            return False
        trace_id = record.about if isinstance(record, Asked) else record.trace_id
        held = self.tombstones.find(TRACE, record.tenant, trace_id)
        if held is None:
            return False
        if isinstance(record, SpanArrival):
            bury(self._outbox, self._partition, Topic.SPANS, record.tenant, "a span")
        elif isinstance(record, Asked):
            self._answer(record.tenant, record.trace_id, trace_id, "", held.until)
            self._asking.done(record.tenant, record.trace_id, about=trace_id)
        return True

    def refuses_question(self, asked: Asked) -> bool:
        """Whether it asks for a response id of something erased; then it is answered."""
        held = self.tombstones.find(RESPONSE, asked.tenant, asked.response_id)
        if held is not None:
            target = digest_of(asked.response_id)  # as good as the id of a trace
            self._answer(asked.tenant, asked.trace_id, target, asked.response_id, held.until)
            self._asking.done(asked.tenant, asked.trace_id, response_id=asked.response_id)
        return held is not None

    def takes(self, key: bytes, trace: TraceState, target: str) -> bool:
        """Whether `target`, the conversation it belongs to now, is erased; then the trace has gone there."""
        if target == ERASED:
            until = max(one.erased for one in trace.answers())
        elif target and (held := self.tombstones.find(CONVERSATION, trace.tenant, target)) is not None:
            until = held.until
        else:
            return False
        if trace.conversation:
            self._withdraw(trace, until)
        elif not trace.used:  # of others the spans have been counted already
            n = len(trace.known)
            bury(self._outbox, self._partition, Topic.SPANS, trace.tenant, f"{n} spans", n)
        self._erase(key, trace, until)
        return True

    def _withdraw(self, trace: TraceState, until: int) -> None:
        """It has been sent elsewhere, when it was not known yet where it leads."""
        tenant, conversation = trace.tenant, trace.conversation
        gone = TraceGone(tenant, conversation, trace.trace_id, self._versions.next())
        self._outbox.send(Topic.SESSION_EVENTS, partition_of(self._partitions, tenant, conversation), gone)
        if conversation == pseudo(trace.trace_id):
            told = EraseRows(tenant, conversation, conversation_digest(tenant, conversation), until, "", "")
            self._outbox.send(Topic.ROWS, self._partition, Row(ERASE_ROWS, list(structs.astuple(told))))

    def _erase(self, key: bytes, trace: TraceState, until: int) -> None:
        tenant, trace_id = trace.tenant, trace.trace_id
        for name, value in trace.keys:
            stated = Stated(tenant, name, value, trace_id, self._versions.next(), trace.told[0], "", until)
            self._outbox.send(Topic.CORRELATIONS, partition_of(self._partitions, tenant, name, value), stated)
        for asker, response_id in trace.askers:
            self._answer(tenant, asker, trace_id, response_id, until)
        self.tombstones.add(digest_of(TRACE, tenant, trace_id), Tombstone(until))
        for response_id in trace.responses():
            self.tombstones.add(digest_of(RESPONSE, tenant, response_id), Tombstone(until))
        for target in range(self._partitions):
            self._outbox.send(Topic.SPANS, target, Unasked(tenant, trace_id))
        self._asking.forget(key, trace)
        self._outbox.count(Result.NOTED, REASON)
        del self._traces[key]

    def _answer(self, tenant: str, asker: bytes, target: bytes, response_id: str, until: int) -> None:
        """Tell `asker` that `target`, which it asked about, leads to something erased."""
        answer = Answer(
            tenant=tenant,
            trace_id=asker,
            about=b"" if response_id else target,
            response_id=response_id,
            target=target,
            stamp=self._versions.next(),
            start=0,
            own_id=True,
            conversation=ERASED,
            end=target,
            length=0,
            earliest=(0, target),
            erased=until,
        )
        self._outbox.send(Topic.SPANS, partition_of(self._partitions, tenant, asker), answer)
