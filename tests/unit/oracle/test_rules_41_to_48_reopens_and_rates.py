"""Rules 41 to 48, each by hand: reopens, follow-ups, who is counted where, when events happened, settling."""

from __future__ import annotations

import pytest

from tests.oracle.model import DAY, HOUR, MINUTE, OCriterion, OSettings
from tests.oracle.world import settles_at
from tests.unit.oracle.small_world import (
    DAYS,
    HOURS,
    MIN,
    T0,
    at,
    contract,
    judge,
    only,
    outcome,
    span,
    tool_turn,
    turn,
)

DONE = contract(OCriterion("done", "true"))


def order(trace: int, start: float, conversation: str | None = "c", **more):
    return turn(trace, start, conversation, **({"family": ("order",)} | more))


@pytest.mark.parametrize(
    ("first", "second", "reopened"),
    [
        pytest.param(order(1, 0), order(2, 3 * HOURS), True, id="assumed claim"),
        pytest.param(order(1, 0), order(2, 10 + 3 * DAYS), True, id="at the reopen window"),
        pytest.param(order(1, 0), order(2, 11 + 3 * DAYS), False, id="past it"),
        pytest.param(order(1, 0), turn(2, 3 * HOURS), True, id="inherited family"),
        pytest.param(order(1, 0), order(2, 3 * HOURS, family=("return",)), False, id="another family"),
        pytest.param(order(1, 0, claim="completed"), order(2, 20 * MIN), True, id="explicit claim, soon after"),
        pytest.param(order(1, 0, claim="failed"), order(2, 3 * HOURS), False, id="claimed nothing"),
        pytest.param(order(1, 0, issues=("i",)), order(2, 3 * HOURS, issues=("j",)), False, id="another issue"),
        pytest.param(order(1, 0, issues=("i",)), order(2, 3 * HOURS, issues=("j", "i")), True, id="a common issue"),
        pytest.param(order(1, 0, issues=("i",)), order(2, 3 * HOURS), True, id="one states none"),
        pytest.param(turn(1, 0), turn(2, 3 * HOURS), False, id="two unknown families"),
    ],
)
def test_rule_41_a_later_session_reopens(first, second, reopened):
    earlier, later = judge([*first, *second]).sessions

    assert earlier.reopened is reopened
    assert earlier.reopened_at == (later.start if reopened else None)
    assert later.follow_up is not reopened


def test_rule_41_only_the_latest_that_qualifies():
    spans = [*order(1, 0), *order(2, 3 * HOURS, claim="failed"), *order(3, 6 * HOURS)]

    assert [s.reopened for s in judge(spans).sessions] == [True, False, False]
    assert judge(spans).session("c", 1).reopened_at == at(3 * HOURS)
    assert judge([*order(1, 0), *order(2, 3 * HOURS), *order(3, 6 * HOURS)]).session("c", 1).reopened_at == at(
        3 * HOURS
    )


@pytest.mark.parametrize(
    ("first", "second", "reopened"),
    [
        pytest.param({"keys": {"order": (7,)}}, {"keys": {"order": ("7",)}}, True, id="a common key"),
        pytest.param({"issues": ("i",)}, {"issues": ("i",)}, True, id="a common issue"),
        pytest.param({}, {}, False, id="nothing in common"),
        pytest.param(
            {"keys": {"o": (7,)}, "issues": ("i",)}, {"keys": {"o": (7,)}, "issues": ("j",)}, False, id="issues"
        ),
        pytest.param({"issues": ("i",)}, {"issues": ("i",), "family": ("return",)}, False, id="another family"),
        pytest.param({"issues": ("i",)}, {"issues": ("i",), "subject": "else"}, False, id="another subject"),
        pytest.param({"issues": ("i",)}, {"issues": ("i",), "conversation": None}, False, id="unattributed"),
    ],
)
def test_rule_42_another_conversation_of_the_subject_reopens(first, second, reopened):
    spans = [
        *order(1, 0, "a", **({"subject": "s"} | first)),
        *order(2, 3 * HOURS, **({"conversation": "b", "subject": "s"} | second)),
    ]

    assert judge(spans).session("a").reopened is reopened


def test_rule_42_every_one_that_qualifies_and_only_past_the_resume_window():
    same = {"subject": "s", "issues": ("i",)}
    spans = [*order(1, 0, "a", **same), *order(2, HOURS, "b", **same), *order(3, 3 * HOURS + 9, "d", **same)]
    world = judge(spans)

    assert {s.conversation: s.reopened for s in world.sessions} == {"a": True, "b": False, "d": False}
    assert {s.conversation: s.reopened for s in judge([*spans, *order(4, 9 * HOURS, "e", **same)]).sessions} == {
        "a": True,
        "b": True,
        "d": True,
        "e": False,
    }


def test_rule_42_a_refusal_outcome_takes_no_assumed_claim_back_across_conversations_only():
    same = {"subject": "s", "issues": ("i",)}
    refusal = outcome("r", 60, "refusal", session_id="a")
    across = judge([*order(1, 0, "a", **same), *order(2, 3 * HOURS, "b", **same)], [refusal])
    within = judge([*order(1, 0, "a", **same), *order(2, 3 * HOURS, "a", **same)], [refusal])

    assert across.session("a").reopened
    assert not within.session("a").reopened


def test_rule_43_a_reopen_outcome_counts_on_any_session_and_the_rate_on_claimed_ones():
    world = judge(order(1, 0, claim="failed"), [outcome("r", 60, "reopen")], [DONE])

    assert (only(world).reopened, only(world).resolved) == (True, False)
    assert world.rates["order", "reopen"] == (0, 0)
    assert world.rates["order", "resolution"] == (0, 1)


def test_rule_44_the_first_session_is_no_follow_up():
    assert not only(judge(order(1, 0))).follow_up


PAID = contract(OCriterion("paid", "evidence.pay == 'ok'", deadline=2 * DAY, trust="independent"))


def test_rule_45_pending_is_in_the_denominators_and_in_no_numerator_that_asks_for_completion():
    rates = judge(order(1, 0), contracts=[PAID], watermark=3 * HOURS).rates

    assert {name: rates["order", name] for _, name in rates} == {
        "completion": (0, 1),
        "claimed_completion": (1, 1),
        "claimed_completion_explicit": (0, 1),
        "claimed_completion_assumed": (1, 1),
        "verified_completion": (0, 1),
        "resolution": (0, 1),
        "confirmed_resolution": (0, 0),
        "reopen": (0, 1),
        "escalation": (0, 1),
        "containment": (1, 1),
        "tool_success": (0, 0),
        "attribution": (1, 1),
    }


@pytest.mark.parametrize(
    ("kind", "data", "changed"),
    [
        ("refusal", {}, {"completion": (0, 0), "attribution": (1, 1)}),
        ("invalidate", {}, {"completion": (0, 0), "tool_success": (0, 0), "attribution": (0, 0)}),
        ("resolution", {"confirmed": True}, {"confirmed_resolution": (1, 1), "resolution": (1, 1)}),
        ("resolution", {"confirmed": False}, {"confirmed_resolution": (0, 1), "resolution": (0, 1)}),
        ("escalation", {"state": "accepted"}, {"escalation": (1, 1), "containment": (0, 1), "resolution": (0, 1)}),
        ("escalation", {"state": "failed"}, {"escalation": (0, 1), "containment": (0, 1), "resolution": (1, 1)}),
    ],
)
def test_rules_45_and_46_what_an_outcome_changes(kind, data, changed):
    spans = [*tool_turn(1, 0, "x"), span(1, "9", 0, 1, "step", parent="1", family=("order",))]
    rates = judge(spans, [outcome("e", 60, kind, data=data)], [DONE]).rates

    assert {name: rates["order", name] for name in changed} == changed


def test_rule_46_abandoned_is_not_contained():
    spans = [
        span(1, "1", 0, 10, id="c", family=("order",)),
        span(1, "2", 1, 9, "tool", parent="1", tool="ask", interrupted=True),
    ]

    assert judge(spans, contracts=[DONE]).rates["order", "containment"] == (0, 1)


def test_rule_46_rows():
    derived = [contract(family=f, applies_when="'x' in session.tools") for f in ("order", "return")]
    spans = [*order(1, 0, "a"), *tool_turn(2, 0, "x", "b"), *turn(3, 0, "d")]
    rates = judge(spans, contracts=derived).rates

    assert {row for row, _ in rates} == {"", "order"}
    assert (rates["", "attribution"], rates["order", "attribution"]) == ((3, 3), (1, 1))
    assert rates["", "completion"] == (1, 1)


@pytest.mark.parametrize(
    ("events", "rate", "age"),
    [
        pytest.param([("evidence", HOURS, {"pay": "ok"})], "completion", HOUR, id="completion: the pass"),
        pytest.param([("evidence", -60, {"pay": "ok"})], "completion", 0, id="known before the end"),
        pytest.param([], "completion", None, id="never"),
        pytest.param([("evidence", HOURS, {"pay": "ok"})], "verified_completion", HOUR, id="verified"),
        pytest.param([("evidence", HOURS, {"pay": "ok"})], "resolution", None, id="resolved"),
        pytest.param([], "resolution", 2 * DAY, id="incomplete: at the deadline"),
        pytest.param(
            [("evidence", HOURS, {"pay": "no"}), ("evidence", 2 * HOURS, {"pay": "no"})],
            "resolution",
            HOUR,
            id="refuted",
        ),
        pytest.param([("reopen", HOURS, {}), ("reopen", 2 * HOURS, {})], "reopen", HOUR, id="the earliest reopen"),
        pytest.param(
            [("evidence", 0, {"pay": "ok"}), ("resolution", HOURS, {"confirmed": False}), ("reopen", 2 * HOURS, {})],
            "resolution",
            HOUR,
            id="the earliest failure",
        ),
        pytest.param([("escalation", HOURS, {"state": "accepted"})], "escalation", HOUR, id="escalation"),
        pytest.param([("escalation", HOURS, {"state": "attempted"})], "containment", HOUR, id="containment"),
    ],
)
def test_rule_47_when_an_event_happened(events, rate, age):
    paid = contract(
        OCriterion(
            "paid", "evidence.pay == 'ok'", fails_when="evidence.pay == 'no'", deadline=2 * DAY, trust="independent"
        )
    )
    said = [outcome(str(i), 10 + time, kind, data=data) for i, (kind, time, data) in enumerate(events)]

    assert judge(order(1, 0), said, [paid]).events[rate] == {("default", "c", 1): age}


def test_the_bucket_is_that_of_the_end():
    assert T0 % (5 * MINUTE) == 0
    assert only(judge(order(1, 5 * MIN - 10))).bucket == at(5 * MIN)
    assert only(judge(order(1, 5 * MIN - 11))).bucket == at(0)


@pytest.mark.parametrize(
    ("deadlines", "after"), [([], 72 * HOUR), ([DAY], 72 * HOUR), ([5 * DAY], 5 * DAY)], ids=["none", "short", "long"]
)
def test_rule_48_a_bucket_settles_past_the_longest_window_and_lateness(deadlines, after):
    contracts = [contract(*(OCriterion("k", "true", deadline=d) for d in deadlines))]

    assert settles_at(T0, contracts, OSettings()) == T0 + after + 5 * MINUTE
