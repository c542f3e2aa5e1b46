"""The questions that traces without an id ask one another, and the answers (RULES.md 5), within stage 2.

A link is asked about at the linked trace's own partition; a response id at every partition, as nobody knows who has it.
Every question is answered at once, 'not seen' too, so that the asker knows when it need not wait any longer; later
changes are told again. The loop carries no watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pipeline.core.effects import Outbox, Versions
from pipeline.core.resolving.leads import Way
from pipeline.core.resolving.state import TraceState
from schemas.span import Answer, Asked
from schemas.topics import Topic, partition_of

NOBODY = b""
Shared = tuple[str, str]  # tenant, response id


class Asking:
    """Questions and answers of one partition.

    Args:
        who_has: (tenant, response id) -> keys of the traces here that have it; kept by the step.
    """

    def __init__(self, partition: int, partitions: int, outbox: Outbox, versions: Versions) -> None:
        self.partition, self.partitions, self.outbox, self.versions = partition, partitions, outbox, versions
        self.who_has: dict[Shared, set[bytes]] = {}
        self.questions: dict[Shared, list[bytes]] = {}

    def ask(self, trace: TraceState, again: bool) -> None:
        """Ask about every link and response id of a trace without an id that was not asked about yet."""
        for link in sorted(trace.links()):
            label = link.hex()
            if link != trace.trace_id and (again or label not in trace.asked):
                trace.asked[label] = 1
                self._send(trace.tenant, link, Asked(trace.tenant, trace.trace_id, trace.start, about=link))
        for response_id in sorted(trace.responses()):
            label = f"response {response_id}"
            if again or label not in trace.asked:
                trace.asked[label] = self.partitions
                question = Asked(trace.tenant, trace.trace_id, trace.start, response_id=response_id)
                for partition in range(self.partitions):
                    self.outbox.send(Topic.SPANS, partition, question)

    def hear(self, trace: TraceState, answer: Answer) -> None:
        """Take an answer over; the highest stamp of a target holds."""
        label = f"response {answer.response_id}" if answer.response_id else answer.about.hex()
        if answer.target == NOBODY:
            trace.asked[label] = max(0, trace.asked.get(label, 0) - 1)
            return
        known = trace.shared.setdefault(answer.response_id, {}) if answer.response_id else trace.linked
        before = known.get(answer.target)
        if before is None or before.stamp < answer.stamp:
            known[answer.target] = answer

    def answer_link(self, trace: TraceState, asker: bytes) -> None:
        """Answer a question about this trace, which may not have been seen yet."""
        if (asker, "") not in trace.askers:
            trace.askers.append((asker, ""))
        if trace.way is not None:
            self._tell(trace, asker, "", ())
        self.done(trace.tenant, asker, about=trace.trace_id)

    def answer_shared(self, asked: Asked, having: Iterable[TraceState]) -> None:
        """Answer who has a response id here, and remember the question for those who come later."""
        shared = (asked.tenant, asked.response_id)
        askers = self.questions.setdefault(shared, [])
        if asked.trace_id not in askers:
            askers.append(asked.trace_id)
        for trace in having:
            self._join(trace, asked.trace_id, asked.response_id)
        self.done(asked.tenant, asked.trace_id, response_id=asked.response_id)

    def has(self, key: bytes, trace: TraceState, response_id: str) -> None:
        """A trace here turns out to have a response id."""
        shared = (trace.tenant, response_id)
        self.who_has.setdefault(shared, set()).add(key)
        for asker in self.questions.get(shared, ()):
            self._join(trace, asker, response_id)

    def has_no_longer(self, key: bytes, trace: TraceState, response_ids: Collection[str]) -> None:
        """Spans of a trace here that had these response ids do not count any more; others may have them, too."""
        own = trace.own_responses()
        lost = set(response_ids) - own
        for response_id in lost:
            self._discard(key, trace.tenant, response_id)
        for asker, response_id in trace.askers:
            if response_id in lost and trace.way is not None:
                self._tell(trace, asker, response_id, own)

    def forget(self, key: bytes, trace: TraceState) -> None:
        for response_id in trace.responses():
            self._discard(key, trace.tenant, response_id)

    def _discard(self, key: bytes, tenant: str, response_id: str) -> None:
        having = self.who_has.get((tenant, response_id))
        if having is not None:
            having.discard(key)
            if not having:
                del self.who_has[tenant, response_id]

    def tell(self, trace: TraceState) -> None:
        """The trace leads elsewhere, or starts earlier, than it said before."""
        own = trace.own_responses() if trace.askers else ()
        for asker, response_id in trace.askers:
            self._tell(trace, asker, response_id, own)

    def _join(self, trace: TraceState, asker: bytes, response_id: str) -> None:
        if asker == trace.trace_id:
            return
        if (asker, response_id) not in trace.askers:
            trace.askers.append((asker, response_id))
        if trace.way is not None:
            self._tell(trace, asker, response_id, (response_id,))

    def _tell(self, trace: TraceState, asker: bytes, response_id: str, own: Collection[str]) -> None:
        way: Way | None = trace.way
        assert way is not None
        answer = Answer(
            tenant=trace.tenant,
            trace_id=asker,
            about=b"" if response_id else trace.trace_id,
            response_id=response_id,
            target=trace.trace_id,
            stamp=self.versions.next(),
            start=trace.told_start,
            own_id=way.end == trace.trace_id and way.attributed,
            conversation=way.conversation,
            end=way.end,
            length=way.length,
            earliest=way.earliest,
            withdrawn=bool(response_id) and response_id not in own,
        )
        self._send(trace.tenant, asker, answer)

    def done(self, tenant: str, asker: bytes, about: bytes = b"", response_id: str = "") -> None:
        """A question is answered, as far as this partition can."""
        done = Answer(tenant, asker, about, response_id, NOBODY, 0, 0, False, "", b"", 0, (0, b""))
        self._send(tenant, asker, done)

    def _send(self, tenant: str, trace_id: bytes, record: Asked | Answer) -> None:
        self.outbox.send(Topic.SPANS, partition_of(self.partitions, tenant, trace_id), record)
