"""Rules 15 to 22, each by hand: claims, waiting, answers, errors, hand-offs, terminal reasons, tool calls."""

from __future__ import annotations

import pytest

from tests.oracle.parts import OUsage
from tests.unit.oracle.small_world import HOURS, MIN, at, contract, judge, only, outcome, span, tool_turn, turn


def model(trace: int, name: str, start: float, end: float, **more):
    return span(trace, name, start, end, "inference", parent="1", **more)


def tool(trace: int, name: str, start: float, end: float, called: str, **more):
    return span(trace, name, start, end, "tool", **({"parent": "1"} | more), tool=called)


def agent(trace: int = 1, start: float = 0, end: float = 100, **more):
    return span(trace, "1", start, end, "agent", id="c", family=("order",), **more)


INTERRUPT = {"interrupted": True, "failed": True, "control_flow": True}


@pytest.mark.parametrize("value", ["completed", "COMPLETED", "escalated", "refused", "failed"])
def test_rule_15_a_stated_claim(value):
    session = only(judge(turn(1, 0, claim=value)))

    assert (session.claim.value, session.claim.time, session.claim.assumed) == (value.lower(), at(10), False)
    assert session.handoff_attempted == (value == "escalated")
    assert session.refused_claimed == (value == "refused")


def test_rule_15_other_values_are_counted_and_ignored():
    world = judge(turn(1, 0, claim="done"))

    assert only(world).claim.value is None
    assert world.counted["unknown_claim"] == 1


def test_rule_15_the_latest_by_span_end_holds():
    session = only(judge([agent(claim="failed"), model(1, "2", 50, 99, claim="completed")]))

    assert (session.claim.value, session.claim.time) == ("failed", at(100))


def test_rule_15_the_rule_claims_at_the_end_of_the_span_that_first_made_it_true():
    closing = contract(claimed_when="tools['close'].ok > 0")
    spans = [agent(), tool(1, "2", 5, 30, "close"), tool(1, "3", 1, 40, "close"), model(1, "4", 50, 60)]
    session = only(judge(spans, contracts=[closing]))

    assert (session.claim.value, session.claim.time, session.terminal_reason) == ("completed", at(30), "completed")


@pytest.mark.parametrize(
    ("watermark", "assumed"), [(10 + 2 * HOURS, False), (11 + 2 * HOURS, True)], ids=["not yet quiet", "quiet"]
)
def test_rule_16_an_answer_and_then_quiet_is_an_assumed_claim(watermark, assumed):
    session = only(judge(turn(1, 0), watermark=watermark))

    assert session.claim.assumed is assumed
    assert session.terminal_reason == ("completed" if assumed else "ended")


def test_rule_16_not_with_a_handoff_a_refusal_an_error_or_where_the_contract_says_no():
    escalating = contract(escalated_tools=("to_human",))
    last_tool = [agent(), model(1, "2", 1, 5), tool(1, "3", 6, 90, "x")]

    assert not only(judge(tool_turn(1, 0, "to_human", family=("order",)), contracts=[escalating])).claim.assumed
    assert not only(judge(turn(1, 0), [outcome("r", 60, "refusal")])).claim.assumed
    assert not only(judge(last_tool)).claim.assumed
    assert not only(judge(turn(1, 0, failed=True))).claim.assumed
    assert not only(judge(turn(1, 0, family=("order",)), contracts=[contract(assume_claim=False)])).claim.assumed
    assert only(judge(turn(1, 0, failed=True, control_flow=True))).claim.assumed


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        pytest.param([tool(1, "2", 1, 50, "ask", **INTERRUPT)], "abandoned", id="interrupt"),
        pytest.param([tool(1, "2", 1, 50, "approve", **INTERRUPT)], "timed_out", id="interrupt of an approval"),
        pytest.param(
            [tool(1, "2", 1, 50, "ask", **INTERRUPT), model(1, "3", 60, 70)], "completed", id="a leaf starts later"
        ),
        pytest.param([model(1, "2", 1, 50, asked_tools=1)], "timed_out", id="asked, not called"),
        pytest.param([model(1, "2", 1, 50, asked_tools=2), tool(1, "3", 51, 55, "x")], "timed_out", id="one of two"),
        pytest.param([model(1, "2", 1, 50, asked_tools=1), tool(1, "3", 51, 55, "x")], "ended", id="called"),
        pytest.param(
            [model(1, "2", 1, 50, asked_tools=1), tool(1, "3", 51, 55, "x", **INTERRUPT)], "abandoned", id="interrupted"
        ),
        pytest.param(
            [model(1, "2", 1, 50, asked_tools=2), tool(1, "3", 51, 55, "x", **INTERRUPT)], "timed_out", id="both"
        ),
        pytest.param(
            [
                model(1, "2", 1, 50, asked_tools=2),
                tool(1, "3", 51, 55, "x"),
                tool(1, "4", 52, 54, "x", parent="3"),
            ],
            "timed_out",
            id="nested under the same name is one",
        ),
        pytest.param([model(1, "2", 1, 50)], "completed", id="does not say how many"),
    ],
)
def test_rule_17_who_a_run_waits_for(spans, reason):
    order = contract(approval_tools=("approve",))

    assert only(judge([agent(), *spans], contracts=[order])).terminal_reason == reason


def test_rule_18_agent_spans_only_are_an_answer():
    assert only(judge([agent()])).claim.assumed
    assert not only(judge([agent(), span(1, "2", 1, 5, "embedding", parent="1")])).claim.assumed


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        pytest.param([agent(), tool(1, "2", 1, 50, "x", failed=True)], "failed", id="the last leaf failed"),
        pytest.param(
            [agent(), tool(1, "2", 1, 50, "x", failed=True), model(1, "3", 51, 60)],
            "completed",
            id="an earlier one did",
        ),
        pytest.param([agent(failed=True), model(1, "2", 1, 50)], "failed", id="the root did"),
        pytest.param(
            [span(1, "1", 0, 99, "step", id="c", failed=True), model(1, "2", 1, 50)], "completed", id="root is no work"
        ),
        pytest.param([agent(failed=True, control_flow=True), model(1, "2", 1, 50)], "completed", id="control flow"),
    ],
)
def test_rule_19_an_error_at_the_end(spans, reason):
    assert only(judge(spans)).terminal_reason == reason


@pytest.mark.parametrize(
    ("more", "escalated", "attempted"),
    [
        pytest.param({}, True, True, id="ended well"),
        pytest.param({"failed": True, "control_flow": True}, True, True, id="control flow"),
        pytest.param({"failed": True}, False, True, id="failed"),
        pytest.param(INTERRUPT, False, True, id="interrupt"),
        pytest.param({"handoff_target": "orders_agent"}, False, False, id="from agent to agent"),
    ],
)
def test_rule_20_handoffs_in_spans(more, escalated, attempted):
    handing = span(1, "2", 1, 50, "handoff", parent="1", **({"handoff_target": "a_human"} | more))
    session = only(judge([agent(), handing], contracts=[contract(escalated_handoffs=("*_human",))]))

    assert (session.escalated, session.handoff_attempted) == (escalated, attempted)
    assert session.escalated_at == (at(50) if escalated else None)


def test_rule_20_nested_spans_of_one_handoff_failed_if_any_did():
    spans = [agent(), tool(1, "2", 1, 50, "to_human"), tool(1, "3", 2, 40, "to_human", parent="2", failed=True)]
    session = only(judge(spans, contracts=[contract(escalated_tools=("to_human",))]))

    assert (session.escalated, session.handoff_attempted) == (False, True)
    assert session.tools_failed == ("to_human",)


def test_rule_20_a_handoff_is_a_tool_call_too_unless_named_as_a_handoff():
    order = contract(escalated_tools=("to_human", "transfer_to_human"))
    spans = [agent(), tool(1, "2", 1, 20, "to_human"), tool(1, "3", 21, 40, "transfer_to_human")]

    assert only(judge(spans, contracts=[order])).tools_ok == ("to_human",)


@pytest.mark.parametrize(
    ("state", "escalated", "attempted"),
    [("accepted", True, True), ("attempted", False, True), ("failed", False, True), ("other", False, False)],
)
def test_rule_20_escalation_outcomes(state, escalated, attempted):
    session = only(judge(turn(1, 0), [outcome("e", 60, "escalation", data={"state": state})]))

    assert (session.escalated, session.handoff_attempted) == (escalated, attempted)


def test_rule_20_only_its_own_retraction_undoes_an_escalation():
    accepted = outcome("e", 60, "escalation", data={"state": "accepted"})
    failed = outcome("f", 90, "escalation", data={"state": "failed"})
    retracted = outcome("e", 60, "retract", event_version=2)

    assert only(judge(turn(1, 0), [accepted, failed])).escalated
    assert not only(judge(turn(1, 0), [accepted, failed, retracted])).escalated


def test_rule_21_terminal_from_past_the_claim_and_its_grace_or_the_gap():
    claimed, quiet = turn(1, 0, claim="completed"), turn(1, 0)

    assert not only(judge(claimed, watermark=10 + 5 * MIN)).terminal
    assert only(judge(claimed, watermark=11 + 5 * MIN)).terminal
    assert not only(judge(quiet, watermark=10 + 30 * MIN)).terminal
    assert only(judge(quiet, watermark=11 + 30 * MIN)).terminal


@pytest.mark.parametrize(
    ("drop", "reason"),
    [(0, "invalid"), (1, "refused"), (2, "escalated"), (3, "claimed_failed")],
)
def test_rule_21_the_first_reason_that_holds(drop, reason):
    said = [
        outcome("i", 60, "invalidate"),
        outcome("r", 60, "refusal"),
        outcome("e", 60, "escalation", data={"state": "accepted"}),
    ]

    assert only(judge(turn(1, 0, claim="failed"), said[drop:])).terminal_reason == reason


@pytest.mark.parametrize(
    ("spans", "ok", "failed"),
    [
        pytest.param(
            [tool(1, "2", 1, 5, "x", call_id="a", failed=True), tool(1, "3", 6, 9, "x", call_id="a")],
            ("x",),
            (),
            id="continues a failed attempt",
        ),
        pytest.param(
            [tool(1, "2", 1, 5, "x", call_id="a"), tool(1, "3", 6, 9, "x", call_id="a", failed=True)],
            ("x",),
            ("x",),
            id="the same call id after a success is a new call",
        ),
        pytest.param(
            [tool(1, "2", 1, 5, "x", call_id="a", failed=True), tool(1, "3", 6, 9, "y", call_id="a")],
            ("y",),
            ("x",),
            id="another name is another call",
        ),
        pytest.param(
            [tool(1, "2", 1, 5, "x", call_id="a", **INTERRUPT), tool(1, "3", 6, 9, "x", call_id="a")],
            ("x",),
            (),
            id="interrupted and done again",
        ),
        pytest.param([tool(1, "2", 1, 5, "x", call_id="a", **INTERRUPT)], (), (), id="interrupted only: no call"),
        pytest.param(
            [tool(1, "2", 1, 5, "x", call_id="a", failed=True), tool(1, "3", 6, 9, "x", call_id="a", **INTERRUPT)],
            (),
            ("x",),
            id="the last that was not interrupted decides",
        ),
        pytest.param(
            [tool(1, "2", 1, 9, "x"), tool(1, "3", 2, 8, "x", parent="2", failed=True)],
            (),
            ("x",),
            id="nested: failed if any failed",
        ),
        pytest.param(
            [tool(1, "2", 1, 5, "x", failed=True), tool(1, "3", 6, 9, "x")], ("x",), ("x",), id="without call ids: two"
        ),
    ],
)
def test_rule_22_tool_calls(spans, ok, failed):
    session = only(judge([agent(), *spans]))

    assert (session.tools_ok, session.tools_failed) == (ok, failed)


def test_usage_counts_model_spans_once():
    spans = [
        agent(input_tokens=900),
        model(1, "2", 1, 50, input_tokens=5),
        span(1, "3", 2, 49, "inference", parent="2", input_tokens=10, cached_tokens=4, response_id="r"),
        tool(1, "4", 51, 90, "x"),
        span(1, "5", 52, 53, "embedding", parent="4", input_tokens=100),
        model(1, "6", 60, 70, input_tokens=10, output_tokens=1, response_id="r"),
        model(1, "7", 70, 95, output_tokens=1000),
        tool(1, "8", 71, 94, "y", parent="7"),
        span(1, "9", 72, 73, "inference", parent="8", output_tokens=10_000),
    ]

    assert only(judge(spans)).usage == OUsage(110, 11_000, 4)
