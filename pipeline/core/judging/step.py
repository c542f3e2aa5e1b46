"""Stage 4 for one partition: everything that moves a conversation's state.

```
spans, moves, outcomes --apply--> conversation touched --publish--> cut, judge --> changed? --> verdict, rows, partials
watermark --advance--> due conversations touched (a session went quiet, a deadline passed, a bucket sealed)
```
A publication takes a conversation as a whole: all its ordinals, and tombstones for what a re-cut left over.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.effects import Changed, Outbox, Result, Versions
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.boundaries import cut
from pipeline.core.judging.erase import ConversationEraser
from pipeline.core.judging.fold import Fold
from pipeline.core.judging.intake import Taken, drop_trace, take_outcome, take_spans
from pipeline.core.judging.judge import judge_conversation
from pipeline.core.judging.publish import Publisher
from pipeline.core.judging.seen import SeenTraces
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.judging.views import TraceView
from pipeline.core.timeline import TimeRules
from schemas.erasing import Forget
from schemas.outcome import Attached
from schemas.segment import PartialReset
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Topic

_encode = msgspec.msgpack.Encoder().encode
_decode_conversation = msgspec.msgpack.Decoder(Conversation).decode

CONVERSATION = b"c"
SEALED = b"s"


class JudgeStep:
    """One partition of stage 4.

    Args:
        partition, partitions: this one, and how many there are of every internal topic.
        patience: publications that a busy open conversation may be put off for, so that catching up does not judge it
            again and again; 0 shows it at once.
    """

    def __init__(
        self, partition: int, partitions: int, book: ContractBook, rules: TimeRules, patience: int = 0
    ) -> None:
        self.partition, self.partitions, self.patience = partition, partitions, patience
        self.book, self.rules = book, rules
        self.outbox, self.versions = Outbox(), Versions()
        self.fold = Fold()
        self.conversations: dict[bytes, Conversation] = {}
        self.watermark = 0
        self._publisher = Publisher(partition, partitions, book, rules, self.outbox, self.versions, self.fold)
        self._guard = SettledGuard(book, rules)
        self._eraser = ConversationEraser(partition, partitions, rules, self.outbox, self.fold)
        self._timers: list[tuple[int, bytes]] = []
        self._touched: dict[bytes, int] = {}
        self._seen = SeenTraces(rules.max_spans_per_trace)
        self._dirty: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._replayed: set[bytes] | None = None
        self._outcome_at = 0  # of the newest outcome since the last publication

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        if key[:1] == SEALED:
            self.fold.load_sealed(state)
            return
        if self._eraser.tombstones.load(key, state):
            return
        conversation = _decode_conversation(state)
        self.conversations[key] = conversation
        for one in conversation.published:
            if one.contribution is not None:
                self.fold.add(one.contribution, +1)
        if conversation.due:
            heapq.heappush(self._timers, (conversation.due, key))
        if conversation.fresh or conversation.causes:
            self._touched[key] = self.patience  # it was put off by whoever had it before

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self.fold.changed.clear()
        self._replayed = set()

    def caught_up(self) -> None:
        """Whatever the worker before us sent last and nobody heard of is now overruled."""
        if self._replayed is None:
            return
        for key in self._replayed:
            self._touched[key] = self.patience
        self.publish()
        for key in self._replayed & self.conversations.keys():
            self._publisher.repeat(self.conversations[key])
            self._dirty.add(key)
        self._replayed = None
        first = self.versions.next()
        self._publisher.send_partials(list(self.fold.buckets))
        for target in range(self.partitions):
            self.outbox.send(Topic.PARTIALS, target, PartialReset(self.partition, first))

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[TraceSpans | TraceGone | Attached | Forget]) -> None:
        for record in records:
            if isinstance(record, Forget):
                for order in self._eraser.found(record, self.conversations, self.watermark):
                    self._forget(order)
                continue
            key = _key(record)
            conversation = self.conversations.get(key)
            if conversation is None:
                if isinstance(record, TraceGone) or self._eraser.refuses(record):
                    continue
                conversation = self.conversations[key] = Conversation(
                    record.tenant, record.conversation, {}, {}, [], []
                )
                self._gone.discard(key)
            if isinstance(record, TraceSpans):
                taken = take_spans(conversation, record, self.watermark)
                if taken is None:
                    self.outbox.count(Result.DROPPED, "moved", len(record.spans))
            elif isinstance(record, TraceGone):
                taken = drop_trace(conversation, record)
            else:
                taken = take_outcome(conversation, record)
                self._publisher.outcome_row(record)
                if taken is not None and taken.cause and record.outcome is not None and self._replayed is None:
                    self._outcome_at = max(self._outcome_at, record.outcome.heard_at)
            if taken is not None:
                self._take(key, conversation, record, taken)

    def _take(
        self, key: bytes, conversation: Conversation, record: TraceSpans | TraceGone | Attached, taken: Taken
    ) -> None:
        if not isinstance(record, Attached):
            self._seen.forget(key, record.trace_id)
            self.outbox.count(Result.DROPPED, "repeated", taken.repeated)
        if taken.fresh:
            conversation.fresh.extend(taken.fresh)
        self._touch(key, conversation, taken.cause)

    def _forget(self, order: Forget) -> None:
        """Erase a conversation; what it counts is what it would count now."""
        key = _key(order)
        if self._touched.pop(key, None) is not None and key in self.conversations:
            self._recompute(key, self.conversations[key])
        self._erase(key, order, ())

    def _erase(self, key: bytes, order: Forget, fresh: Sequence[FreshSpan]) -> None:
        self._eraser.erase(order, self.conversations.pop(key, None), fresh, self.watermark)
        self._touched.pop(key, None)
        self._seen.clear()
        self._dirty.discard(key)
        self._gone.add(key)

    def _touch(self, key: bytes, conversation: Conversation, cause: str) -> None:
        if cause and cause not in conversation.causes:
            conversation.causes.append(cause)
        self._touched.setdefault(key, 0)
        self._dirty.add(key)
        if self._replayed is not None:
            self._replayed.add(key)

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self._eraser.tombstones.expire(watermark)
        while self._timers and self._timers[0][0] <= watermark:
            due, key = heapq.heappop(self._timers)
            conversation = self.conversations.get(key)
            if conversation is not None and conversation.due == due:
                self._touched[key] = self.patience

    def passes_on(self, watermark: int) -> int:
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        ready = [key for key, age in self._touched.items() if age >= self.patience or self._judged(key)]
        for key in ready:
            del self._touched[key]
            conversation = self.conversations.get(key)
            if conversation is not None:
                self._recompute(key, conversation)
        for key in self._touched:
            self._touched[key] += 1
        changed = self.fold.changed
        self._publisher.send_partials(sorted(changed), self._outcome_at)
        self._outcome_at = 0
        for bucket in changed:
            self.fold.forget_empty(bucket)
        self.fold.changed = set()

    def _judged(self, key: bytes) -> bool:
        conversation = self.conversations.get(key)
        return conversation is None or any(one.revision for one in conversation.published)

    def _recompute(self, key: bytes, conversation: Conversation) -> None:
        fresh, conversation.fresh = conversation.fresh, []
        views = self._seen.views(key, conversation)
        if fresh and (order := self._eraser.order_for(conversation, views)) is not None:
            self._erase(key, order, fresh)
            return
        sessions = cut(views, self.book, self.rules)
        if fresh and self._guard.applies(sessions, fresh):
            refused = self._guard.refuse(
                conversation,
                fresh,
                lambda one: cut(self._seen.views(key, one, anew=True), self.book, self.rules),
            )
            if refused:
                self._publisher.settled(conversation, refused)
                fresh = [one for one in fresh if one not in refused]
                views = self._seen.views(key, conversation, anew=True)
                sessions = cut(views, self.book, self.rules)
        self.outbox.count(Result.USED, "span", sum(one.before is None for one in fresh))
        self._publisher.left_out(conversation, fresh)
        outcomes = {
            (newest.source, newest.event_id): (newest, held.vias())
            for held in conversation.outcomes.values()
            if (newest := held.newest()) is not None
        }
        judged = judge_conversation(
            conversation.tenant, conversation.name, sessions, outcomes, self.rules, self.watermark
        )
        conversation.waiting = judged.waiting
        if judged.raised:
            self.outbox.count(Result.NOTED, "expression_raised", judged.raised)
        self._publisher.publish(conversation, judged.verdicts, self.watermark)
        self._publisher.steps(conversation, fresh, views)
        self._dirty.add(key)
        self._schedule(key, conversation, views, judged.next_due)

    def _schedule(self, key: bytes, conversation: Conversation, views: Sequence[TraceView], next_due: int) -> None:
        """The next moment to look again: a decision, or the end of retention, when all of it leaves the state."""
        ends = [view.end for view in views]
        ends += [one.event_time for held in conversation.outcomes.values() if (one := held.newest()) is not None]
        if ends or not conversation.due:
            seals = max(ends, default=self.watermark) + self.rules.retention + self.rules.bucket
        else:
            seals = conversation.due  # all of it has gone elsewhere: nothing but time is left to wait for
        if self.watermark >= seals:
            self._seal(key, conversation, views)
            return
        due = min(moment for moment in (next_due, seals) if moment)
        if due != conversation.due:
            conversation.due = due
            heapq.heappush(self._timers, (due, key))

    def _seal(self, key: bytes, conversation: Conversation, views: Sequence[TraceView]) -> None:
        for one in conversation.published:
            if one.contribution is not None:
                self.fold.seal(one.contribution)
        worked = {view.leads_to for view in views if view.work}
        idle = sum(len(view.spans) for view in views if view.leads_to not in worked)
        self.outbox.count(Result.NOTED, "no_work", idle)
        if conversation.waiting:
            self._publisher.expired(conversation)
        del self.conversations[key]
        self._dirty.discard(key)
        self._gone.add(key)

    def changed(self) -> Changed:
        states = [(key, _encode(self.conversations[key])) for key in self._dirty if key in self.conversations]
        states += [(SEALED + _encode(key), self.fold.dump_sealed(key)) for key in self.fold.sealed_changed]
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        self.fold.sealed_changed = set()
        return self._eraser.tombstones.with_changes(states, gone)

    # -- for gauges ----------------------------------------------------------------------------------------------------

    def open_sessions(self) -> int:
        return sum(
            counts.states.get("open", 0) for (cube, _, _), counts in self.fold.buckets.items() if cube == "system"
        )

    def waiting_outcomes(self) -> int:
        return sum(conversation.waiting for conversation in self.conversations.values())


def _key(record: TraceSpans | TraceGone | Attached | Forget) -> bytes:
    """Of a conversation's state."""
    return CONVERSATION + record.tenant.encode() + b"\0" + record.conversation.encode()
