"""What an explanation says of scores, causes and trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.review.explain import explain
from pipeline.review.explain_text import WIDTH, as_text

GOLDEN = Path(__file__).parents[2] / "golden" / "explain"
AT = "2026-11-26T05:00:00.000Z"


def story(**verdict: Any) -> dict[str, Any]:
    """The refuted order, of which the second session is incomplete, with more in its verdict."""
    told: dict[str, Any] = json.loads((GOLDEN / "refuted.json").read_text("utf-8"))
    told["sessions"][1]["verdict"] |= verdict
    return told


def evaluation(name: str, state: str = "scored", **more: Any) -> dict[str, Any]:
    empty = {"score": None, "normal": None, "label": "", "layer": "", "from_agent": False, "contradictions": 0}
    return {"evaluation": name, "state": state, "source": "judge", "at": AT, **empty, **more}


def how_well(told: dict[str, Any]) -> list[str]:
    return explain(told, 2)[0].how_well


def test_where_nobody_scored_anything_nothing_is_said() -> None:
    told = story()
    assert how_well(told) == []
    assert "How well" not in as_text(explain(told), None)


def test_scores_are_told_with_their_parts_and_who_gave_them() -> None:
    told = story(goal_achievement=6.5, goal_state="scored", feedback=0.8)
    told["sessions"][1]["evaluations"] = [
        evaluation("information_accuracy", score=2.5),
        evaluation("recall", score=0.75, layer="memory", source="ragas", from_agent=True),
        evaluation("tone", label="kind"),
        evaluation("safety", "error"),
    ]
    assert how_well(told) == [
        "Goal achievement 6.5 of 10.",
        "information_accuracy: 2.5 by judge.",
        "recall, about memory: 0.75 by ragas (a claim of the agent's own).",
        "tone: 'kind' by judge.",
        "safety: its evaluation failed (judge).",
        "The customer's feedback is 80% of its scale.",
    ]
    text = as_text(explain(told), None)
    assert "How well it was done\n  Goal achievement 6.5 of 10." in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH


@pytest.mark.parametrize(
    ("state", "said"), [("abstained", "its evaluator abstained"), ("error", "its evaluation failed")]
)
def test_an_evaluator_that_did_not_score_is_told_as_that(state: str, said: str) -> None:
    assert how_well(story(coherence=None, coherence_state=state)) == [f"Coherence is not known: {said}."]
    assert how_well(story(goal_achievement=None, goal_state=state)) == [f"Goal achievement is not known: {said}."]
    assert how_well(story(coherence=0.0, coherence_state="scored")) == ["Coherence 0 of 10."], "a zero is a zero"


def test_contradictions_are_told_in_the_evaluators_own_words() -> None:
    told = story(coherence=2.0, coherence_state="scored", contradictions=2)
    told["sessions"][1]["evaluations"] = [evaluation("coherence", score=2, contradictions=2)]
    data = {"name": "coherence", "score": 2, "contradictions": ["first yes, then no", "and yes again"]}
    told["outcomes"].append(
        {"source": "judge", "event_id": "e", "via": "session", "event_version": 1, "kind": "evaluation",
         "event_time": AT, "data": data, "from_agent": False}
    )  # fmt: skip
    assert how_well(told) == [
        "Coherence 2 of 10.",
        "judge found 2 contradictions: first yes, then no; and yes again.",
    ]


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("tool place_order", "the tool place_order, by the agent order_agent"),
        ("payment_confirmed", "the criterion payment_confirmed, by the agent order_agent"),
        ("model", "a model call that failed at the end, by the agent order_agent"),
    ],
)
def test_what_to_look_at_begins_with_where_it_broke_first(cause: str, said: str) -> None:
    told = story(failure_stage="execution", failure_cause=cause, failure_agent="order_agent")
    assert explain(told, 2)[0].look_at[0] == f"It broke first in the stage execution: {said}."


def test_a_trial_is_told_with_its_scores() -> None:
    told = story(scenario="ticket", trial="7", tool_name_recall=1.0, tool_argument_recall=0.5, reliability=0.75)
    assert how_well(told) == [
        "It plays the scenario ticket, trial 7: names recalled 100%, arguments recalled 50% and reliability 75%."
    ]
    assert how_well(story(scenario="other"))[0].startswith("It plays the scenario other; its contract expects no calls")
