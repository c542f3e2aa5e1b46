"""Rules 23 to 31, each by hand: what expressions read, unknown, evidence, status, time, completion, version."""

from __future__ import annotations

import pytest

from tests.oracle.model import DAY, OCriterion, Unknown
from tests.unit.oracle.small_world import DAYS, HOURS, MIN, T0, at, contract, judge, only, outcome, span, turn

SPANS = [
    span(1, "0", 0, 10, "agent", id="c", family=("order",), agent="a", resource={"env": "late", "k": None}),
    span(1, "1", -5, 1, "step", resource={"env": "early"}),
    span(1, "2", 1, 4, "tool", parent="0", tool="x", failed=True, call_id="1"),
    span(1, "3", 5, 6, "tool", parent="0", tool="x", call_id="1"),
    span(1, "4", 2, 3, "guardrail", parent="0", guardrail_tripped=True),
    span(1, "5", 2, 3, "guardrail", parent="0", guardrail_tripped=False),
    span(1, "6", 7, 8, "inference", parent="0", model="big", requested_model="auto", state={"x": 1, "gone": None}),
    span(1, "7", 1, 3, "agent", parent="0", agent="b", state={"x": 2, "y": "old", "gone": 5}),
    span(1, "8", 7, 8, "step", parent="0", state={"y": None}),
]


def status(check, spans=SPANS, outcomes=(), watermark=20 * DAYS, **more):
    criterion = OCriterion("k", check, **more)
    return only(judge(spans, outcomes, [contract(criterion)], watermark)).criteria["k"]


@pytest.mark.parametrize(
    "check",
    [
        "tools['x'].calls == 1 && tools['x'].ok == 1 && tools['x'].failed == 0",
        "tools['uncalled'].calls == 0",
        "resource['env'] == 'early'",
        "session.agents == ['a', 'b']",
        "session.tools == ['x']",
        "session.models == ['big']",
        "session.turns == 1 && session.runs == 1 && session.handoffs == 0",
        "session.errors == 1 && session.retries == 1",
        "session.guardrails.checks == 2 && session.guardrails.tripped == 1",
        "session.duration_s == 10.0",
        "session.claimed",
        "state.x == 1 && state.y == 'old' && state.gone == 5",
        "!has(state.nothing) && !has(resource.k)",
    ],
)
def test_rules_23_and_24_variables(check):
    assert status(check)[:2] == ("passed", "met")


def test_rule_23_invalid_when_is_evaluated_for_each_distinct_resource():
    order = contract(invalid_when="resource['env'] == 'late'")

    assert only(judge(SPANS, contracts=[order])).invalid


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("state.nothing == 1", ("failed", "not_reported")),
        ("state.nothing == 1 || state.x == 1", ("passed", "met")),
        ("state.x == 1 || state.nothing == 1", ("passed", "met")),
        ("state.nothing == 1 && state.x == 2", ("failed", "false")),
        ("resource['nothing'] == 1", ("failed", "unverified")),
        ("state.x == 2", ("failed", "false")),
        ("state.x > 'text'", ("error", "error")),
        ("state.x", ("error", "error")),
    ],
)
def test_rule_25_unknown_false_and_error(check, expected):
    assert status(check)[:2] == expected


def test_rule_25_python_expressions_may_be_unknown_too():
    def unknown(variables):
        raise Unknown("state")

    assert status(unknown)[:2] == ("failed", "not_reported")
    assert status(lambda v: v["tools"]["uncalled"]["ok"] == 0)[:2] == ("passed", "met")


def test_rule_26_what_raises_in_the_contracts_own_rules_is_false_and_counted():
    session = only(
        judge(SPANS, contracts=[contract(refused_when="session.runs > 'text'", invalid_when="state.x == 1")])
    )

    assert (session.refused, session.invalid, session.criterion_errors) == (False, False, 1)


@pytest.mark.parametrize(
    ("applies", "expected"),
    [
        ("state.x == 2", "not_applicable"),
        ("state.x == 1", "failed"),
        ("state.nothing == 1", "failed"),
        ("state.x > 'text'", "failed"),
    ],
)
def test_rule_27_applies(applies, expected):
    assert status("false", applies=applies)[0] == expected


def test_rule_27_score_is_passed_weight_over_applicable_weight():
    criteria = [
        OCriterion("a", "true", weight=3),
        OCriterion("b", "false", required=False),
        OCriterion("c", "true", applies="false", weight=50),
    ]
    session = only(judge(SPANS, contracts=[contract(*criteria)]))

    assert (session.score, session.completion) == (0.75, "complete")


def evidence(event_id: str, time: float, pay: str | None):
    return outcome(event_id, time, data={"pay": pay})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([("a", 60, "ok")], ("passed", "met", at(60)), id="within"),
        pytest.param([("a", 10 + DAYS, "ok")], ("passed", "met", at(10 + DAYS)), id="at the deadline"),
        pytest.param([("a", 11 + DAYS, "ok")], ("failed", "unverified", None), id="past the deadline"),
        pytest.param([("a", 60, "ok"), ("b", 90, "bad")], ("failed", "false", None), id="the latest holds"),
        pytest.param([("a", 60, "ok"), ("b", 60, "bad")], ("failed", "false", None), id="then the greater event id"),
        pytest.param([("a", 60, "ok"), ("b", 90, None)], ("passed", "met", at(60)), id="null says nothing"),
        pytest.param([("a", -60, "ok")], ("passed", "met", at(10)), id="from before the start"),
        pytest.param(
            [("a", 60, "ok"), ("b", 90, "bad"), ("c", 120, "ok"), ("d", 150, "ok")],
            ("passed", "met", at(120)),
            id="since when without a break",
        ),
    ],
)
def test_rules_28_and_29_evidence_and_the_time_of_a_pass(events, expected):
    assert status("evidence.pay == 'ok'", outcomes=[evidence(*e) for e in events], deadline=DAY) == expected


@pytest.mark.parametrize(
    ("watermark", "more", "expected"),
    [
        pytest.param(10 + DAYS, {"deadline": DAY}, ("pending", "waiting"), id="at the deadline"),
        pytest.param(11 + DAYS, {"deadline": DAY}, ("failed", "false"), id="past the deadline"),
        pytest.param(20, {"deadline": DAY, "fails_when": "state.x == 1"}, ("failed", "fails_when"), id="fails_when"),
        pytest.param(
            20, {"deadline": DAY, "fails_when": "state.z == 1"}, ("pending", "waiting"), id="unknown refutation"
        ),
        pytest.param(10 + 30 * MIN, {}, ("pending", "waiting"), id="without deadline until terminal"),
        pytest.param(11 + 30 * MIN, {}, ("failed", "false"), id="terminal"),
    ],
)
def test_rule_29_when_a_false_check_is_decided(watermark, more, expected):
    assert status("state.x == 2", watermark=watermark, **more)[:2] == expected


def test_rule_29_a_check_that_raises_is_pending_until_decided_and_counted_at_once():
    raising = contract(OCriterion("k", "state.x > 'text'", deadline=DAY))
    early, late = (only(judge(SPANS, contracts=[raising], watermark=w)) for w in (DAYS, 2 * DAYS))

    assert (early.criteria["k"][0], early.criterion_errors) == ("pending", 1)
    assert (late.criteria["k"][0], late.completion) == ("error", "incomplete")


@pytest.mark.parametrize(
    ("outcomes", "watermark", "completion", "verified"),
    [
        ([("a", 60, "ok")], 2 * HOURS, "complete", True),
        ([], 2 * HOURS, "pending", False),
        ([], 2 * DAYS, "incomplete", False),
    ],
)
def test_rule_30_completion_and_verified(outcomes, watermark, completion, verified):
    criteria = [
        OCriterion("k", "state.x == 1"),
        OCriterion("p", "evidence.pay == 'ok'", trust="independent", deadline=DAY),
    ]
    session = only(judge(SPANS, [evidence(*o) for o in outcomes], [contract(*criteria)], watermark))

    assert (session.completion, session.verified) == (completion, verified)


def test_rule_30_an_optional_independent_criterion_counts_for_verified_alone():
    criteria = [
        OCriterion("k", "true"),
        OCriterion("p", "evidence.pay == 'ok'", trust="independent", deadline=DAY, required=False),
    ]
    session = only(judge(SPANS, contracts=[contract(*criteria)]))

    assert (session.completion, session.verified) == ("complete", False)


def test_rule_30_no_applicable_independent_criterion_is_not_in_the_rate():
    criterion = OCriterion("p", "evidence.pay == 'ok'", trust="independent", deadline=DAY, applies="false")
    world = judge(SPANS, contracts=[contract(OCriterion("k", "true"), criterion)])

    assert only(world).verified is None
    assert world.rates["order", "verified_completion"] == (0, 0)


@pytest.mark.parametrize(("start", "version"), [(99, 1), (100, 2)])
def test_rule_31_the_version_in_force_at_the_start(start, version):
    versions = [contract(), contract(version=2, effective_from=at(100)), contract(version=3, effective_from=T0 + DAY)]

    assert only(judge(turn(1, start, family=("order",)), contracts=versions)).contract_version == version
