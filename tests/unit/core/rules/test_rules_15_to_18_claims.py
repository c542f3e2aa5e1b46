"""What the agent says about its end, what is assumed, what waits, and what is an answer (RULES.md 15 to 18)."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from schemas.verdict import Verdict
from tests.builders import T0, outcome, span, trace
from tests.oracle.model import OSpan
from tests.unit.core.judged import judged, run
from tests.unit.core.line import ORDER, Line, turn

END = T0 + 10 * SECOND


def order(**more: Any) -> list[OSpan]:
    """Ten seconds of the family `order`, in which nothing is ordered."""
    return trace(1, T0, family=("order",), **more)


def only(*given: Any, **more: Any) -> Verdict:
    (found,) = judged(*given, **more)
    return found


def step(number: int, start: int, end: int, **more: Any) -> OSpan:
    return span(1, number, start, end, "step", 100, **more)


# -- 15: explicit claims -----------------------------------------------------------------------------------------------


def test_rule_15_the_latest_claim_holds_by_end_then_start_then_id() -> None:
    first = step(110, T0, END, claim="failed")
    assert only([*order(), first, step(109, T0, END + 1, claim="completed")]).claim == "completed"
    assert only([*order(), first, step(109, T0 + 1, END, claim="completed")]).claim == "completed"
    assert only([*order(), first, step(111, T0, END, claim="completed")]).claim == "completed"
    assert only([*order(), first, step(109, T0, END, claim="completed")]).claim == "failed"


def test_rule_15_an_earlier_claim_counts_for_nothing() -> None:
    spans = [*order(), step(110, T0, END, claim="failed"), step(111, T0, END + MINUTE, claim="completed")]
    assert not only(spans, watermark=END + 11 * MINUTE).terminal
    assert only(spans, watermark=END + 11 * MINUTE + 1).terminal_reason == "completed"


def test_rule_15_a_rule_of_the_contract_claims_at_the_end_of_the_span_that_first_made_it_true() -> None:
    told = [span(1, 110, T0, END + index, "tool", 100, tool="notify") for index in range(1)]
    told += [span(1, 111, T0, END + MINUTE, "tool", 100, tool="notify")]
    found = only([*order(), *told])
    assert (found.claimed, found.claimed_at) == ("explicit", END)


def test_rule_15_an_attribute_goes_before_a_rule_at_the_same_span() -> None:
    told = span(1, 110, T0, END, "tool", 100, tool="notify", claim="failed")
    assert only([*order(), told]).terminal_reason == "claimed_failed"


def test_rule_15_case_does_not_matter_and_other_values_are_counted_and_ignored() -> None:
    line = Line()
    line.spans(*turn(1, T0, {**ORDER, "session.id": "a", "trueup.task.outcome": "COMPLETED"}))
    line.spans(*turn(2, T0, {**ORDER, "session.id": "b", "trueup.task.outcome": "done"}))
    claims = [(one["claim"], one["claimed"]) for one in line.until(END + 2 * HOUR).sessions()]
    assert claims == [("completed", "explicit"), ("", "assumed")]
    assert line.counted("noted", "unknown_claim") == 1


def test_rule_15_a_claimed_hand_off_is_an_attempt_and_a_claimed_refusal_stays_in_the_denominator() -> None:
    handed = only(order(claim="escalated"))
    assert (handed.handoff_attempted, handed.escalated, handed.eligible) == (True, False, True)
    refused = only(order(claim="refused"))
    assert (refused.refused_claimed, refused.refused, refused.eligible) == (True, False, True)


# -- 16: assumed claims ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([span(1, 104, T0, T0, "tool", 100, tool="escalate_to_human")], id="a person took over"),
        pytest.param([span(1, 104, T0, T0, "tool", 100, tool="refuse")], id="it was refused"),
        pytest.param([outcome("e", END + HOUR, "refusal")], id="an outcome says that it was refused"),
    ],
)
def test_rule_16_no_claim_is_assumed_where(more: list[Any]) -> None:
    told = [one for one in more if not isinstance(one, OSpan)]
    assert only([*order(), *(one for one in more if isinstance(one, OSpan))], told).claimed == ""


def test_rule_16_an_assumed_claim_is_of_the_sessions_end() -> None:
    assert only(order()).claimed_at == END


# -- 17: what waits ----------------------------------------------------------------------------------------------------


def stopped(tool: str, end: int = END) -> OSpan:
    return span(1, 103, END - SECOND, end, "tool", 100, tool=tool, interrupted=True)


@pytest.mark.parametrize(("tool", "reason"), [("ask_customer", "abandoned"), ("refund", "timed_out")])
def test_rule_17_an_interrupt_is_for_the_customer_unless_its_tool_needs_an_approval(tool: str, reason: str) -> None:
    assert only([*order(), stopped(tool)]).terminal_reason == reason


@pytest.mark.parametrize(
    ("late", "reason"), [(0, "abandoned"), (1, "completed")], ids=["with its end", "one ns after it"]
)
def test_rule_17_a_leaf_that_starts_after_an_interrupt_ends_the_wait(late: int, reason: str) -> None:
    after = span(1, 104, END + late, END + SECOND, "inference", 100, finish_reasons=("stop",))
    assert only([*order(), stopped("ask_customer"), after]).terminal_reason == reason


@pytest.mark.parametrize(("begun", "reason"), [(1, "timed_out"), (2, "ended")], ids=["one of two", "all"])
def test_rule_17_what_the_last_model_span_asked_for_and_nobody_began_is_waited_for(begun: int, reason: str) -> None:
    asking = span(1, 104, END, END + 1, "inference", 100, finish_reasons=("tool_calls",), asked_tools=2)
    calls = [span(1, 105 + n, END + 1, END + 2, "tool", 100, tool="lookup") for n in range(begun)]
    assert only([*order(), asking, *calls]).terminal_reason == reason


@pytest.mark.parametrize(
    ("target", "reason"), [("desk", "timed_out"), ("clerk", "ended")], ids=["once more", "to another one"]
)
def test_rule_17_a_hand_off_within_a_hand_off_is_the_same_one_only_to_the_same(target: str, reason: str) -> None:
    outer = span(1, 104, END, END + 9, "handoff", 100, handoff_target="desk")
    asking = span(1, 105, END + 1, END + 2, "inference", 104, finish_reasons=("tool_calls",), asked_tools=1)
    inner = span(1, 106, END + 3, END + 9, "handoff", 104, handoff_target=target)
    assert only([*order(), outer, asking, inner]).terminal_reason == reason


def test_rule_17_if_both_wait_it_is_for_a_person() -> None:
    asking = span(1, 104, END - 2, END, "inference", 100, finish_reasons=("tool_calls",), asked_tools=3)
    assert only([*order(), stopped("ask_customer", END + 1), asking]).terminal_reason == "timed_out"


# -- 18: answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "answered"),
    [
        pytest.param(order(), True, id="a model span ended last"),
        pytest.param([*order(), span(1, 104, T0, END + 1, "tool", 100, tool="lookup")], False, id="a tool ended last"),
        pytest.param(
            [*order(), span(1, 104, T0 + 1, END, "tool", 100, tool="lookup")], True, id="both, the model began last"
        ),
        pytest.param([*order(), span(1, 104, T0, END, "embedding", 100)], True, id="an embedding is no leaf"),
        pytest.param([span(1, 100, T0, END, "agent", id="c", family=("order",))], True, id="agent spans alone"),
        pytest.param(order(failed=True), False, id="it ended in an error"),
        pytest.param([*order(), stopped("ask_customer")], False, id="it waits"),
    ],
)
def test_rule_18_a_run_ended_in_an_answer(spans: list[OSpan], answered: bool) -> None:
    assert only(spans).claimed == ("assumed" if answered else "")


def test_rule_18_the_run_that_ended_last_is_asked_not_the_one_that_began_last() -> None:
    long = span(1, 104, T0, END + MINUTE, "tool", 100, tool="lookup")
    assert only([*order(), long, *trace(2, END)]).claimed == ""
    assert run([*order(), *trace(2, END)]).verdicts()["default", "c", 1].claimed == "assumed"
