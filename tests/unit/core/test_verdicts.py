"""What a session's verdict says (RULES.md 16, 19 to 22, 28 to 36, 41), at each limit and one nanosecond beyond."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from schemas.verdict import Completion, CriterionVerdict, Verdict
from tests.builders import T0, outcome, span, trace, trace_id
from tests.oracle.model import OOutcome, OSpan
from tests.unit.core.judged import judged, run

END = T0 + 10 * SECOND
DAY = 24 * HOUR


def order(number: int = 1, start: int = T0, **more: Any) -> list[OSpan]:
    """Ten seconds in which an order is placed."""
    return trace(number, start, family=("order",), tool="place_order", **more)


def settled(event_id: str, time: int, value: Any = True, **more: Any) -> OOutcome:
    return outcome(event_id, time, data={"settled": value}, **more)


def criterion(verdict: Verdict, name: str) -> CriterionVerdict:
    return next(one for one in verdict.criteria if one.id == name)


def only(*given: Any, **more: Any) -> Verdict:
    (found,) = judged(*given, **more)
    return found


# -- claims and ends ---------------------------------------------------------------------------------------------------


def test_rule_16_a_claim_is_assumed_once_the_resume_window_has_passed_and_not_before() -> None:
    assert only(order(), watermark=END + HOUR).claimed == ""
    assert only(order(), watermark=END + HOUR + 1).claimed == "assumed"


def test_rule_16_a_session_without_contract_assumes_its_claim_too() -> None:
    assert only(trace(1, T0, family=("other",))).claimed == "assumed"


def test_rule_16_no_claim_is_assumed_where_the_contract_says_so() -> None:
    assert only(trace(1, T0, family=("search",))).claimed == ""


def test_rule_16_no_claim_is_assumed_of_what_did_not_end_in_an_answer() -> None:
    spans = [*order(), span(1, 104, END, END, "tool", 100, tool="lookup")]
    assert only(spans).claimed == ""


def test_rule_19_no_claim_is_assumed_where_the_root_failed() -> None:
    verdict = only(order(failed=True))
    assert (verdict.claimed, verdict.terminal_reason) == ("", "failed")


def test_rule_19_a_failed_last_leaf_is_an_error_at_the_end() -> None:
    assert only([*order(), span(1, 104, END, END, "tool", 100, tool="lookup", failed=True)]).terminal_reason == "failed"


def test_rule_21_a_session_ends_past_the_session_gap_and_not_at_it() -> None:
    assert not only(order(), watermark=END + 30 * MINUTE).terminal
    assert only(order(), watermark=END + 30 * MINUTE + 1).terminal


def test_rule_21_a_claim_ends_a_session_past_its_grace_and_not_at_it() -> None:
    claimed = order(claim="completed")
    assert not only(claimed, watermark=END + 10 * MINUTE).terminal
    assert only(claimed, watermark=END + 10 * MINUTE + 1).terminal_reason == "completed"


def test_rule_21_an_escalation_goes_before_a_failed_claim() -> None:
    person = span(1, 104, END, END, "tool", 100, tool="escalate_to_human")
    assert only([*order(claim="failed"), person]).terminal_reason == "escalated"


def test_a_refused_session_is_in_no_denominator() -> None:
    spans = [*order(), span(1, 104, END, END, "tool", 100, tool="refuse")]
    pipeline = run(spans)
    assert ("", "completion") not in pipeline.rates()
    assert pipeline.rates()["", "attribution"] == (1, 1)


def test_rule_22_a_retried_call_counts_once_and_as_its_last_attempt() -> None:
    tries = [
        span(1, 104 + index, T0 + index, T0 + index, "tool", 100, tool="lookup", call_id="1", failed=not index)
        for index in range(2)
    ]
    verdict = only([*order(), *tries])
    assert (verdict.tool_calls, verdict.tool_calls_ok, verdict.retries) == (2, 2, 1)


# -- evidence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "completion"), [(0, "complete"), (1, "incomplete")], ids=["at the deadline", "one ns later"]
)
def test_evidence_counts_up_to_the_deadline_whenever_it_arrives(late: int, completion: str) -> None:
    assert only(order(), [settled("e", END + DAY + late)]).completion == completion


def test_the_greatest_event_time_then_event_id_holds() -> None:
    told = [settled("a", END + 2), settled("b", END + 2, False), settled("c", END + 1)]
    assert only(order(), told).completion is Completion.INCOMPLETE


def test_null_says_nothing() -> None:
    assert only(order(), [settled("a", END), settled("b", END + 1, None)]).completion is Completion.COMPLETE


def test_what_refutes_a_check_fails_it_before_its_deadline() -> None:
    verdict = only(order(), [settled("e", END + HOUR, False)], watermark=END + 2 * HOUR)
    found = criterion(verdict, "settled")
    assert (found.status, found.reason, found.failed_at) == ("failed", "fails_when", END + HOUR)


def test_without_evidence_a_check_is_pending_up_to_its_deadline_and_false_past_it() -> None:
    assert only(order(), watermark=END + DAY).completion is Completion.PENDING
    found = criterion(only(order(), watermark=END + DAY + 1), "settled")
    assert (found.status, found.reason, found.failed_at) == ("failed", "unverified", END + DAY)


def test_a_check_has_passed_since_it_last_began_to_hold() -> None:
    told = [settled("a", END + 1), settled("b", END + 2, False), settled("c", END + 3), settled("d", END + 4)]
    assert criterion(only(order(), told), "settled").passed_at == END + 3


def test_what_raises_is_pending_until_it_is_an_error() -> None:
    spans = trace(1, T0, family=("ask",), state={"told": False})
    told = [outcome("e", END, data={"score": "good"})]
    pending = criterion(only(spans, told, watermark=END + DAY), "kept")
    decided = criterion(only(spans, told, watermark=END + DAY + 1), "kept")
    assert (pending.status, pending.reason) == ("pending", "waiting")
    assert (decided.status, decided.reason) == ("error", "error")


def test_a_check_that_does_not_apply_counts_neither_way() -> None:
    verdict = only(trace(1, T0, family=("order",)), [settled("e", END)])
    assert criterion(verdict, "told").status == "not_applicable"
    assert verdict.score == 0.5


# -- which version, which session --------------------------------------------------------------------------------------


def test_the_highest_version_holds_whatever_came_last() -> None:
    told = [settled("e", END + 1, False, event_version=2), settled("e", END + 2, True, event_version=1)]
    assert only(order(), told).completion is Completion.INCOMPLETE


def test_a_retraction_wins_at_equal_versions_and_a_later_version_revives() -> None:
    for time in (END, END + 2):  # it comes first, or last
        gone = [settled("e", END + 1), outcome("e", time, "retract")]
        assert criterion(only(order(), gone), "settled").reason == "unverified"
    back = [*gone, settled("e", END + 1, event_version=2)]
    assert only(order(), back).completion is Completion.COMPLETE


def test_an_outcome_goes_to_the_last_session_begun_by_then_with_the_skew() -> None:
    second = END + 5 * HOUR
    spans = [*order(), *order(2, second)]
    told = [outcome("e", second - 5 * MINUTE - late, "escalation", data={"state": "accepted"}) for late in (0, 1)]
    assert [one.escalated for one in judged(spans, told[:1])] == [False, True]
    assert [one.escalated for one in judged(spans, told[1:])] == [True, False]


def test_an_outcome_by_trace_goes_to_the_session_that_holds_it() -> None:
    spans = [*order(), *order(2, END + 5 * HOUR)]
    told = [outcome("e", END + 6 * HOUR, "escalation", data={"state": "accepted"}, trace_id=trace_id(1))]
    assert [one.escalated for one in judged(spans, told)] == [True, False]


def test_evidence_by_key_goes_to_every_session_that_acted_on_it() -> None:
    key = {"order": ("k",)}
    spans = [*order(keys=key), *order(2, END + 2 * HOUR, keys=key), *order(3, END, conversation="d", keys=key)]
    told = [settled("e", END + 6 * HOUR, correlation={"order": "k"})]
    completions = [one.completion for one in [*judged(spans, told), *judged(spans, told, conversation="d")]]
    assert completions == [Completion.COMPLETE] * 3


@pytest.mark.parametrize(("time", "first"), [(5 * HOUR - 5 * MINUTE - 1, True), (5 * HOUR - 5 * MINUTE, False)])
def test_another_kind_by_key_goes_to_the_latest_trace_that_had_begun(time: int, first: bool) -> None:
    key = {"order": ("k",)}
    spans = [*order(keys=key), *order(2, END + 5 * HOUR, conversation="d", keys=key)]
    told = [outcome("e", END + time, "escalation", data={"state": "accepted"}, correlation={"order": "k"})]
    assert judged(spans, told)[0].escalated is first
    assert judged(spans, told, conversation="d")[0].escalated is not first


def test_a_trace_without_work_leads_no_outcome_astray() -> None:
    key = {"order": ("k",)}
    idle = span(2, 200, END, END, "step", id="d", keys=key)
    told = [outcome("e", END + HOUR, "escalation", data={"state": "accepted"}, correlation={"order": "k"})]
    assert only([*order(keys=key), idle], told).escalated


# -- reopening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "reopened"), [(0, True), (1, False)], ids=["at the limit", "one ns later"])
def test_a_return_within_the_reopen_window_reopens(late: int, reopened: bool) -> None:
    first, second = judged([*order(claim="completed"), *trace(2, END + 48 * HOUR + late, family=("order",))])
    assert first.reopened is reopened
    assert second.follow_up is not reopened


def test_the_earliest_return_is_when_it_was_reopened() -> None:
    told = [outcome("e", END + 3 * HOUR, "reopen", ordinal=1, session_id="c")]
    first = judged([*order(claim="completed"), *order(2, END + 2 * HOUR)], told)[0]
    assert first.reopened_at == END + 2 * HOUR


def test_the_latest_claimed_session_is_the_one_reopened() -> None:
    spans = [*order(claim="completed"), *order(2, END + 5 * HOUR, claim="failed"), *order(3, END + 10 * HOUR)]
    assert [one.reopened for one in judged(spans)] == [True, False, False]
    assert [one.reopens for one in judged(spans)] == [0, 1, 1]


def test_different_issues_do_not_reopen() -> None:
    spans = [*order(claim="completed", issues=("i1",)), *order(2, END + 5 * HOUR, issues=("i2",))]
    assert not judged(spans)[0].reopened


def test_rule_20_a_hand_off_within_a_hand_off_to_a_person_is_one() -> None:
    tool = span(1, 104, END, END, "tool", 100, tool="escalate_to_human", failed=True)
    inner = span(1, 105, END, END, "handoff", 104, handoff_target="care_human")
    verdict = only([*order(), tool, inner])
    assert (verdict.escalated, verdict.handoff_attempted) == (False, True)


def test_rule_01_a_copy_of_a_span_counts_once() -> None:
    spans = order()
    pipeline = run([*spans, *spans])
    assert pipeline.rates()["", "tool_success"] == (1, 1)
    assert pipeline.dropped() == len(spans)


def test_rule_05_an_id_that_comes_later_moves_the_trace_and_its_outcomes() -> None:
    told = [outcome("e", END + 30 * MINUTE, "escalation", data={"state": "accepted"}, trace_id=trace_id(1))]
    late = span(1, 109, END + HOUR, END + HOUR, "step", 100, id="c")
    assert only([*order(conversation=None), late], told).escalated
