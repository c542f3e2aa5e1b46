"""Goal achievement, coherence, the four targets and feedback (RULES.md 40, 40a): states are never zeros."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import DAY, HOUR
from schemas.outcome import OutcomeKind
from tests.builders import T0
from tests.unit.core.ingest_support import pairs
from tests.unit.core.line import Line, turn
from tests.unit.core.quality.sale import END, FAMILY, FAR, book, evaluated, means, sold

PARTS = ("information_accuracy", "action_correctness", "effort_minimization")


def quality(line: Line, watermark: int = FAR) -> dict[str, Any]:
    found: dict[str, Any] = line.until(watermark).only()["quality"]
    return found


def scored(*scores: float | None, **more: Any) -> Line:
    """A sale with these scores of the parts of its goal, in the order of the contract."""
    line = sold(Line(book=book(), **more))
    for name, score in zip(PARTS, scores, strict=False):
        if score is not None:
            evaluated(line, name, name, score=score)
    return line


# -- goal achievement --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "goal"),
    [((3, 4, 3), 10.0), ((2, 0, 3), 5.0), ((0, 0, 0), 0.0), ((2.5, 3, 1), 6.5), ((1, 1, 1), 3.0)],
    ids=["perfect", "the failed order of the literature", "nothing", "halves", "thirds"],
)
def test_rule_40_goal_achievement_is_the_weighted_sum_on_a_scale_of_ten(scores: tuple[float, ...], goal: float) -> None:
    found = quality(scored(*scores))
    assert (found["goal_achievement"], found["goal_state"]) == (goal, "scored")


def test_rule_40_without_a_score_of_each_part_nothing_is_known() -> None:
    found = quality(scored(3, 4))
    assert "goal_achievement" not in found
    assert found.get("goal_state", "missing") == "missing"


@pytest.mark.parametrize(
    ("state", "more", "known"),
    [
        ("abstained", {}, "abstained"),
        ("error", {}, "error"),
        ("error", {"score": 0}, "error"),
        ("abstained", {"score": 3}, "abstained"),
        ("scored", {}, "error"),
        ("scored", {"score": 3.5}, "error"),
        ("scored", {"score": -1}, "error"),
        ("scored", {"score": "3"}, "error"),
    ],
    ids=[
        "abstained", "error", "an error's zero", "an abstention's number", "scored without a score",
        "above its maximum", "below zero", "a number as text",
    ],
)  # fmt: skip
def test_rule_40_an_evaluator_that_did_not_score_is_a_state_and_never_a_zero(
    state: str, more: dict[str, Any], known: str
) -> None:
    line = evaluated(scored(3, 4), "effort", PARTS[2], state=state, **more)
    found = quality(line)
    assert (found.get("goal_achievement"), found["goal_state"]) == (None, known)
    assert "goal_achievement" not in means(line)
    told = next(one for one in found["evaluations"] if one["name"] == PARTS[2])
    assert (told["state"], told.get("score")) == (known, None)


def test_rule_40_of_one_name_the_latest_that_was_scored_holds() -> None:
    line = scored(3, 4, 3)
    evaluated(line, "again", PARTS[0], time=END + 2 * HOUR, score=0)
    evaluated(line, "error", PARTS[0], time=END + 3 * HOUR, state="error")
    assert quality(line)["goal_achievement"] == 7.0


def test_rule_40_it_is_revised_by_corrections_and_withdrawals() -> None:
    line = scored(3, 4, 3)
    assert quality(line, END + 3 * HOUR)["goal_achievement"] == 10.0
    evaluated(line, PARTS[1], PARTS[1], time=END + 4 * HOUR, score=1)
    line.outcome(PARTS[0], END + 5 * HOUR, "retract", event_version=2)
    assert quality(line, END + 6 * HOUR).get("goal_achievement") is None


@pytest.mark.parametrize(("after", "counts"), [(35 * DAY, True), (35 * DAY + 1_000_000, False)])
def test_rule_38_evaluations_count_up_to_the_end_of_retention(after: int, counts: bool) -> None:
    line = scored(3, 4)
    evaluated(line, "late", PARTS[2], time=END + after, score=3)
    found = quality(line, END + 8 * DAY)
    assert ("goal_achievement" in found) is counts


def test_rule_40_evaluations_on_spans_feed_goal_achievement_and_nothing_else() -> None:
    names = dict(zip(PARTS, (3, 4, 3), strict=True))
    events = [
        {"name": "gen_ai.evaluation.result", "timeUnixNano": str(END),
         "attributes": pairs({"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": float(score)})}
        for name, score in names.items()
    ]  # fmt: skip
    root, answer = turn(1, T0, {**FAMILY, "gen_ai.conversation.id": "c1", "trueup.state.done": True})
    found = Line(book=book()).spans({**root, "events": events}, answer).until(FAR).only()
    assert found["quality"]["goal_achievement"] == 10.0
    assert all(one["from_agent"] for one in found["quality"]["evaluations"])
    assert found["verified"] is None


def test_rule_40a_an_agents_own_evaluations_count_and_those_of_barred_sources_do_not() -> None:
    assert quality(scored(3, 4, 3, agent_sources=frozenset({"crm"})))["goal_achievement"] == 10.0
    barred = {OutcomeKind.EVALUATION: frozenset({"judge"})}
    found = quality(scored(3, 4, 3, outcome_sources=barred))
    assert (found.get("goal_achievement"), found.get("evaluations", [])) == (None, [])


# -- coherence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "coherence", "state"),
    [
        ({"score": 8}, 8.0, "scored"),
        ({"score": 0}, 0.0, "scored"),
        ({"score": 10}, 10.0, "scored"),
        ({"score": 10.5}, None, "error"),
        ({"score": 0.8, "scale": 1}, 8.0, "scored"),
        ({"score": 4, "scale": [1, 5]}, 7.5, "scored"),
        ({"state": "abstained"}, None, "abstained"),
        ({"state": "error", "score": 0}, None, "error"),
    ],
)
def test_coherence_is_told_on_a_scale_of_ten(data: dict[str, Any], coherence: float | None, state: str) -> None:
    line = evaluated(sold(Line(book=book())), "e", "coherence", **data)
    found = quality(line)
    assert (found.get("coherence"), found["coherence_state"]) == (coherence, state)
    assert means(line).get("coherence") == (None if coherence is None else (coherence, 1))


def test_coherence_tells_its_contradictions() -> None:
    told = ["first it may be returned, then it may not", "store credit after all"]
    found = quality(evaluated(sold(Line(book=book())), "e", "coherence", score=2, contradictions=told))
    assert (found["coherence"], found["contradictions"]) == (2.0, 2)


# -- the four targets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["memory", "knowledge", "tool", "prompt", "system"])
def test_each_target_is_measured_by_the_mean_of_what_was_scored_about_it(layer: str) -> None:
    line = sold(Line(book=book()))
    evaluated(line, "a", "ndcg", layer=layer, score=0.5)
    evaluated(line, "b", "mrr", layer=layer, score=4, scale=[0, 5])
    evaluated(line, "c", "stars", layer=layer, score=7)  # of an unknown scale: it says nothing about the mean
    evaluated(line, "d", "broken", layer=layer, state="error", score=0)
    evaluated(line, "e", "elsewhere", layer="shipping", score=0)
    found = quality(line)
    assert found["layers"] == {layer: 0.65}
    assert means(line)[layer] == (0.65, 1)
    assert {one["name"]: one["state"] for one in found["evaluations"]} == {
        "ndcg": "scored", "mrr": "scored", "stars": "scored", "broken": "error", "elsewhere": "scored",
    }  # fmt: skip


def test_a_verdict_shows_so_many_evaluations_and_first_those_that_are_measured() -> None:
    line = sold(Line(book=book()))
    for index in range(40):
        evaluated(line, f"e{index}", f"a{index:02}", score=1)
    evaluated(line, "z", "coherence", score=9)
    names = [one["name"] for one in quality(line)["evaluations"]]
    assert names == ["coherence", *(f"a{index:02}" for index in range(31))]


# -- feedback ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "feedback"),
    [
        ({"score": 4, "scale": 5}, 0.8),
        ({"score": 1, "scale": [1, 5]}, 0.0),
        ({"score": True}, 1.0),
        ({"score": 4}, None),
        ({"score": 6, "scale": 5}, None),
        ({"score": 4, "scale": "stars"}, None),
        ({}, None),
    ],
)
def test_feedback_is_told_on_the_scale_that_was_given(data: dict[str, Any], feedback: float | None) -> None:
    line = sold(Line(book=book())).outcome("f", END + HOUR, "feedback", session_id="c1", data=data)
    assert quality(line).get("feedback") == feedback
    assert means(line).get("feedback") == (None if feedback is None else (feedback, 1))


def test_the_latest_feedback_holds_and_the_agents_own_is_none() -> None:
    line = sold(Line(book=book()))
    for hours, score in ((2, 5), (1, 1)):
        line.outcome(f"f{hours}", END + hours * HOUR, "feedback", session_id="c1", data={"score": score, "scale": 5})
    assert quality(line)["feedback"] == 1.0
    own = sold(Line(book=book(), agent_sources=frozenset({"crm"})))
    own.outcome("f", END + HOUR, "feedback", session_id="c1", data={"score": 5, "scale": 5})
    assert quality(own).get("feedback") is None


SAID: dict[str, dict[str, Any]] = {
    "number": {"score": 3},
    "label": {"label": "poor"},
    "error": {"state": "error"},
    "abstained": {"state": "abstained"},
}


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (("number", "label"), "label"),
        (("label", "number"), "number"),
        (("number", "label", "error"), "label"),
        (("number", "error", "label", "abstained"), "label"),
        (("label", "abstained"), "label"),
        (("error", "abstained"), "abstained"),
        (("abstained", "error"), "error"),
    ],
)
def test_rule_40_of_one_name_the_latest_that_is_scored_holds(said: tuple[str, ...], holds: str) -> None:
    line = sold(Line(book=book()))
    for number, what in enumerate(said):
        evaluated(line, f"e{number}", "tone", time=END + (1 + number) * HOUR, **SAID[what])
    (found,) = quality(line)["evaluations"]
    assert {name: found.get(name) for name in SAID[holds]} == SAID[holds]
    if holds == "label":
        assert found.get("score") is None
