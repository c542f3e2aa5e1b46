"""Errors at the end, hand-offs to people, terminal reasons and tool calls (RULES.md 19 to 22)."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from schemas.verdict import Verdict
from tests.builders import T0, outcome, span, trace
from tests.oracle.model import OSpan
from tests.unit.core.judged import judged

END = T0 + 10 * SECOND


def order(number: int = 1, start: int = T0, **more: Any) -> list[OSpan]:
    return trace(number, start, family=("order",), **more)


def call(number: int, start: int, name: str = "lookup", trace_number: int = 1, **more: Any) -> OSpan:
    """A tool span of a second."""
    return span(
        trace_number, trace_number * 100 + number, start, start + SECOND, "tool", trace_number * 100, tool=name, **more
    )


def person(number: int = 4, **more: Any) -> OSpan:
    return span(1, 100 + number, T0, T0 + 1, "handoff", 100, **{"handoff_target": "care_human", **more})


def only(*given: Any, **more: Any) -> Verdict:
    (found,) = judged(*given, **more)
    return found


# -- 19: errors --------------------------------------------------------------------------------------------------------


def test_rule_19_an_error_that_was_got_over_is_none_at_the_end() -> None:
    assert only([*order(), call(4, T0, failed=True)]).terminal_reason == "completed"


def test_rule_19_what_steers_a_graph_is_no_failure() -> None:
    assert only([*order(), call(4, END, failed=True, control_flow=True)]).terminal_reason == "ended"


def test_rule_19_a_root_that_is_no_work_cannot_fail_a_session() -> None:
    root = span(1, 99, T0, END, "step", id="c", failed=True)
    spans = [root, span(1, 100, T0, END, "inference", 99, finish_reasons=("stop",), family=("order",))]
    assert only(spans).terminal_reason == "completed"
    assert only([root, *spans[1:], *trace(2, END + 1, failed=True)]).terminal_reason == "failed"


# -- 20: hand-offs to people -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "attempted", "escalated"),
    [
        pytest.param({}, True, True, id="that ended well"),
        pytest.param({"failed": True, "control_flow": True}, True, True, id="that ended by a control-flow exception"),
        pytest.param({"failed": True}, True, False, id="that failed"),
        pytest.param({"interrupted": True}, True, False, id="that was interrupted"),
        pytest.param({"handoff_target": "other_agent"}, False, False, id="from agent to agent"),
    ],
)
def test_rule_20_a_hand_off(more: dict[str, Any], attempted: bool, escalated: bool) -> None:
    found = only([*order(), person(**more)])
    assert (found.handoff_attempted, found.escalated) == (attempted, escalated)


@pytest.mark.parametrize(
    ("outer", "inner", "attempted", "escalated"),
    [
        ({}, {}, True, True),
        ({}, {"failed": True}, True, False),
        ({"failed": True}, {}, True, False),
        ({}, {"interrupted": True}, True, False),
        ({"interrupted": True}, {"failed": True}, True, False),
        ({}, {"failed": True, "control_flow": True}, True, True),
    ],
)
@pytest.mark.parametrize("between", [False, True], ids=["right below", "below a step"])
def test_rule_20_nested_spans_of_one_hand_off_failed_if_any_failed(
    outer: dict[str, Any], inner: dict[str, Any], attempted: bool, escalated: bool, between: bool
) -> None:
    step = span(1, 110, T0, T0 + 1, "step", 104)
    below = span(1, 111, T0, T0 + 1, "handoff", 110 if between else 104, handoff_target="care_human", **inner)
    found = only([*order(), person(4, **outer), *([step] if between else []), below])
    assert (found.handoff_attempted, found.escalated) == (attempted, escalated)
    assert found.terminal_reason == ("escalated" if escalated else found.terminal_reason)


def test_rule_20_any_accepted_one_escalates_and_only_its_own_retraction_undoes_an_outcome() -> None:
    said = outcome("e", END + HOUR, "escalation", data={"state": "accepted"})
    denied = outcome("f", END + 2 * HOUR, "escalation", data={"state": "failed"})
    assert only([*order(), person(failed=True)], [said, denied]).escalated
    assert not only(order(), [said, outcome("e", END + 2 * HOUR, "retract")]).escalated


def test_rule_20_a_person_reached_by_a_tool_is_a_tool_call_unless_its_name_says_hand_off() -> None:
    assert only([*order(), call(4, T0, "escalate_to_human")]).tool_calls == 1
    assert only([*order(), person(tool="transfer_to_human")]).tool_calls == 0


# -- 21: terminal reasons ----------------------------------------------------------------------------------------------

WAITS = span(1, 105, END, END, "tool", 100, tool="ask_customer", interrupted=True)
APPROVAL = span(1, 106, END, END, "tool", 100, tool="refund", interrupted=True)
FAILED = span(1, 107, END, END, "tool", 100, tool="lookup", failed=True)
OPEN_ENDED = span(1, 108, END, END, "tool", 100, tool="lookup")
REFUSED = span(1, 109, T0, T0, "tool", 100, tool="refuse")


@pytest.mark.parametrize(
    ("spans", "told", "reason"),
    [
        ([*order(claim="failed"), person(), REFUSED], [outcome("e", END, "invalidate")], "invalid"),
        ([*order(claim="failed"), person(), REFUSED], [], "refused"),
        ([*order(claim="completed"), person()], [], "escalated"),
        ([*order(claim="failed"), FAILED], [], "claimed_failed"),
        ([*order(claim="completed"), FAILED], [], "completed"),
        ([*order(), FAILED, APPROVAL], [], "failed"),
        ([*order(), WAITS, APPROVAL], [], "timed_out"),
        ([*order(), WAITS], [], "abandoned"),
        ([*order(), OPEN_ENDED], [], "ended"),
    ],
)
def test_rule_21_the_first_reason_that_holds(spans: list[OSpan], told: list[Any], reason: str) -> None:
    assert only(spans, told).terminal_reason == reason


def test_rule_21_a_run_that_joins_makes_an_ended_session_open_again() -> None:
    spans = [*order(), *trace(2, END + HOUR)]
    assert only(spans[:2], watermark=END + HOUR).terminal
    assert not only(spans, watermark=END + HOUR + 10 * SECOND + 30 * MINUTE).terminal
    assert only(spans, watermark=END + HOUR + 10 * SECOND + 30 * MINUTE + 1).terminal


# -- 22: tool calls ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "calls", "ok"),
    [
        pytest.param([{"failed": True}, {}], 1, 1, id="failed, then ok"),
        pytest.param([{"interrupted": True}, {}], 1, 1, id="interrupted, then ok"),
        pytest.param([{}, {}], 2, 2, id="ok, then again"),
        pytest.param([{"failed": True}, {"interrupted": True}], 1, 0, id="failed, then interrupted"),
        pytest.param([{"interrupted": True}], 0, 0, id="only ever interrupted"),
        pytest.param([{"failed": True}, {"tool": "search"}], 2, 1, id="another tool"),
        pytest.param([{"failed": True, "call_id": None}, {"call_id": None}], 2, 1, id="without a call id"),
    ],
)
def test_rule_22_attempts_of_one_call(attempts: list[dict[str, Any]], calls: int, ok: int) -> None:
    tries = [
        span(1, 110 + n, T0 + n, T0 + n, "tool", 100, **{"tool": "lookup", "call_id": "1", **one})
        for n, one in enumerate(attempts)
    ]
    found = only([*order(), *tries])
    assert (found.tool_calls, found.tool_calls_ok) == (calls, ok)


def test_rule_22_an_interrupted_call_goes_on_in_the_run_that_resumes_it() -> None:
    asked = call(4, END - SECOND, "refund", interrupted=True, call_id="1")
    again = call(4, END + HOUR, "refund", 2, call_id="1")
    found = only([*order(), asked, *trace(2, END + HOUR), again])
    assert (found.tool_calls, found.tool_calls_ok, found.turns) == (1, 1, 1)


def test_rule_22_a_tool_within_itself_is_one_call() -> None:
    inner = span(1, 105, T0, T0 + 1, "tool", 104, tool="lookup", failed=True)
    found = only([*order(), call(4, T0), inner])
    assert (found.tool_calls, found.tool_calls_ok) == (1, 0)
