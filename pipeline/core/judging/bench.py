"""From what is kept of a conversation to its sessions and verdicts: its traces are looked at, cut and judged here.

The rule this file keeps: all that is read is the conversation, the contracts and the watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.boundaries import Session, cut
from pipeline.core.judging.judge import Judged, judge_conversation
from pipeline.core.judging.kept import Kept
from pipeline.core.judging.seen import SeenTraces
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.judging.telling import elsewhere
from pipeline.core.judging.views import TraceView
from pipeline.core.timeline import TimeRules
from schemas.verdict import Verdict


class Accepted(NamedTuple):
    """The sessions with the spans that came, without those that came after their session had settled."""

    sessions: list[Session]
    views: list[TraceView]
    fresh: list[FreshSpan]
    refused: list[FreshSpan]


class Cut(NamedTuple):
    """The sessions of a conversation, and of what: they hold as long as it is the same."""

    views: list[TraceView]
    packed: list[Session]
    contracts: int
    sessions: list[Session]

    def is_of(self, views: list[TraceView], packed: list[Session], contracts: int) -> bool:
        return self.contracts == contracts and _same(self.views, views) and _same(self.packed, packed)


MOST_CUTS = 4096


class Bench:
    """One partition's. `watermark`, ns, is what it judges at."""

    def __init__(self, book: ContractBook, rules: TimeRules) -> None:
        self._book, self._rules = book, rules
        self.watermark = 0
        self.seen = SeenTraces(rules.max_spans_per_trace)
        self.guard = SettledGuard(book, rules)
        self.kept = Kept(book, rules, self.guard, self._verdicts)
        self._cuts: dict[bytes, Cut] = {}

    def accept(self, key: bytes, conversation: Conversation, fresh: list[FreshSpan]) -> Accepted:
        """Cut it with what came; a span that would change what has settled is taken out again (RULES.md 48)."""
        sessions, refused = self.cut(key, conversation), []
        if fresh and self.guard.applies(sessions, fresh):
            refused = self.guard.refuse(conversation, fresh, lambda one: self.cut(key, one, anew=True))
            if refused:
                fresh = [one for one in fresh if one not in refused]
                sessions = self.cut(key, conversation, anew=True)
        return Accepted(sessions, self.seen.views(key, conversation), fresh, refused)

    def judge(self, conversation: Conversation, sessions: Sequence[Session]) -> Judged:
        outcomes = {
            (newest.source, newest.event_id): (newest, held.vias())
            for held in conversation.outcomes.values()
            if (newest := held.newest()) is not None
        }
        returns, at = elsewhere(conversation), self.watermark
        return judge_conversation(conversation.tenant, conversation.name, sessions, outcomes, self._rules, at, returns)

    def due(self, key: bytes, conversation: Conversation, sessions: Sequence[Session], next_due: int) -> int:
        """The next moment to look again: a decision, what settles, or the end of retention; 0 when that is past."""
        views = self.seen.views(key, conversation)
        leaves = self.kept.leaves_at(key, conversation, views)
        conversation.leaves = leaves = leaves or self.watermark + self._rules.retention + self._rules.bucket
        if self.watermark >= leaves:
            return 0
        settles = self.kept.settled.settles_next(sessions[len(conversation.packed) :], views) + 1
        return min(moment for moment in (next_due, settles, leaves) if moment > self.watermark)

    def cut(self, key: bytes, conversation: Conversation, anew: bool = False) -> list[Session]:
        """Cut it, unless it was cut before as it is now: then its sessions bring their summaries along."""
        views, packed = self.seen.views(key, conversation, anew), self.kept.settled.sessions(key)
        contracts = len(self._book)  # there are only ever more of them
        known = self._cuts.get(key)
        if known is not None and known.is_of(views, packed, contracts):
            return list(known.sessions)
        if len(self._cuts) >= MOST_CUTS:
            self._cuts.clear()
        sessions = cut(views, self._book, self._rules, packed)
        self._cuts[key] = Cut(views, packed, contracts, list(sessions))
        return sessions

    def _verdicts(self, key: bytes, conversation: Conversation) -> list[Verdict]:
        """As it was judged last, where time alone changes nothing any more."""
        return self.judge(conversation, self.cut(key, conversation)).verdicts


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
