"""Stage 2 alone: what it holds, moves and refuses (RULES.md 1, 5, 6, 48)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pipeline.core.effects import Result
from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from schemas.span import Asked, Stated, TraceGone, TraceSpans
from schemas.topics import Topic
from tests.builders import T0, arrival, span, trace
from tests.oracle.model import OSpan

RULES = TimeRules()
SETTLES = 3 * DAY
END = T0 + 10 * SECOND


class Resolve:
    """One partition, caught up, and what it has sent and counted."""

    def __init__(self) -> None:
        self.step = ResolveStep(0, 1, RULES, SETTLES)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.step.opened(0)
        self.step.caught_up()

    def apply(self, *spans: OSpan) -> list[Any]:
        self.step.apply([arrival(one) for one in spans])
        return self.sent()

    def advance(self, watermark: int) -> list[Any]:
        self.step.advance(watermark)
        return self.sent()

    def sent(self) -> list[Any]:
        records, counts = self.step.outbox.take()
        self.counts.update(counts)
        return [one for (topic, _), box in records.items() if topic is not Topic.DEAD_LETTERS for one in box]


def homes(records: list[Any]) -> list[str]:
    return [one.conversation for one in records if isinstance(one, TraceSpans)]


def test_a_trace_without_an_id_is_held_for_the_trace_timeout_and_holds_event_time_back() -> None:
    stage = Resolve()
    assert homes(stage.apply(*trace(1, T0, None))) == []
    limit = END + RULES.trace_timeout
    assert homes(stage.advance(limit)) == []
    assert stage.step.passes_on(limit) == T0
    assert homes(stage.advance(limit + 1)) == [f"trace:{1:032x}"]
    assert stage.step.passes_on(limit + 1) == limit + 1


def test_a_span_that_ended_earlier_than_all_before_it_brings_the_timeout_forward() -> None:
    stage = Resolve()
    stage.apply(span(1, 1, T0, END))
    stage.apply(span(1, 2, T0, T0 + SECOND, "tool", 1))
    assert homes(stage.advance(T0 + SECOND + RULES.trace_timeout + 1)) == [f"trace:{1:032x}"]


def test_what_comes_after_the_watermark_stopped_is_due_without_its_going_on() -> None:
    stage = Resolve()
    stage.advance(END + DAY)
    stage.apply(*trace(1, T0, None))
    assert homes(stage.advance(END + DAY)) == [f"trace:{1:032x}"]


def test_rule_05_an_id_that_comes_later_takes_all_spans_along_and_withdraws_the_trace() -> None:
    stage = Resolve()
    stage.apply(*trace(1, T0, None))
    stage.advance(END + HOUR)
    sent = stage.apply(span(1, 109, END, END, "step", 100, id="c"))
    assert [one.conversation for one in sent if isinstance(one, TraceGone)] == [f"trace:{1:032x}"]
    assert [len(one.spans) for one in sent if isinstance(one, TraceSpans)] == [3]


def test_spans_are_used_once_they_are_sent_and_dropped_where_there_is_no_work() -> None:
    stage = Resolve()
    stage.apply(*trace(1, T0), span(2, 200, T0, END, "step"))
    assert stage.counts[Result.USED, "span"] == 2
    stage.advance(END + SETTLES + RULES.bucket + 1)
    assert stage.counts[Result.DROPPED, "no_work"] == 1


def test_rule_06_a_trace_without_work_states_its_keys_for_no_conversation() -> None:
    stage = Resolve()
    sent = stage.apply(span(1, 1, T0, END, "step", id="c", keys={"order": ("k",)}))
    assert {one.conversation for one in sent if isinstance(one, Stated)} == {""}


def test_rule_48_a_span_that_ended_before_retention_is_refused_and_one_at_its_edge_is_not() -> None:
    stage = Resolve()
    stage.advance(END + RULES.retention)
    assert homes(stage.apply(span(2, 200, T0, END, id="c"))) == ["c"]
    stage.apply(span(3, 300, T0, END - 1, id="c"))
    assert stage.counts[Result.DEAD_LETTERED, "sealed"] == 1


def test_rule_48_an_unknown_span_of_a_settled_trace_without_work_is_refused() -> None:
    stage = Resolve()
    stage.apply(span(1, 1, T0, END, "step", id="c"), span(2, 2, T0, END, "step"))
    stage.advance(END + SETTLES + RULES.bucket + 1)
    stage.apply(span(2, 3, T0, END, "tool"))
    assert stage.counts[Result.DEAD_LETTERED, "settled"] == 1


def test_in_a_replay_a_trace_that_is_held_asks_once() -> None:
    step = ResolveStep(0, 1, RULES, SETTLES)
    step.opened(0)
    linked = span(1, 1, T0, END, links=(f"{9:032x}",))
    asked = 0
    records: list[Any] = [arrival(linked)]
    for _ in range(5):
        step.apply(records)
        sent, _counts = step.outbox.take()
        records = sent.get((Topic.SPANS, 0), [])
        asked += sum(isinstance(one, Asked) for one in records)
    assert asked == 1


def test_rule_01_all_copies_of_a_span_are_one_whichever_comes_first() -> None:
    better = span(1, 1, T0, END + MINUTE, id="c")
    worse = span(1, 1, T0, END)
    for copies in ((better, worse), (worse, better)):
        stage = Resolve()
        stage.apply(copies[0])
        stage.apply(copies[1])
        (state,) = stage.step.traces.values()
        assert (state.end, state.first_end, state.conversation) == (END + MINUTE, END + MINUTE, "c")
