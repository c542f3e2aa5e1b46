"""Evaluations, goals, causes, trials and means, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.model import SECOND, OContract, OCriterion, OOutcome, OSession
from tests.oracle.parts import OFailure
from tests.unit.oracle.small_world import HOURS, at, contract, judge, only, outcome, span, tool_turn, turn

DONE = OCriterion("done", "state.done", stage="execution", agent="clerk")
PAID = OCriterion("paid", "evidence.paid", trust="independent", deadline=HOURS * SECOND)
GOAL = contract(DONE, goal_achievement={"accuracy": (3, 0.3), "effort": (4, 0.7)})


def told(event_id: str, name: str, time: float = 60, **data: Any) -> OOutcome:
    return outcome(event_id, time, "evaluation", data={"name": name, **data})


def judged(*outcomes: OOutcome, by: OContract = GOAL, **more: Any) -> OSession:
    return only(judge(turn(1, 0, family=("order",), **more), outcomes, [by]))


@pytest.mark.parametrize(
    ("data", "state", "normal"),
    [
        ({"score": 0.25}, "scored", 0.25),
        ({"score": 7}, "scored", None),
        ({"score": 2, "scale": [1, 5]}, "scored", 0.25),
        ({"score": 6, "scale": [1, 5]}, "error", None),
        ({"score": True}, "scored", 1.0),
        ({"score": "1"}, "error", None),
        ({"score": "1", "label": "good"}, "scored", None),
        ({"score": 1, "state": "abstained"}, "abstained", None),
        ({"score": 1, "state": "unsure"}, "error", None),
        ({}, "error", None),
    ],
)
def test_an_evaluation_is_read_on_its_scale(data: dict[str, Any], state: str, normal: float | None) -> None:
    (found,) = judged(told("e", "tone", **data)).evaluations.values()
    assert (found.state, found.normal) == (state, normal)


def test_of_one_name_the_latest_that_is_scored_holds_by_number_or_label_before_failures() -> None:
    one, other = told("a", "tone", 60, score=0.1), told("b", "tone", 90, score=0.2)
    label, failed = told("c", "tone", 120, label="good"), told("d", "tone", 150, state="error")
    assert float(judged(one, other, failed).evaluations["tone"].score or 0) == 0.2
    found = judged(one, other, label, failed).evaluations["tone"]
    assert (found.label, found.score) == ("good", None)
    assert judged(label, failed).evaluations["tone"].label == "good"


def test_a_goal_is_known_when_all_its_parts_hold_a_number() -> None:
    accuracy, effort = told("a", "accuracy", score=3), told("b", "effort", score=2)
    assert (judged(accuracy, effort).goal_achievement, judged(accuracy, effort).goal_state) == (6.5, "scored")
    assert (judged(accuracy).goal_achievement, judged(accuracy).goal_state) == (None, "missing")
    assert judged(accuracy, told("b", "effort", state="abstained")).goal_state == "abstained"
    assert judged(told("a", "accuracy", score=3.5), effort).goal_state == "error"


def test_layers_and_feedback_are_on_one_scale() -> None:
    session = judged(
        told("a", "one", score=1, scale=4, layer="memory"),
        told("b", "two", score=0.75, layer="memory"),
        outcome("c", 60, "feedback", data={"score": 5, "scale": [1, 5]}),
        outcome("d", 90, "feedback", data={"score": "unreadable"}),
    )
    assert (session.layers, session.feedback) == ({"memory": 0.5}, 1.0)


def test_the_cause_is_what_came_first() -> None:
    by = contract(DONE, PAID)
    unpaid = judged(by=by, state={"done": True}).failure
    assert unpaid == OFailure("verification", "paid", "", at(10) + HOURS * SECOND)
    assert judged(by=by).failure == OFailure("execution", "done", "clerk", at(10))
    assert judged(by=by, claim="refused").failure == OFailure("policy", "refusal", "", at(10))
    broken = tool_turn(1, 0, "pay", failed=True)
    broken[0] = span(1, "1", 0, 10, "agent", id="c", agent="helper", family=("order",))
    assert only(judge(broken, (), [by])).failure == OFailure("execution", "tool pay", "helper", at(5))


def test_a_tool_is_no_cause_of_what_names_another_one() -> None:
    by = contract(OCriterion("sent", "tools['send'].ok > 0"))
    broken = tool_turn(1, 0, "pay", failed=True)
    broken[0] = span(1, "1", 0, 10, "agent", id="c", agent="helper", family=("order",))
    assert only(judge(broken, (), [by])).failure == OFailure("verification", "sent", "", at(10))


def test_calls_beside_those_expected() -> None:
    expected: dict[str, Any] = {"buy": (("pay", {"sum": "3", "to": None}), ("send", {}))}
    by = contract(DONE, expected=expected)
    made = tool_turn(1, 0, "pay", arguments={"sum": "4", "to": "x", "by": "y"}, scenario="buy", trial="7")
    made[0] = span(1, "1", 0, 10, "agent", id="c", agent="helper", family=("order",), state={"done": True})
    world = judge(made, (), [by])
    trial = only(world).trial
    assert trial is not None
    assert (trial.name_precision, trial.name_recall) == (1.0, 0.5)
    assert (trial.argument_precision, trial.argument_recall) == (round(1 / 3, 6), 0.5)
    assert trial.reliability == 0.5
    assert world.means["order", "reliability"] == (1, 500_000)
    assert world.means["", "turns"] == (1, 1_000_000)
    assert world.failures == {}
