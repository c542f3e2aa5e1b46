"""What stage 4 tells stage 3 and hears from it: sessions of a subject, and what outcomes reach (RULES.md 37, 42).

The rule this file keeps: stage 3 has heard of what holds, or the question is under way. Until it is answered, this
stage does not say that event time has gone on past the moment at which it asked. What a dead worker told is overruled.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

import msgspec

from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.judging.intake import Taken
from pipeline.core.judging.reopen import Elsewhere
from pipeline.core.judging.state import About, Conversation, Input, ToldSubject
from schemas.contact import Contact, Contacts, Link, Reached, Returns
from schemas.span import Span
from schemas.topics import Topic, partition_of

_encode = msgspec.msgpack.Encoder().encode
_decode_span = msgspec.msgpack.Decoder(Span).decode


def elsewhere(conversation: Conversation) -> Elsewhere:
    """What is known of the subject's other conversations, by the first trace of our sessions."""
    reopened: dict[bytes, Link] = {}
    reopens: dict[bytes, set[Link]] = {}
    for told in conversation.subjects.values():
        for link in told.reopened:
            known = reopened.get(link.trace_id, link)
            reopened[link.trace_id] = min(link, known, key=lambda one: (one.at, one.conversation, one.ordinal))
        for link in told.reopens:
            reopens.setdefault(link.trace_id, set()).add(link)
    return Elsewhere(reopened, {trace_id: tuple(found) for trace_id, found in reopens.items()})


def hear(conversation: Conversation, record: Returns) -> Taken | None:
    """Take an answer over; None when it changes nothing, or a later one was heard."""
    told = conversation.subjects.get(record.subject)
    if told is None or record.stamp < told.heard:
        return None
    before = told.reopened, told.reopens
    told.heard, told.answered = record.stamp, max(told.answered, record.of)
    told.reopened, told.reopens = record.reopened, record.reopens
    if before == (record.reopened, record.reopens):
        return None
    came_back = before[0] != record.reopened
    cause = "the customer came back elsewhere" if came_back else "the customer had been elsewhere before"
    return Taken(cause, about=About(Input.RETURNS))


class Teller:
    """Writes to the step's outbox; keeps in the conversation what was told."""

    def __init__(self, partitions: int, outbox: Outbox, versions: Versions) -> None:
        self._partitions, self._outbox, self._versions = partitions, outbox, versions
        self._open: list[tuple[int, int, bytes, str]] = []  # asked at, stamp, conversation, subject
        self._seen: dict[bytes, set[str]] = {}
        self._again: Collection[bytes] = ()

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(
        self,
        key: bytes,
        conversation: Conversation,
        contacts: Mapping[str, tuple[Contact, ...]],
        reached: Mapping[tuple[str, str], bool],
        watermark: int,
    ) -> None:
        """Tell what differs from what was told last.

        Args:
            contacts: the sessions of each subject that others can have something in common with.
            reached: (source, event id) of the outcomes that a session has -> whether one has it in time.
        """
        again = key in self._again
        subjects = contacts.keys() | conversation.subjects.keys()
        if again:
            subjects |= self._seen.get(key, set())
        for subject in sorted(subjects):
            self._tell_sessions(key, conversation, subject, contacts.get(subject, ()), watermark, again)
        for identity, held in conversation.outcomes.items():
            source, _, event_id = identity.partition("\0")
            now = (source, event_id) in reached
            if again or held.reached is not now:
                if not again and not reached.get((source, event_id), True):
                    self._outbox.count(Result.NOTED, "past_horizon")
                held.reached = now
                self.reached(conversation, source, event_id, now)

    def reached(self, conversation: Conversation, source: str, event_id: str, has_it: bool) -> None:
        """Tell whether a session of the conversation has the outcome."""
        tenant = conversation.tenant
        record = Reached(tenant, source, event_id, conversation.name, self._versions.next(), has_it)
        partition = partition_of(self._partitions, tenant, source, event_id)
        self._outbox.send(Topic.CORRELATIONS, partition, record)

    def _tell_sessions(
        self,
        key: bytes,
        conversation: Conversation,
        subject: str,
        sessions: tuple[Contact, ...],
        watermark: int,
        again: bool,
    ) -> None:
        digest = blake2b(_encode(sessions), digest_size=16).digest()
        told = conversation.subjects.get(subject)
        if told is None:
            told = conversation.subjects[subject] = ToldSubject(0, b"")
        elif told.digest == digest and not again:
            return
        told.stamp, told.digest = self._versions.next(), digest
        heapq.heappush(self._open, (watermark, told.stamp, key, subject))
        record = Contacts(conversation.tenant, subject, conversation.name, told.stamp, sessions)
        self._outbox.send(Topic.CORRELATIONS, partition_of(self._partitions, conversation.tenant, subject), record)

    def held(self, watermark: int, conversations: Mapping[bytes, Conversation]) -> int:
        """The watermark, or the one at which the oldest question that is not answered yet was asked."""
        while self._open:
            asked_at, stamp, key, subject = self._open[0]
            conversation = conversations.get(key)
            told = conversation.subjects.get(subject) if conversation is not None else None
            if told is not None and told.answered < stamp:
                return min(watermark, asked_at)
            heapq.heappop(self._open)
        return watermark

    # -- restoring -----------------------------------------------------------------------------------------------------

    def restored(self, conversations: Mapping[bytes, Conversation], watermark: int) -> None:
        """What the worker before us asked and did not hear of yet is under way still."""
        for key, conversation in conversations.items():
            for subject, told in conversation.subjects.items():
                if told.answered < told.stamp:
                    heapq.heappush(self._open, (watermark, told.stamp, key, subject))
            if conversation.fresh or conversation.causes:
                bodies = (body for held in conversation.traces.values() for _, body in held.spans.values())
                self.saw(key, bodies)

    def saw(self, key: bytes, bodies: Iterable[bytes]) -> None:
        """Spans that the worker before us may have told of, whatever became of them since."""
        for body in bodies:
            said = _decode_span(body).said
            if said is not None and said.subjects:
                self._seen.setdefault(key, set()).update(said.subjects)

    def repeat(self, keys: Collection[bytes]) -> None:
        """From now on tell of these conversations anew, also what did not change; of none when that is done."""
        self._again = frozenset(keys)
        if not keys:
            self._seen.clear()
