"""Rule 8 for the whole line: what is above a trace's limit counts for no id, key, link or row, and is forgotten."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from pipeline.core.judging.step import JudgeStep
from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import DAY, HOUR, SECOND, TimeRules, to_text
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import AGENT, CHAT, Line, sent, tool, turn

RULES = TimeRules(max_spans_per_trace=2)
END = T0 + 10 * SECOND


def third(trace: int, start: int, said: dict[str, Any]) -> dict[str, Any]:
    """A span that starts after the two of a `turn`."""
    return sent(trace, trace * 100 + 99, start + 5 * SECOND, start + 6 * SECOND, {**tool("x"), **said}, trace * 100)


def named(conversation: str, **more: Any) -> dict[str, Any]:
    return {"gen_ai.conversation.id": conversation, "trueup.task.family": "order", **more}


def test_rule_08_an_id_on_a_span_above_the_limit_is_none() -> None:
    line = Line(RULES).spans(*turn(2, T0), third(2, T0, {"gen_ai.conversation.id": "zz"})).until(T0 + 2 * DAY)
    assert line.only()["conversation"] == f"trace:{2:032x}"
    assert not line.only()["attributed"]


def test_rule_08_a_key_on_a_span_above_the_limit_leads_nowhere() -> None:
    line = Line(RULES).spans(*turn(1, T0, named("c", **{"trueup.correlation.o": "A"})))
    line.spans(*turn(2, T0 + 3 * HOUR, named("d")), third(2, T0 + 3 * HOUR, {"trueup.correlation.o": "A"}))
    line.outcome("i", T0 + 4 * HOUR, "invalidate", correlation={"o": "A"}).until(T0 + 2 * DAY)
    assert [(one["conversation"], one["invalid"]) for one in line.sessions()] == [("c", True), ("d", False)]
    assert line.waiting() == 0


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_rule_08_what_a_span_said_that_is_pushed_out_is_withdrawn(order: tuple[int, ...]) -> None:
    """The last of three spans names the conversation and the order."""
    spans = [*turn(2, T0), third(2, T0, named("zz", **{"trueup.correlation.o": "A"}))]
    line = Line(RULES).spans(*turn(1, T0 - HOUR, named("c", **{"trueup.correlation.o": "A"})))
    for index in order:
        line.spans(spans[index])
    line.outcome("i", T0 + HOUR, "invalidate", correlation={"o": "A"}).until(T0 + 2 * DAY)
    told = {one["conversation"]: one["invalid"] for one in line.sessions()}
    assert told == {"c": True, f"trace:{2:032x}": False}
    assert line.waiting() == 0
    assert line.sessions("zz") == []
    assert [one["flags"] for one in line.sessions(f"trace:{2:032x}")] == [["truncated"]]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_rule_08_a_response_id_of_a_span_that_is_pushed_out_leads_nobody(order: tuple[int, ...]) -> None:
    answer = {**CHAT, "gen_ai.response.id": "r1"}
    spans = [*turn(1, T0, named("c")), sent(1, 150, T0 + 2 * SECOND, T0 + 3 * SECOND, answer, 100)]
    line = Line(RULES).spans(
        sent(2, 200, T0 + HOUR, T0 + HOUR + SECOND, AGENT), sent(2, 201, T0 + HOUR, T0 + HOUR + SECOND, answer)
    )
    for index in order:
        line.spans(spans[index])
    line.until(T0 + 2 * DAY)
    assert [one["conversation"] for one in line.sessions()] == ["c", f"trace:{2:032x}"]


def test_rule_08_rows_of_a_span_that_is_pushed_out_are_taken_back() -> None:
    line = Line(RULES).spans(third(1, T0, named("c"))).until(T0 + SECOND)
    line.spans(*turn(1, T0, named("c"))).until(T0 + 2 * DAY)
    newest = {row["span_id"]: row for row in sorted(line.rows("agent_steps"), key=lambda row: row["version"])}
    assert {span_id for span_id, row in newest.items() if not row["is_deleted"]} == {f"{100:016x}", f"{101:016x}"}
    assert f"{199:016x}" in newest


@pytest.mark.parametrize("back", [False, True], ids=["as they started", "the other way round"])
def test_rule_08_a_trace_of_very_many_spans_takes_no_more_memory_than_its_limit_allows(back: bool) -> None:
    line = Line(RULES).spans(*turn(1, T0, named("c")))
    numbers = range(200, 300)
    for number in reversed(numbers) if back else numbers:
        line.spans(sent(1, number, T0 + number, END, CHAT, 100))
    most = RULES.max_spans_per_trace
    for step in line.runner.steps(Stage.RESOLVE).values():
        assert isinstance(step, ResolveStep)
        assert all(len(trace.known) <= 2 * most for trace in step.traces.values())
    for other in line.runner.steps(Stage.JUDGE).values():
        assert isinstance(other, JudgeStep)
        assert all(len(one.spans) <= 4 * most for kept in other.conversations.values() for one in kept.traces.values())
    assert line.until(T0 + DAY).only()["flags"] == ["truncated"]
    assert line.counted("noted", "truncated") + line.counted("dropped", "truncated") == 100


def test_rule_08_a_copy_of_a_span_that_is_forgotten_is_counted_again_as_left_out() -> None:
    line = Line(RULES).spans(*turn(1, T0, named("c")))
    for _ in range(2):
        for number in range(200, 210):
            line.spans(sent(1, number, T0 + number, END, CHAT, 100))
    assert line.counted("dropped", "duplicate", Stage.RESOLVE) == RULES.max_spans_per_trace
    assert line.counted("dropped", "truncated", Stage.RESOLVE) == 2 * (10 - RULES.max_spans_per_trace)
    line.until(T0 + 20 * DAY).spans(sent(1, 209, T0 + 209, END, CHAT, 100))
    assert line.counted("dropped", "truncated", Stage.RESOLVE) == 2 * (10 - RULES.max_spans_per_trace) + 1
    assert line.letters() == []


def test_rule_08_a_better_copy_that_starts_later_lets_the_next_span_in() -> None:
    line = Line(RULES).spans(*turn(1, T0, named("c")), sent(1, 150, T0 + SECOND, END + SECOND, CHAT, 100))
    line.spans(sent(1, 101, T0 + 4 * SECOND, END + HOUR, {**CHAT, "more": 1}, 100), record_time=END + HOUR + SECOND)
    found = line.until(T0 + DAY).only()
    assert found["end"] == to_text(END + SECOND)
