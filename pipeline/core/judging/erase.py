"""Erasure in stage 4: a conversation goes, what its sessions count stays, and what comes of it later is refused.

The rule this file keeps: the counts of an erased session move to the sums of those that have left the state, exactly as
they are at the order, so that no total changes; beside them it is counted as `erased`. An open session counts nothing
yet and leaves no count. Stages 2 and 3 and the sink are told of what an order means by this stage alone, once each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from pipeline.core.effects import Outbox, Result
from pipeline.core.erasing import (
    CONVERSATION,
    REASON,
    SUBJECT,
    Tombstone,
    Tombstones,
    bury,
    conversation_digest,
    digest_of,
    erased_until,
    receipt,
)
from pipeline.core.judging.fold import Contribution, Fold
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.judging.views import TraceView
from pipeline.core.timeline import TimeRules
from schemas.erasing import ERASE_ROWS, EraseRows, Forget, Forgotten
from schemas.outcome import Attached
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Stage, Topic
from schemas.wire import Keyed, Row

ALIAS = "erased:"
"""Before the name of what stays of an erased session."""


class ConversationEraser:
    """Erases from one partition's conversations, and remembers what.

    Args:
        fold: the step's; what erased sessions count goes on counting there.
    """

    def __init__(self, partition: int, partitions: int, rules: TimeRules, outbox: Outbox, fold: Fold) -> None:
        self.tombstones = Tombstones()
        self._partition, self._partitions, self._rules = partition, partitions, rules
        self._outbox, self._fold = outbox, fold

    # -- what comes later ----------------------------------------------------------------------------------------------

    def refuses(self, record: TraceSpans | TraceGone | Attached) -> bool:
        """Whether it is for an erased conversation; then it is dealt with."""
        if not self.tombstones or self.tombstones.find(CONVERSATION, record.tenant, record.conversation) is None:
            return False
        if isinstance(record, TraceSpans):
            n = len(record.spans)
            bury(self._outbox, self._partition, Topic.SESSION_EVENTS, record.tenant, f"{n} spans of a trace", n)
        elif isinstance(record, Attached) and record.outcome is not None:
            bury(self._outbox, self._partition, Topic.SESSION_EVENTS, record.tenant, "an outcome")
        return True

    def order_for(self, conversation: Conversation, views: Iterable[TraceView]) -> Forget | None:
        """The order by which spans that have come are erased, since they serve a subject that was.

        What begins after the order is the subject's own new business.
        """
        if not self.tombstones:
            return None
        for span in (span for view in views for span in view.spans if span.said is not None):
            for subject in span.said.subjects if span.said is not None else ():
                held = self.tombstones.find(SUBJECT, conversation.tenant, subject)
                if held is not None and span.start <= held.at:
                    return Forget(conversation.tenant, conversation.name, "", held.order, held.at, held.salt)
        return None

    # -- the order -----------------------------------------------------------------------------------------------------

    def found(self, order: Forget, conversations: Iterable[Conversation], watermark: int) -> list[Forget]:
        """One order for each conversation that an order means; whatever serves its subject is looked out for."""
        if not order.subject:
            return [order]
        at = max(order.at, watermark)
        stone = Tombstone(erased_until(at, self._rules), at, order.order, order.salt)
        self.tombstones.add(digest_of(SUBJECT, order.tenant, order.subject), stone)
        text = order.subject.encode()  # 32 digits of a hash stand for nothing else, wherever they are found
        return [
            msgspec.structs.replace(order, conversation=one.name, subject="", at=at)
            for one in conversations
            if one.tenant == order.tenant and any(text in part for part in _parts(one))
        ]

    def looked(self, order: Forget, found: int) -> None:
        """All that serves the order's subject here is erased; the receipts of it have gone before."""
        if order.subject:
            self._receipt(order, "", "conversations", found)

    def erase(
        self, order: Forget, conversation: Conversation | None, fresh: Sequence[FreshSpan], watermark: int
    ) -> None:
        """Take a conversation, which the step drops from its state, out of everything.

        Args:
            conversation: None where the state has none, or none any more.
            fresh: spans of it that were not judged: they are refused.
        """
        tenant, name = order.tenant, order.conversation
        digest = conversation_digest(tenant, name)
        alias = ALIAS + blake2b(digest, digest_size=8, key=order.salt).hexdigest()
        until = erased_until(max(order.at, watermark), self._rules)
        self.tombstones.add(digest, Tombstone(until))
        sessions = ordinals = 0
        if conversation is not None:
            sessions = self._keep_counts(conversation)
            ordinals = max(
                len(conversation.published), len(conversation.traces)
            )  # as many as a dead worker may have sent
            new = sum(one.before is None for one in fresh)
            if new:
                bury(self._outbox, self._partition, Topic.SESSION_EVENTS, tenant, f"{new} spans", new)
            self._receipt(order, alias, "spans", sum(len(trace.spans) for trace in conversation.traces.values()))
            self._receipt(order, alias, "outcomes", len(conversation.outcomes))
        for ordinal in range(1, max(ordinals, order.ordinals) + 1):
            key = f"{tenant}\0{name}\0{ordinal}".encode()
            self._outbox.send(Topic.VERDICTS, self._partition, Keyed(key, b""))
        self._outbox.count(Result.NOTED, REASON, sessions)
        self._receipt(order, alias, "conversations", 1)
        self._receipt(order, alias, "sessions", sessions)
        told = EraseRows(tenant, name, digest, until, order.order, alias)
        self._outbox.send(Topic.ROWS, self._partition, Row(ERASE_ROWS, list(msgspec.structs.astuple(told))))
        for target in range(self._partitions):
            for topic in (Topic.SPANS, Topic.CORRELATIONS):
                self._outbox.send(topic, target, Forgotten(tenant, digest, until, order.order, alias))

    def _keep_counts(self, conversation: Conversation) -> int:
        """What its sessions count, from now on without them. Returns: how many are counted."""
        counted = 0
        for one in conversation.published:
            added = one.contribution
            if added is None:
                continue
            if "open" in added.states:
                self._fold.add(added, -1)
                continue
            self._fold.seal(added)
            mark = Contribution(added.bucket, added.segments, "", (), (REASON,))
            self._fold.add(mark, +1)
            self._fold.seal(mark)
            counted += 1
        return counted

    def _receipt(self, order: Forget, alias: str, what: str, n: int) -> None:
        row = receipt(order.order, Stage.JUDGE, self._partition, alias, what, n)
        self._outbox.send(Topic.ROWS, self._partition, row)


def _parts(conversation: Conversation) -> Iterable[bytes]:
    """All that may name a subject: its spans, its sessions, settled ones too, and what it told stage 3."""
    yield from (subject.encode() for subject in conversation.subjects)
    yield from (one.verdict for one in conversation.published)
    yield from conversation.packed
    yield from (body for trace in conversation.traces.values() for _, body in trace.spans.values())
