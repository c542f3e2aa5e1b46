"""Means and counts of failures per segment and window: exact, in whatever order things come."""

from __future__ import annotations

from random import Random
from typing import Any

from pipeline.core.measuring.step import MeasureStep
from pipeline.core.measuring.summaries import means_of, tally
from pipeline.core.timeline import DAY, HOUR, MINUTE
from pipeline.runners.local_runner import CrashPoint
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import Line
from tests.unit.core.quality.sale import END, FAR, book, counts, evaluated, means, sold, summaries

SCORES = (0.1, 0.2, 0.3, 0.7, 1.1, 9.9)


def world(order: list[int] | None = None) -> Line:
    """Six sales, each with a coherence of its own; two of them are not done."""
    line = Line(book=book())
    for index in order if order is not None else range(len(SCORES)):
        sold(line, index + 1, T0 + index * MINUTE, state_done=index > 1)
        evaluated(line, f"e{index}", "coherence", index + 1, score=SCORES[index])
    return line.until(FAR)


def test_a_mean_says_of_how_many_it_is_and_has_the_target_of_its_contract() -> None:
    line = world()
    found = means(line)
    assert found["coherence"] == (sum(round(one * 10**6) for one in SCORES) / 10**6 / 6, 6)
    assert found["score"] == (4 / 6, 6)
    assert found["turns"] == (1.0, 6)
    assert (found["tool_calls"], found["retries"]) == ((0.0, 6), (0.0, 6))
    assert "goal_achievement" not in found, "nobody scored it"
    targets = {one.measure: one.target for one in summaries(line)[0] if one.cube == "family"}
    assert (targets["coherence"], targets["score"]) == (9.0, None)


def test_no_order_and_no_crash_makes_a_difference() -> None:
    expected = summaries(world())
    for seed in range(5):
        random = Random(seed)
        order = random.sample(range(6), 6)
        line = world(order)
        for stage in (Stage.JUDGE, Stage.MEASURE):
            for partition in range(2):
                line.runner.crash(stage, partition, random.choice(list(CrashPoint)))
        line.until(FAR)
        assert summaries(line) == expected


def test_an_open_session_and_one_that_is_not_eligible_are_in_no_mean() -> None:
    line = sold(Line(book=book()))
    assert means(line.until(END + 30 * MINUTE)) == {}
    refused: dict[str, Any] = {"name": "refused"}
    line.outcome("r", END + HOUR, "refusal", session_id="c1", data=refused)
    assert means(line.until(FAR)) == {}


def test_what_is_revised_leaves_the_mean_and_comes_in_anew() -> None:
    line = world()
    line.outcome(
        "e5", END + 2 * HOUR, "evaluation", session_id="c6", event_version=2, data={"name": "coherence", "score": 0.1}
    )
    line.until(FAR + MINUTE)
    assert means(line)["coherence"] == (2.5 / 6, 6)
    line.outcome("e5", END + 3 * HOUR, "retract", event_version=3)
    line.until(FAR + 2 * MINUTE)
    assert means(line)["coherence"] == (2.4 / 5, 5)


def test_a_window_holds_the_sessions_that_ended_in_it() -> None:
    line = Line(book=book())
    sold(line, 1, T0)
    sold(line, 2, T0 + 3 * DAY)
    line.until(T0 + 3 * DAY + 3 * HOUR + 30 * MINUTE)
    found = {one.window: one.count for one in summaries(line)[0] if (one.cube, one.measure) == ("system", "turns")}
    assert found == {"6h": 1, "24h": 1, "7d": 2}
    assert {one.window for one in summaries(line)[1]} == {"6h", "24h", "7d"}


def test_evaluators_that_abstained_or_failed_are_counted_beside_those_that_scored() -> None:
    line = Line(book=book())
    for index, state in enumerate(("scored", "abstained", "error", None), start=1):
        sold(line, index, T0 + index * MINUTE)
        if state is not None:
            evaluated(line, f"e{index}", "coherence", index, state=state, score=5)
    line.until(FAR)
    found = counts(line, "state")
    assert {name: n for name, n in found.items() if name.startswith("coherence")} == {
        "coherence_scored": 1, "coherence_abstained": 1, "coherence_error": 1,
    }  # fmt: skip
    assert found["eligible"] == 4
    assert means(line)["coherence"] == (5.0, 1)


def test_what_sealed_sessions_counted_stays() -> None:
    line = world()
    before = {one.measure: (one.mean, one.count) for one in _all_time(line)}
    line.until(END + 40 * DAY)
    assert {one.measure: (one.mean, one.count) for one in _all_time(line)} == before


def _all_time(line: Line) -> list[Any]:
    found = []
    for step in line.runner.steps(Stage.MEASURE).values():
        assert isinstance(step, MeasureStep)
        system = [one for one in step.partials() if one.cube == "system"]
        found += means_of("system", (), "all", tally(system), step.book, 0)
    return found
