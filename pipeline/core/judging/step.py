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

from pipeline.core.contracts.book import ContractBook
from pipeline.core.effects import At, Changed, Outbox, Result, Versions
from pipeline.core.judging.bench import Bench
from pipeline.core.judging.erase import ConversationEraser
from pipeline.core.judging.fold import SEALED, Fold
from pipeline.core.judging.gate import Gate
from pipeline.core.judging.intake import Taken, drop_trace
from pipeline.core.judging.judged_by import JudgedBy, touched_by
from pipeline.core.judging.kept import key_of
from pipeline.core.judging.publish import Publisher
from pipeline.core.judging.state import About, Conversation, FreshSpan, Input
from pipeline.core.judging.telling import Teller, hear
from pipeline.core.packing import WORD
from pipeline.core.timeline import DAY, TimeRules
from pipeline.core.windows import forgotten_before
from schemas.contact import Returns
from schemas.erasing import Forget
from schemas.outcome import Attached
from schemas.segment import PartialReset
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Topic

STAGE_5_LAGS = 7 * DAY  # it forgets first, or what is sent anew after a crash would take away what it still shows


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
        self.book, self.rules, self.watermark = book, rules, 0
        self.outbox, self.versions, self.fold = Outbox(), Versions(), Fold(rules)
        self._bench = Bench(book, rules)
        told = self.outbox, self.versions, self.fold
        self._publisher = Publisher(partition, partitions, book, rules, *told, self._bench.guard)
        self._teller = Teller(partitions, self.outbox, self.versions)
        self._gate = Gate(rules, self._bench, self._publisher, self._teller, self.outbox, self.fold)
        self.conversations = self._bench.kept
        self._eraser = ConversationEraser(partition, partitions, rules, self.outbox, self.fold)
        self._judged_by = JudgedBy(book, self._bench.guard)
        self._timers: list[tuple[int, bytes]] = []
        self._touched: dict[bytes, int] = {}
        self._dirty, self._gone, self.aside = set[bytes](), set[bytes](), frozenset[bytes]()
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
        self.watermark = self._bench.watermark = watermark
        for counted in self.conversations.restored(watermark):
            self.fold.add(counted, +1)
        self._age_buckets()
        self.fold.changed.clear()
        self._teller.restored(self.conversations.awake, watermark)
        self.contracts_changed()
        self._replayed = set()

    def contracts_changed(self) -> None:
        """Judge again what contracts may judge that came since; a session's start says by which (RULES.md 31)."""
        news = self._judged_by.news(self.watermark)
        cause = f"contract {', '.join(one.name for one in news[:3])}"
        for key in list(touched_by(news, self.conversations.awake.items(), self.rules.bucket)):
            self._touch(key, self.conversations[key], cause, About(Input.CONTRACT))
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
                self._obey(record)
                continue
            key = key_of(record.tenant, record.conversation)
            if self.conversations.overdue(key, self.watermark):
                self._leave(key)
            conversation = self.conversations.get(key)
            if conversation is not None and self._gate.is_due(key, conversation):
                if (conversation := self._now(key)) is not None:
                    self._gate.seal(key, conversation)
                self._dirty.add(key)
            if conversation is None:
                if isinstance(record, TraceGone | Returns) or self._eraser.refuses(record):
                    continue
                conversation = self.conversations[key] = Conversation(
                    record.tenant, record.conversation, {}, {}, [], []
                )
                self._gone.discard(key)
            if isinstance(record, TraceSpans):
                taken = self._gate.take_spans(key, conversation, record)
            elif isinstance(record, TraceGone):
                held = self.conversations.settled.holds_trace(key, record.trace_id)
                taken = None if held else drop_trace(conversation, record)
            elif isinstance(record, Returns):
                self.conversations.may_rest(key)
                taken = hear(conversation, record)
                self._dirty.add(key)
            else:
                taken = self._gate.take_outcome(key, conversation, record)
                if taken is not None and taken.cause and record.outcome is not None and self._replayed is None:
                    self._outcome_at = max(self._outcome_at, record.outcome.heard_at)
            if taken is not None:
                self._take(key, conversation, record, taken)

    def _take(
        self, key: bytes, conversation: Conversation, record: TraceSpans | TraceGone | Attached | Returns, taken: Taken
    ) -> None:
        if isinstance(record, TraceSpans | TraceGone):
            self._bench.seen.forget(key, record.trace_id)
            self.outbox.count(Result.DROPPED, "repeated", taken.repeated)
        if isinstance(record, TraceSpans) and self._replayed is not None:
            self._teller.saw(key, (body for _, _, body in record.spans))
        if taken.fresh:
            conversation.fresh.extend(taken.fresh)
        self._touch(key, conversation, taken.cause, taken.about)

    def _obey(self, record: Forget) -> None:
        """Erase what an order means; what a conversation counts is what it would count now."""
        orders = self._eraser.found(record, self.conversations.look(), self.watermark)
        for order in orders:
            key = key_of(order.tenant, order.conversation)
            self._now(key)
            self._erase(key, order, ())
        self._eraser.looked(record, len(orders))

    def _erase(self, key: bytes, order: Forget, fresh: Sequence[FreshSpan]) -> None:
        self._eraser.erase(order, self.conversations.pop(key, None), fresh, self.watermark)
        self._touched.pop(key, None)
        self._bench.seen.clear()
        self._dirty.discard(key)
        self._gone.add(key)

    def _now(self, key: bytes) -> Conversation | None:
        """The conversation, judged if that was put off; None where none is left."""
        if self._touched.pop(key, None) is not None and (conversation := self.conversations.get(key)) is not None:
            self._recompute(key, conversation)
        return self.conversations.get(key)

    def _touch(self, key: bytes, conversation: Conversation, cause: str, about: About | None) -> None:
        if cause:
            conversation.caused_by(cause, about)
        self._touched.setdefault(key, 0)
        self._dirty.add(key)
        if self._replayed is not None:
            self._replayed.add(key)

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = self._bench.watermark = watermark
        self._eraser.tombstones.expire(watermark)
        self._age_buckets()
        while self._timers and self._timers[0][0] <= watermark:
            due, key = heapq.heappop(self._timers)
            conversation = self.conversations.awake.get(key)
            if conversation is not None and conversation.due == due:
                self._touched[key] = self.patience
        for key in self.conversations.due(watermark):
            self._leave(key)

    def _age_buckets(self) -> None:
        horizon = self.book.longest_horizon(self.rules.reopen_window)
        before = forgotten_before(self.watermark, self.rules, horizon) - STAGE_5_LAGS
        self._gone.update(self.fold.forget(before))
        self._gone.update(self.fold.to_hours(self.watermark))

    def passes_on(self, watermark: int) -> int:
        return self._teller.held(watermark, self.conversations.awake)

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        ready = [key for key, age in self._touched.items() if age >= self.patience or self._judged(key)]
        for key in ready:
            del self._touched[key]
            if key not in self.aside and (conversation := self.conversations.get(key)) is not None:
                with At(key):
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
        views = self._bench.seen.views(key, conversation)
        if fresh and (order := self._eraser.order_for(conversation, views)) is not None:
            self._erase(key, order, fresh)
            return
        sessions, views, fresh, refused = self._bench.accept(key, conversation, fresh)
        if refused:
            self._publisher.settled(conversation, refused)
        self.outbox.count(Result.USED, "span", sum(one.before is None for one in fresh))
        self._publisher.left_out(conversation, fresh)
        judged = self._bench.judge(conversation, sessions)
        self._teller.tell(key, conversation, judged.contacts, judged.reached, self.watermark)
        if judged.raised:
            self.outbox.count(Result.NOTED, "expression_raised", judged.raised)
        self._publisher.publish(conversation, judged, self.watermark)
        self._publisher.steps(conversation, fresh, views)
        self._dirty.add(key)
        idle = self.conversations.settle(key, conversation, sessions, judged.verdicts, views, self.watermark)
        self.outbox.count(Result.NOTED, "no_work", idle)
        due = self._bench.due(key, conversation, sessions, judged.next_due)
        if not due:
            self._leave(key)
        elif due != conversation.due:
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
        states += self.fold.dump()
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        return self._eraser.tombstones.with_changes(states, gone)

    # -- for gauges ----------------------------------------------------------------------------------------------------

    def open_sessions(self) -> int:
        return self.fold.open_sessions()
