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
from pipeline.core.judging.boundaries import Session, cut
from pipeline.core.judging.erase import ConversationEraser
from pipeline.core.judging.fold import Fold
from pipeline.core.judging.intake import Taken, drop_trace, take_outcome, take_spans
from pipeline.core.judging.judge import Judged, judge_conversation
from pipeline.core.judging.judged_by import JudgedBy, touched_by
from pipeline.core.judging.kept import Kept
from pipeline.core.judging.publish import Publisher
from pipeline.core.judging.seen import SeenTraces
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.judging.telling import Teller, elsewhere, hear
from pipeline.core.packing import WORD
from pipeline.core.timeline import TimeRules
from schemas.contact import Returns
from schemas.erasing import Forget
from schemas.outcome import Attached
from schemas.segment import PartialReset
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Topic
from schemas.verdict import Verdict

_encode = msgspec.msgpack.Encoder().encode

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
        self.watermark = 0
        self._publisher = Publisher(partition, partitions, book, rules, self.outbox, self.versions, self.fold)
        self._guard = SettledGuard(book, rules)
        self.conversations = Kept(book, rules, self._guard, self._verdicts)
        self._teller = Teller(partitions, self.outbox, self.versions)
        self._eraser = ConversationEraser(partition, partitions, rules, self.outbox, self.fold)
        self._judged_by = JudgedBy(book)
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
        if key[:1] == WORD:
            self.conversations.words.load(key, state)
            return
        if self._eraser.tombstones.load(key, state) or self._judged_by.load(key, state):
            return
        conversation = self.conversations.load(key, state)
        if conversation is None:
            return
        for one in conversation.published:
            if one.contribution is not None:
                self.fold.add(one.contribution, +1)
        if conversation.due:
            heapq.heappush(self._timers, (conversation.due, key))
        if conversation.fresh or conversation.causes:
            self._touched[key] = self.patience  # it was put off by whoever had it before

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        for counted in self.conversations.restored(watermark):
            self.fold.add(counted, +1)
        self.fold.changed.clear()
        self._teller.restored(self.conversations.awake, watermark)
        self.contracts_changed()
        self._replayed = set()

    def contracts_changed(self) -> None:
        """Judge again what contracts may judge that came since; a session's start says by which (RULES.md 31)."""
        news = self._judged_by.news()
        cause = f"contract {', '.join(one.name for one in news[:3])}"
        for key in list(touched_by(news, self.conversations.awake.items(), self.rules.bucket)):
            self._touch(key, self.conversations[key], cause)
            self._touched[key] = self.patience

    def caught_up(self) -> None:
        """Whatever the worker before us sent last and nobody heard of is now overruled."""
        if self._replayed is None:
            return
        self._touched.update(dict.fromkeys(self._replayed, self.patience))
        self._teller.repeat(self._replayed)
        self.publish()
        self._teller.repeat(())
        for key in self._replayed & self.conversations.keys():
            self._publisher.repeat(self.conversations[key])
            self._dirty.add(key)
        self._replayed = None
        first = self.versions.next()
        self._publisher.send_partials(list(self.fold.buckets))
        for target in range(self.partitions):
            self.outbox.send(Topic.PARTIALS, target, PartialReset(self.partition, first))

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[TraceSpans | TraceGone | Attached | Returns | Forget]) -> None:
        for record in records:
            if isinstance(record, Forget):
                for order in self._eraser.found(record, self.conversations.look(), self.watermark):
                    self._forget(order)
                continue
            key = _key(record)
            if self.conversations.overdue(key, self.watermark):
                self._leave(key)
            conversation = self.conversations.get(key)
            if conversation is None:
                if isinstance(record, TraceGone | Returns) or self._eraser.refuses(record):
                    continue
                conversation = self.conversations[key] = Conversation(
                    record.tenant, record.conversation, {}, {}, [], []
                )
                self._gone.discard(key)
            if isinstance(record, TraceSpans):
                taken = self._take_spans(key, conversation, record)
            elif isinstance(record, TraceGone):
                held = self.conversations.holds_trace(key, record.trace_id)
                taken = None if held else drop_trace(conversation, record)
            elif isinstance(record, Returns):
                self.conversations.hears(key)
                taken = hear(conversation, record)
                self._dirty.add(key)
            else:
                taken = take_outcome(conversation, record)
                self._publisher.outcome_row(record)
                if taken is not None and taken.cause and record.outcome is not None and self._replayed is None:
                    self._outcome_at = max(self._outcome_at, record.outcome.heard_at)
            if taken is not None:
                self._take(key, conversation, record, taken)

    def _take_spans(self, key: bytes, conversation: Conversation, record: TraceSpans) -> Taken | None:
        known = self.conversations.known(key, conversation, record, self.watermark)
        if known.repeated:
            self.outbox.count(Result.DROPPED, "repeated", known.repeated)
        if known.refused:
            self._publisher.settled(conversation, known.refused)
        if known.record is None:
            return None
        taken = take_spans(conversation, known.record, self.watermark)
        if taken is None:
            self.outbox.count(Result.DROPPED, "moved", len(known.record.spans))
        return taken

    def _take(
        self, key: bytes, conversation: Conversation, record: TraceSpans | TraceGone | Attached | Returns, taken: Taken
    ) -> None:
        if isinstance(record, TraceSpans | TraceGone):
            self._seen.forget(key, record.trace_id)
            self.outbox.count(Result.DROPPED, "repeated", taken.repeated)
        if isinstance(record, TraceSpans) and self._replayed is not None:
            self._teller.saw(key, (body for _, _, body in record.spans))
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
            conversation = self.conversations.awake.get(key)
            if conversation is not None and conversation.due == due:
                self._touched[key] = self.patience
        for key in self.conversations.due(watermark):
            self._leave(key)

    def passes_on(self, watermark: int) -> int:
        return self._teller.held(watermark, self.conversations.awake)

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
        self.conversations.rest(self._touched)
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
        sessions = self._cut(key, conversation)
        if fresh and self._guard.applies(sessions, fresh):
            refused = self._guard.refuse(conversation, fresh, lambda one: self._cut(key, one, anew=True))
            if refused:
                self._publisher.settled(conversation, refused)
                fresh = [one for one in fresh if one not in refused]
                views = self._seen.views(key, conversation, anew=True)
                sessions = self._cut(key, conversation)
        self.outbox.count(Result.USED, "span", sum(one.before is None for one in fresh))
        self._publisher.left_out(conversation, fresh)
        judged = self._judge(conversation, sessions)
        self._teller.tell(key, conversation, judged.contacts, judged.reached, self.watermark)
        if judged.raised:
            self.outbox.count(Result.NOTED, "expression_raised", judged.raised)
        self._publisher.publish(conversation, judged.verdicts, self.watermark)
        self._publisher.steps(conversation, fresh, views)
        self._dirty.add(key)
        idle = self.conversations.settle(key, conversation, sessions, judged.verdicts, views, self.watermark)
        if idle:
            self.outbox.count(Result.NOTED, "no_work", idle)
        self._schedule(key, conversation, sessions, judged.next_due)

    def _cut(self, key: bytes, conversation: Conversation, anew: bool = False) -> list[Session]:
        views = self._seen.views(key, conversation, anew)
        return cut(views, self.book, self.rules, self.conversations.packed(key))

    def _judge(self, conversation: Conversation, sessions: Sequence[Session]) -> Judged:
        outcomes = {
            (newest.source, newest.event_id): (newest, held.vias())
            for held in conversation.outcomes.values()
            if (newest := held.newest()) is not None
        }
        return judge_conversation(
            conversation.tenant, conversation.name, sessions, outcomes, self.rules, self.watermark,
            elsewhere(conversation),
        )  # fmt: skip

    def _verdicts(self, key: bytes, conversation: Conversation) -> list[Verdict]:
        """As it was judged last, if time alone changes nothing any more."""
        return self._judge(conversation, self._cut(key, conversation)).verdicts

    def _schedule(self, key: bytes, conversation: Conversation, sessions: Sequence[Session], next_due: int) -> None:
        """The next moment to look again: a decision, what settles, or the end of retention, when all of it leaves."""
        views = self._seen.views(key, conversation)
        leaves = self.conversations.leaves_at(key, conversation, views) or conversation.due
        leaves = leaves or self.watermark + self.rules.retention + self.rules.bucket
        if self.watermark >= leaves:
            self._leave(key)
            return
        settles = self.conversations.settles_next(sessions[len(conversation.packed) :], views)
        due = min(moment for moment in (next_due, settles + 1 if settles >= self.watermark else 0, leaves) if moment)
        if due != conversation.due:
            conversation.due = due
            heapq.heappush(self._timers, (due, key))

    def _leave(self, key: bytes) -> None:
        """Its retention is over: what its sessions count stays."""
        for counted in self.conversations.leave(key):
            self.fold.seal(counted)
        self._dirty.discard(key)
        self._gone.add(key)

    def changed(self) -> Changed:
        kept = ((key, self.conversations.state(key)) for key in self._dirty)
        states = [(key, state) for key, state in kept if state is not None]
        states += [*self.conversations.words.dump(), *self._judged_by.changed()]
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


def _key(record: TraceSpans | TraceGone | Attached | Returns | Forget) -> bytes:
    """Of a conversation's state."""
    return CONVERSATION + record.tenant.encode() + b"\0" + record.conversation.encode()
