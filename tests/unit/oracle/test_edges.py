"""Cases that only an edge tells apart, each by hand."""

from __future__ import annotations

from tests.oracle.model import DAY, HOUR, OCriterion
from tests.unit.oracle.small_world import HOURS, MIN, at, contract, judge, only, outcome, span, turn


def order(trace: int, start: float, conversation: str | None = "c", **more):
    return turn(trace, start, conversation, **({"family": ("order",)} | more))


def test_rule_7_a_run_ends_with_the_last_of_its_traces():
    assert only(judge([*turn(1, 0), *turn(2, 600, None, links=[1])])).end == at(610)


def test_rule_12_an_earlier_run_that_ends_last_keeps_the_session_alive():
    spans = [span(1, "1", 0, 9000, id="c"), *turn(2, 10), *turn(3, 9000 + 2 * HOURS)]

    assert only(judge(spans)).runs == 3


def test_rule_15_a_span_without_a_claim_is_not_counted():
    assert "unknown_claim" not in judge([*turn(1, 0), *turn(2, 20, claim="failed")]).counted


def test_rule_23_a_session_lasts_from_its_first_start_to_its_last_end():
    lasted = contract(OCriterion("k", "session.duration_s == 110.0 && session.runs == 2 && session.turns == 2"))

    assert only(judge([*order(1, 0), *turn(2, 100)], contracts=[lasted])).completion == "complete"


def test_rule_36_a_session_that_begins_exactly_by_then_is_reached():
    spans = order(1, 5 * MIN, keys={"order": ("7",)})
    events = [outcome("e", 0, correlation={"order": "7"}), outcome("f", 0, "feedback", correlation={"order": "7"})]

    assert only(judge(spans, events)).outcomes == (("crm", "e"), ("crm", "f"))
    assert judge(spans, [outcome(e.event_id, -1, e.kind, correlation=e.correlation) for e in events]).waiting != []


def test_rule_41_a_session_that_starts_as_the_other_ends_does_not_reopen_it():
    versions = [contract(family=f, reopen_window=DAY) for f in ("order", "return")]
    at_the_end = [*order(1, 0, claim="completed"), *order(2, 10, family=("return",)), *order(3, 11)]

    assert [s.reopened for s in judge(at_the_end, contracts=versions).sessions] == [True, False, False]
    assert judge(at_the_end, contracts=versions).session("c", 1).reopened_at == at(11)

    same = {"subject": "s", "issues": ("i",), "claim": "completed"}
    instant = [contract(resume_window=-1)]
    for start, reopened in ((10, False), (11, True)):
        world = judge([*order(1, 0, "a", **same), *order(2, start, "b", **same)], contracts=instant)
        assert world.session("a").reopened is reopened


def test_rule_45_an_ineligible_session_is_in_no_rate_of_eligible_ones():
    world = judge([*order(1, 0), *turn(2, 3 * HOURS)], contracts=[contract(OCriterion("k", "true"))])

    assert [s.eligible for s in world.sessions] == [True, False]
    assert world.rates["order", "reopen"] == (1, 1)
    assert world.rates["order", "resolution"] == (0, 1)
    assert world.rates["order", "attribution"] == (2, 2)


def test_rule_47_completion_waits_for_required_criteria_and_verified_for_independent_ones_too():
    criteria = [
        OCriterion("k", "true"),
        OCriterion("seen", "evidence.seen == true", deadline=DAY, required=False),
        OCriterion("paid", "evidence.pay == 'ok'", deadline=DAY, required=False, trust="independent"),
    ]
    events = [
        outcome("a", 10 + HOURS, data={"pay": "ok"}),
        outcome("b", 10 + 2 * HOURS, data={"seen": True}),
    ]
    world = judge(order(1, 0), events, [contract(*criteria)])

    assert world.events["completion"] == {("default", "c", 1): 0}
    assert world.events["verified_completion"] == {("default", "c", 1): HOUR}
