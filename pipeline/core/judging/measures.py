"""What a verdict adds to means and to counts of failures: whole numbers, so that no order of adding matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.segment import MICRO, Measure
from schemas.verdict import Completion, Scoring, Status, Verdict

ORDER: tuple[Measure, ...] = tuple(Measure)
"""A measure is kept by its place here: new ones go to the end."""


def measures_of(verdict: Verdict) -> tuple[int, ...]:
    """Place and millionths, in turn, of each measure that an eligible session has."""
    if not verdict.eligible:
        return ()
    values = dict(_values(verdict))
    flat: list[int] = []
    for place, measure in enumerate(ORDER):
        value = values.get(measure)
        if value is not None:
            flat += [place, round(value * MICRO)]
    return tuple(flat)


def _values(verdict: Verdict) -> Iterator[tuple[Measure, float | None]]:
    quality, trial = verdict.quality, verdict.trial
    yield Measure.SCORE, verdict.score
    yield Measure.GOAL_ACHIEVEMENT, quality.goal_achievement
    yield Measure.COHERENCE, quality.coherence
    yield Measure.FEEDBACK, quality.feedback
    for layer, mean in quality.layers.items():
        yield Measure(layer), mean
    yield Measure.TURNS, verdict.turns
    yield Measure.TOOL_CALLS, verdict.tool_calls
    yield Measure.RETRIES, verdict.retries
    yield Measure.COST_USD, verdict.cost_usd
    if trial is not None:
        yield Measure.TOOL_NAME_PRECISION, trial.name_precision
        yield Measure.TOOL_NAME_RECALL, trial.name_recall
        yield Measure.TOOL_ARGUMENT_PRECISION, trial.argument_precision
        yield Measure.TOOL_ARGUMENT_RECALL, trial.argument_recall
        yield Measure.RELIABILITY, trial.reliability


def failures_of(verdict: Verdict) -> Iterator[str]:
    """What failed in an eligible session: `stage/<stage>` once, `criterion/<id>` for each that did."""
    if not verdict.eligible:
        return
    if verdict.completion is Completion.INCOMPLETE and verdict.failure is not None:
        yield f"stage/{verdict.failure.stage.value}"
    for one in verdict.criteria:
        if one.status in (Status.FAILED, Status.ERROR):
            yield f"criterion/{one.id}"


def scoring_of(verdict: Verdict) -> Iterable[str]:
    """States by which a mean says of how many sessions it is: asked and scored, abstained, failed, or not told."""
    if not verdict.eligible:
        return
    for name, state in (("goal", verdict.quality.goal_state), ("coherence", verdict.quality.coherence_state)):
        if state is not Scoring.MISSING:
            yield f"{name}_{state.value}"
