"""Stage 4 alone: what is settled stays, and what has left is forgotten (RULES.md 14, 48)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pipeline.core.effects import Result
from pipeline.core.judging.step import JudgeStep
from pipeline.core.timeline import DAY, SECOND, TimeRules
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Topic
from tests.builders import T0, arrival, span, trace
from tests.oracle.model import OSpan
from tests.property.contracts import BOOK
from tests.property.delivery import SETTLES

RULES = TimeRules()
END = T0 + 10 * SECOND
SETTLED = T0 + RULES.bucket + SETTLES
"""The last watermark at which a session that ends at `END` is not settled."""


class Judge:
    """One partition, caught up, and what it has counted."""

    def __init__(self) -> None:
        self.step = JudgeStep(0, 1, BOOK, RULES)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.step.opened(0)
        self.step.caught_up()

    def apply(self, *spans: OSpan, stamp: int = 1, conversation: str = "c") -> None:
        for one in spans:
            sent = arrival(one)
            content = [(sent.span_id, sent.record_time, sent.body)]
            self.step.apply([TraceSpans(sent.tenant, conversation, sent.trace_id, stamp, content)])

    def advance(self, watermark: int) -> None:
        self.step.advance(watermark)

    def publish(self) -> int:
        """The number of verdicts sent."""
        self.step.publish()
        records, counts = self.step.outbox.take()
        self.counts.update(counts)
        return len(records.get((Topic.VERDICTS, 0), []))


def test_rule_48_a_span_joins_a_session_up_to_the_moment_it_settles() -> None:
    judge = Judge()
    judge.apply(*trace(1, T0))
    judge.advance(SETTLED)
    judge.publish()
    judge.apply(span(1, 109, T0, T0 + 1, "tool", 100, tool="lookup"))
    assert judge.publish() == 1
    judge.advance(SETTLED + 1)
    judge.apply(span(1, 110, T0, T0 + 1, "tool", 100, tool="lookup"))
    assert judge.publish() == 0
    assert judge.counts[Result.DEAD_LETTERED, "settled"] == 1
    assert judge.counts[Result.USED, "span"] == 3


def test_rule_49_what_came_in_time_is_taken_though_event_time_went_on_before_it_was_judged() -> None:
    judge = Judge()
    judge.apply(*trace(1, T0))
    judge.advance(SETTLED + DAY)
    assert judge.publish() == 1
    assert judge.counts[Result.DEAD_LETTERED, "settled"] == 0


def test_rule_48_a_copy_that_comes_when_all_is_settled_leaves_the_one_before_it() -> None:
    judge = Judge()
    spans = trace(1, T0)
    judge.apply(*spans)
    judge.advance(SETTLED + 1)
    judge.publish()
    judge.apply(replace(spans[1], failed=True))
    assert judge.publish() == 0
    assert judge.counts[Result.DEAD_LETTERED, "settled"] == 0
    assert judge.counts[Result.DROPPED, "repeated"] == 1


def test_spans_of_a_trace_that_has_gone_are_dropped_and_counted() -> None:
    judge = Judge()
    spans = trace(1, T0)
    judge.apply(spans[0], stamp=1)
    judge.step.apply([TraceGone("default", "c", bytes.fromhex(spans[0].trace_id), 2)])
    judge.apply(*spans, stamp=1)
    judge.publish()
    assert judge.counts[Result.DROPPED, "moved"] == 2
    judge.apply(*spans, stamp=3)
    assert judge.publish() == 1


def test_a_conversation_that_all_has_left_is_forgotten() -> None:
    judge = Judge()
    spans = trace(1, T0)
    judge.apply(*spans)
    judge.publish()
    judge.step.apply([TraceGone("default", "c", bytes.fromhex(spans[0].trace_id), 2)])
    judge.publish()
    for days in (40, 80):
        judge.advance(END + days * DAY)
        judge.publish()
    assert not judge.step.conversations


def test_rule_48_what_a_conversation_counted_stays_when_it_is_forgotten() -> None:
    judge = Judge()
    judge.apply(*trace(1, T0, family=("order",)))
    judge.advance(END + DAY)
    judge.publish()
    before = {key: dict(counts.cells) for key, counts in judge.step.fold.buckets.items()}
    for days in (30, 40):
        judge.advance(END + days * DAY)
        judge.publish()
    assert not judge.step.conversations
    after = {key: dict(counts.cells) for key, counts in judge.step.fold.buckets.items()}
    assert after.keys() == before.keys()
    restored = JudgeStep(0, 1, BOOK, RULES)
    for key, state in judge.step.changed().states:
        restored.load(key, state)
    assert {key: dict(counts.cells) for key, counts in restored.fold.buckets.items()} == after
