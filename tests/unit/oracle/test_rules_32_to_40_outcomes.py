"""Rules 32 to 40a, each by hand: which version of an outcome counts, whom it reaches, until when, who may say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle.model import OCriterion, OSettings
from tests.unit.oracle.small_world import (
    DAYS,
    HOURS,
    MIN,
    at,
    contract,
    judge,
    only,
    outcome,
    span,
    trace_id,
    turn,
)

PAID = contract(OCriterion("paid", "evidence.pay == 'ok'", deadline=2 * DAYS * 10**9))
OK, BAD = {"pay": "ok"}, {"pay": "bad"}


def order(trace: int, start: float, conversation: str | None = "c", **more):
    return turn(trace, start, conversation, family=("order",), **more)


def reached(world) -> list[tuple[str, int]]:
    return [(s.conversation, s.ordinal) for s in world.sessions if s.outcomes]


@pytest.mark.parametrize(
    ("versions", "complete"),
    [
        pytest.param([(1, "evidence", BAD), (2, "evidence", OK)], True, id="the highest version wins"),
        pytest.param([(2, "evidence", BAD), (1, "evidence", OK)], False, id="whenever it comes"),
        pytest.param([(1, "evidence", OK), (2, "retract", {})], False, id="a retraction is a version"),
        pytest.param([(1, "evidence", OK), (1, "retract", {})], False, id="which wins a tie"),
        pytest.param([(2, "retract", {}), (3, "evidence", OK)], True, id="and a later one revives"),
    ],
)
def test_rule_32_of_one_identity_one_version_counts(versions, complete):
    events = [outcome("e", 60, kind, event_version=v, data=data) for v, kind, data in versions]

    for arrival in (events, events[::-1]):
        assert (only(judge(order(1, 0), arrival, [PAID])).completion == "complete") is complete


def test_rule_32_sources_and_tenants_do_not_share_identities():
    events = [outcome("e", 60, data=OK), outcome("e", 50, "retract", source="erp", event_version=9)]

    assert only(judge(order(1, 0), events, [PAID])).completion == "complete"


def test_rule_33_a_time_too_far_ahead_of_its_record_becomes_the_records():
    ahead = outcome("e", 3 * DAYS, data=OK, record_time=at(60))
    known = replace(ahead, record_time=at(3 * DAYS))

    assert only(judge(order(1, 0), [known, ahead], [PAID])).completed_at == at(60)
    assert only(judge(order(1, 0), [known], [PAID])).completion == "incomplete"
    assert only(judge(order(1, 0), [replace(ahead, record_time=at(3 * DAYS - 300))], [PAID])).completion == "incomplete"


@pytest.mark.parametrize("name", [" 7 ", 7, 7.0])
def test_rule_34_ids_are_normalised_and_numbers_are_text(name):
    assert reached(judge(order(1, 0, "7"), [outcome("e", 60, session_id=name)])) == [("7", 1)]


def test_rule_34_a_pseudo_conversation_is_addressed_by_its_trace():
    world = judge(order(1, 0, None), [outcome("e", 60, session_id=f"trace:{trace_id(1)}")])

    assert reached(world) == [(f"trace:{trace_id(1)}", 1)]


def test_rule_34_what_we_print_is_never_parsed():
    assert judge(order(1, 0), [outcome("e", 60, session_id="c#1")]).waiting != []


@pytest.mark.parametrize(
    ("time", "more", "expected"),
    [
        pytest.param(60, {}, [("c", 1)], id="the last begun by then"),
        pytest.param(10 * HOURS - 5 * MIN, {}, [("c", 2)], id="give or take the clock skew"),
        pytest.param(10 * HOURS - 5 * MIN - 1, {}, [("c", 1)], id="and no more"),
        pytest.param(-5 * MIN - 1, {}, [], id="none has begun"),
        pytest.param(60, {"session_id": "c", "ordinal": 2}, [("c", 2)], id="an ordinal"),
        pytest.param(60, {"session_id": "c", "ordinal": 3}, [], id="an ordinal that is not there"),
        pytest.param(60, {"trace_id": trace_id(2)}, [("c", 2)], id="a trace"),
    ],
)
def test_rule_35_conversation_ordinal_and_trace(time, more, expected):
    assert reached(judge([*order(1, 0), *order(2, 10 * HOURS)], [outcome("e", time, **more)])) == expected


KEYED = [
    *order(1, 0, "a", keys={"order": (7,)}),
    *order(2, 10 * HOURS, "a", keys={"order": ("7",)}),
    *order(3, 20 * HOURS, "b", keys={"order": ("8", "7"), "ticket": ("t",)}),
    *order(4, 30 * HOURS, "a", keys={"order": ("9",)}),
]


@pytest.mark.parametrize(
    ("time", "correlation", "expected"),
    [
        pytest.param(60, {"order": "7"}, [("a", 1)], id="begun by then"),
        pytest.param(40 * HOURS, {"order": 7.0}, [("a", 1), ("a", 2), ("b", 1)], id="every session"),
        pytest.param(40 * HOURS, {"order": "9", "ticket": "t"}, [("a", 3), ("b", 1)], id="any of the keys"),
        pytest.param(40 * HOURS, {"order": "none"}, [], id="nobody"),
    ],
)
def test_rule_36_evidence_by_key_goes_to_every_session(time, correlation, expected):
    assert reached(judge(KEYED, [outcome("e", time, correlation=correlation)])) == expected


@pytest.mark.parametrize(
    ("time", "correlation", "expected"),
    [
        pytest.param(15 * HOURS, {"order": "7"}, [("a", 2)], id="the latest trace begun by then"),
        pytest.param(40 * HOURS, {"order": "7"}, [("b", 1)], id="of all conversations"),
        pytest.param(
            -HOURS, {"order": "7"}, [], id="none begun: the earliest's conversation, which has no session yet"
        ),
    ],
)
def test_rule_36_other_kinds_by_key_go_to_one_session(time, correlation, expected):
    assert reached(judge(KEYED, [outcome("e", time, "feedback", correlation=correlation)])) == expected


def test_rule_36_a_session_begun_by_then_takes_it_whenever_its_trace_states_the_key():
    spans = [*order(1, 0), *order(2, 60 * MIN, keys={"order": ("7",)})]

    assert reached(judge(spans, [outcome("e", 60, "feedback", correlation={"order": "7"})])) == [("c", 1)]


@pytest.mark.parametrize(("limit", "expected"), [(2, [("a", 1), ("b", 1)]), (1, [])])
def test_rule_36_a_key_that_too_many_traces_state_is_left_out(limit, expected):
    spans = [*order(1, 0, "a", keys={"order": ("7",)}), *order(2, 0, "b", keys={"order": ("7",)})]
    world = judge(spans, [outcome("e", 60, correlation={"order": "7"})], settings=OSettings(too_broad_traces=limit))

    assert reached(world) == expected
    assert world.counted["too_broad"] == (not expected)


def test_rule_37_without_a_session_it_waits_and_expires():
    lost = outcome("e", 60, session_id="nobody")
    early, late = (judge(order(1, 0), [lost], watermark=w) for w in (60 + 35 * DAYS, 61 + 35 * DAYS))

    assert (early.waiting, early.counted["no_session"]) == ([lost], 0)
    assert (late.waiting, late.counted["no_session"]) == ([], 1)


@pytest.mark.parametrize(
    ("kind", "data", "field", "limit"),
    [
        ("escalation", {"state": "accepted"}, "escalated", 10 + 4 * DAYS),
        ("resolution", {"confirmed": False}, "denied", 10 + 4 * DAYS),
        ("reopen", {}, "reopened", 10 + 3 * DAYS),
        ("refusal", {}, "refused", 10 + 35 * DAYS),
        ("invalidate", {}, "invalid", 10 + 35 * DAYS),
    ],
)
def test_rule_38_until_when_each_kind_counts(kind, data, field, limit):
    long = contract(OCriterion("k", "evidence.x", deadline=4 * DAYS * 10**9, required=False))
    within, past = (
        only(judge(order(1, 0), [outcome("e", time, kind, data=data)], [long], 60 * DAYS))
        for time in (limit, limit + 1)
    )

    assert getattr(within, field)
    assert not getattr(past, field)
    assert past.outcomes == (("crm", "e"),)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], (False, False, False), id="none"),
        pytest.param([(60, "a", True)], (True, True, False), id="yes"),
        pytest.param([(60, "a", True), (90, "b", False)], (True, False, True), id="the latest"),
        pytest.param([(60, "b", True), (60, "a", False)], (True, True, False), id="then the greater event id"),
        pytest.param([(60, "a", False), (90, "b", "yes")], (True, False, True), id="a boolean"),
    ],
)
def test_rule_39_the_customers_answer(answers, expected):
    events = [outcome(i, time, "resolution", data={"confirmed": said}) for time, i, said in answers]
    session = only(judge(order(1, 0), [*events, outcome("z", 99, "feedback", data={"score": 1})]))

    assert (session.answered, session.confirmed, session.denied) == expected


def score(event_id: str, time: float, name: str, value: float, **more):
    return outcome(event_id, time, "evaluation", data={"name": name, "score": value, "state": "scored"} | more)


def test_rule_40_the_latest_scored_evaluation_of_each_name_feeds_goal_achievement():
    goal = contract(goal_achievement={"accuracy": (3, 0.25), "effort": (4, 0.75)})
    carried = {"name": "effort", "score": 1.0, "state": "scored"}
    spans = [*order(1, 0), span(1, "9", 2, 3, "step", parent="1", evaluations=(carried,))]
    events = [
        score("a", 60, "accuracy", 1),
        score("b", 90, "accuracy", 3),
        score("c", 99, "accuracy", 0, state="abstained"),
    ]

    assert only(judge(spans, events, [goal])).goal_achievement == pytest.approx(10 * (0.25 + 0.75 / 4))
    assert only(judge(spans, [*events, score("d", 60, "effort", 4)], [goal])).goal_achievement == pytest.approx(10)
    assert only(judge(spans, [], [goal])).goal_achievement is None


@pytest.mark.parametrize(
    ("event", "settings"),
    [
        pytest.param(outcome("e", 60, data=OK, from_agent=True), OSettings(), id="the agent's own"),
        pytest.param(outcome("e", 60, data=OK), OSettings(agent_sources=frozenset({"crm"})), id="its source"),
        pytest.param(
            outcome("e", 60, data=OK), OSettings(outcome_sources={"evidence": frozenset({"erp"})}), id="another's kind"
        ),
    ],
)
def test_rule_40a_what_may_not_be_said_is_shown_and_feeds_nothing(event, settings):
    session = only(judge(order(1, 0), [event], [PAID], settings=settings))

    assert session.outcomes == (("crm", "e"),)
    assert session.completion == "incomplete"
