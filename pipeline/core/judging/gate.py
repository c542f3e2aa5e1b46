"""What comes for a conversation is taken, or refused since what it would change has settled or sealed (RULES.md 48).

```
a span that settled sessions do not know and that is one of theirs --> dead letter `settled`
session's bucket seals, at the next thing that happens to its conversation --> its sums go to `fold.seal`, its marks go
an outcome that reaches sealed sessions alone --> dead letter `sealed`; stage 3 hears that a session has it
```
The rule this file keeps: ordinals stay. What was sealed is still read, as later outcomes and sessions must find their
place, but it is published never again.
"""

from __future__ import annotations

from pipeline.core.effects import Outbox, Result
from pipeline.core.judging.attach import reached, stated
from pipeline.core.judging.bench import Bench
from pipeline.core.judging.fold import Fold
from pipeline.core.judging.intake import Taken, take_outcome, take_spans
from pipeline.core.judging.publish import Publisher
from pipeline.core.judging.state import Conversation, sealed
from pipeline.core.judging.telling import Teller
from pipeline.core.timeline import TimeRules
from schemas.outcome import Attached, Outcome
from schemas.span import TraceSpans

SEALED = "sealed"


class Gate:
    """One partition's."""

    def __init__(
        self, rules: TimeRules, bench: Bench, publisher: Publisher, teller: Teller, outbox: Outbox, fold: Fold
    ) -> None:
        self._rules, self._bench, self._publisher, self._teller = rules, bench, publisher, teller
        self._outbox, self._fold = outbox, fold

    # -- what comes ----------------------------------------------------------------------------------------------------

    def take_spans(self, key: bytes, conversation: Conversation, record: TraceSpans) -> Taken | None:
        """Without those that what has settled knows; None where nothing is left, or the trace has gone elsewhere."""
        watermark = self._bench.watermark
        known = self._bench.kept.settled.known(key, conversation, record, watermark)
        self._publisher.known(conversation, known)
        if known.record is None:
            return None
        taken = take_spans(conversation, known.record, watermark)
        if taken is None:
            self._outbox.count(Result.DROPPED, "moved", len(known.record.spans))
        return taken

    def take_outcome(self, key: bytes, conversation: Conversation, record: Attached) -> Taken | None:
        """None where a later one was heard, or what it would change has sealed."""
        if self._refuses(key, conversation, record):
            return None
        before = self._before(conversation, record)[1]
        had = self._reached(key, conversation, record, before) if before is not None else ()
        taken = take_outcome(conversation, record, had)
        self._publisher.outcome_row(record, conversation.began)
        return taken

    # -- sealing -------------------------------------------------------------------------------------------------------

    def is_due(self, key: bytes, conversation: Conversation) -> bool:
        """Whether the bucket of a session has sealed that is not sealed yet; what came before is to be judged first."""
        return self._bench.kept.settled.next_seals(key, conversation) < self._bench.watermark

    def seal(self, key: bytes, conversation: Conversation) -> None:
        """Seal the sessions whose buckets have, the first ones of the conversation."""
        while self.is_due(key, conversation):
            index = conversation.sealed
            one = conversation.published[index]
            if one.contribution is not None:
                self._fold.seal(one.contribution)
            conversation.published[index] = sealed(one.revision)
            self._bench.kept.settled.seal_next(key, conversation)

    def _refuses(self, key: bytes, conversation: Conversation, record: Attached) -> bool:
        """Whether an outcome would change sealed sessions alone; it is dead-lettered, as one for sealed ones is."""
        if not conversation.sealed:
            return False
        stamp, before = self._before(conversation, record)
        after = record.outcome
        if record.stamp < stamp or (after and after.order) == (before and before.order):
            return False
        found = [self._reached(key, conversation, record, one) for one in (after, before) if one is not None]
        if not found[0] or max(found[0]) >= conversation.sealed:
            return False
        self._letter(record, after or before)
        if max(found[-1], default=-1) >= conversation.sealed:
            return False  # it leaves an open session for a sealed one
        self._teller.reached(conversation, record.source, record.event_id, has_it=after is not None)
        return True

    def _before(self, conversation: Conversation, record: Attached) -> tuple[int, Outcome | None]:
        """(stamp, content) of what was heard last of the outcome by this way."""
        known = conversation.outcomes.get(f"{record.source}\0{record.event_id}")
        ways = known.ways if known is not None else []
        return next(((stamp, content) for via, stamp, content in ways if via == record.via), (0, None))

    def _reached(self, key: bytes, conversation: Conversation, record: Attached, outcome: Outcome) -> set[int]:
        sessions = self._bench.cut(key, conversation)
        return reached(outcome, [record.via], sessions, stated(sessions), self._rules)

    def _letter(self, record: Attached, outcome: Outcome | None) -> None:
        self._outbox.count(Result.DEAD_LETTERED, SEALED)
        kind = outcome.kind.value if outcome is not None else ""
        what = kind if record.outcome is not None else f"the withdrawal of {kind}"
        detail = f"for a session whose bucket had sealed when it came: {what} {record.source} {record.event_id}"
        self._publisher.dead_letter(record.tenant, SEALED, detail)
