"""Cases that only an edge tells apart, each by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.model import DAY, HOUR, SECOND, OCriterion
from tests.unit.oracle.small_world import DAYS, HOURS, MIN, at, contract, judge, only, outcome, span, turn


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


def test_rule_4_a_parent_cycle_counts_as_roots_and_ends():
    spans = [
        span(1, "1", 0, 10, parent="2", id="one"),
        span(1, "2", 0, 10, parent="1", id="two"),
        span(1, "3", 0, 10, parent="2", id="under"),
        span(1, "4", 5, 10, id="root"),
    ]

    assert only(judge(spans)).conversation == "root"
    assert only(judge(spans[:3])).conversation == "one"
    assert only(judge(spans[2:])).conversation == "root"


def test_rule_7_a_trace_without_work_begun_with_a_run_goes_with_it():
    second = 11 + 30 * MIN
    idle = span(3, "1", second, second + 1, "step", links=[1], family=("return",))
    spans = [*order(1, 0), *turn(2, second, None, links=[1]), idle]

    assert [s.trace_ids[0][-1] for s in judge(spans).sessions] == ["1", "2"]
    assert [s.family for s in judge(spans).sessions] == ["order", "return"]


def test_rule_13_inheriting_looks_at_the_first_start():
    spans = [*order(1, 0), *turn(2, 3 * DAYS), *turn(3, 3 * DAYS + HOURS)]

    assert [s.family_state for s in judge(spans).sessions] == ["stated", "inherited"]


def test_rule_19_the_root_of_the_trace_that_ended_last():
    good, bad = turn(1, 0), [*turn(2, 20, None, links=[1], failed=True)]

    assert only(judge([*good, *bad])).terminal_reason == "failed"
    assert only(judge([*turn(1, 0, failed=True), *turn(2, 20, None, links=[1])])).terminal_reason == "completed"


def test_rule_33_a_time_exactly_the_skew_ahead_stands():
    paid = contract(OCriterion("paid", "evidence.pay == 'ok'", deadline=DAY))
    event = outcome("e", HOURS, data={"pay": "ok"})
    ages = [
        judge(order(1, 0), [replace(event, record_time=at(HOURS - ahead))], [paid]).events["completion"]
        for ahead in (300, 301)
    ]

    assert ages == [{("default", "c", 1): (HOURS - 10) * SECOND}, {("default", "c", 1): (HOURS - 311) * SECOND}]


def test_rule_42_a_start_exactly_the_resume_window_after_the_end_does_not_reopen():
    same = {"subject": "s", "issues": ("i",), "claim": "completed"}

    for start, reopened in ((10 + 2 * HOURS, False), (11 + 2 * HOURS, True)):
        assert judge([*order(1, 0, "a", **same), *order(2, start, "b", **same)]).session("a").reopened is reopened


def test_rule_47_of_several_failures_the_earliest_stands():
    late = OCriterion("late", "evidence.b", deadline=2 * DAY)
    soon = OCriterion("soon", "evidence.a", deadline=DAY)

    assert judge(order(1, 0), contracts=[contract(late, soon)]).events["resolution"] == {("default", "c", 1): DAY}
