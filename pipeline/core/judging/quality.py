"""How well a session was done, as judges and people scored it: goal achievement, coherence, layers, feedback.

The rule this file keeps: an evaluation is scored, abstained or an error; only a score is ever a number, so that a judge
that failed or kept silent is never a zero (RULES.md 40, 40a). Sums are exact fractions, so that no order matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pipeline.core.contracts.book import CompiledContract
from schemas.outcome import Outcome, OutcomeKind
from schemas.segment import LAYERS, Measure
from schemas.span import Value
from schemas.verdict import EvaluationVerdict, Quality, Scoring

MOST = 32
"""Evaluations that a verdict shows; what the contract and the measures read comes first, then by name."""
SCORES = frozenset({OutcomeKind.EVALUATION, OutcomeKind.FEEDBACK})
COHERENCE = Measure.COHERENCE.value
ONE, TEN = Fraction(1), Fraction(10)
DECIMALS = 6


def quality_of(shown: Sequence[Outcome], contract: CompiledContract | None, until: int) -> Quality:
    """What the outcomes of a session say about how well it was done.

    Args:
        shown: all that reached the session, in order of (event time, event id).
        until: the end of retention, ns: what happened later does not count (rule 38).
    """
    told = [one for one in shown if one.kind in SCORES and one.event_time <= until and not one.barred]
    if not told:
        return Quality()
    most = {part.name: part.most for part in contract.goal} if contract else {}
    held: dict[str, EvaluationVerdict] = {}
    for one in told:
        if one.kind is OutcomeKind.EVALUATION and isinstance(one.data.get("name"), str):
            read = _read(one, most)
            known = held.get(read.name)
            if known is None or read.state is Scoring.SCORED or known.state is not Scoring.SCORED:
                held[read.name] = read
    goal, goal_state = _goal(held, contract)
    coherence = held.get(COHERENCE)
    first = {COHERENCE, *most}
    return Quality(
        goal_achievement=goal,
        goal_state=goal_state,
        coherence=_rounded(TEN * _fraction(coherence.normal)) if coherence and coherence.normal is not None else None,
        coherence_state=coherence.state if coherence else Scoring.MISSING,
        contradictions=coherence.contradictions if coherence else 0,
        layers=_layers(held.values()),
        feedback=_feedback(told),
        evaluations=tuple(sorted(held.values(), key=lambda one: (one.name not in first, one.name))[:MOST]),
    )


def _read(outcome: Outcome, most: Mapping[str, Fraction]) -> EvaluationVerdict:
    """One evaluation; a score outside its own scale is an error of the evaluator, and no score."""
    data = outcome.data
    name, stated = str(data["name"]), data.get("state")
    score, label, layer = _number(data.get("score")), _text(data.get("label")), _text(data.get("layer"))
    state, normal = Scoring.SCORED, None
    if stated is not None and stated not in (Scoring.SCORED, Scoring.ABSTAINED, Scoring.ERROR):
        state = Scoring.ERROR
    elif stated in (Scoring.ABSTAINED, Scoring.ERROR):
        state = Scoring(str(stated))
    elif score is None and not label:
        state = Scoring.ERROR
    if state is Scoring.SCORED and score is not None:
        given = scale_of(data.get("scale"))
        scale = given or ((Fraction(0), TEN) if name == COHERENCE else (Fraction(0), most.get(name, ONE)))
        within = scale[0] <= score <= scale[1]
        if within:
            normal = _rounded((score - scale[0]) / (scale[1] - scale[0]))
        elif given or name == COHERENCE or name in most:
            state = Scoring.ERROR
        if name in most and not 0 <= score <= most[name]:
            state, normal = Scoring.ERROR, None
    return EvaluationVerdict(
        name=name,
        state=state,
        score=float(score) if score is not None and state is Scoring.SCORED else None,
        normal=normal,
        label=label,
        layer=layer,
        source=outcome.source,
        at=outcome.event_time,
        from_agent=outcome.from_agent,
        contradictions=_count(data.get("contradictions")),
    )


def scale_of(value: Value) -> tuple[Fraction, Fraction] | None:
    """`5` is 0 to 5, `[1, 5]` is 1 to 5; None where it is neither."""
    ends = [_number(one) for one in value] if isinstance(value, list) else [Fraction(0), _number(value)]
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None and ends[0] < ends[1]:
        return ends[0], ends[1]
    return None


def _goal(held: Mapping[str, EvaluationVerdict], contract: CompiledContract | None) -> tuple[float | None, Scoring]:
    """10 x the sum of weight x raw / max over the parts; without a score of each part nothing is known.

    Source: DESIGN.md section 5; the goal achievement index of the evaluation literature.
    """
    parts = contract.goal if contract else ()
    states = [held[part.name].state if part.name in held else Scoring.MISSING for part in parts]
    if not parts:
        return None, Scoring.MISSING
    for worst in (Scoring.ERROR, Scoring.ABSTAINED, Scoring.MISSING):
        if worst in states:
            return None, worst
    total = Fraction(0)
    for part in parts:
        score = held[part.name].score
        if score is None:
            return None, Scoring.MISSING
        total += part.weight * _fraction(score) / part.most
    return _rounded(TEN * total), Scoring.SCORED


def _layers(held: Iterable[EvaluationVerdict]) -> dict[str, float]:
    """Of each layer the mean of what was scored about it, each on its own scale, 0 to 1."""
    found: dict[str, float] = {}
    told = list(held)
    for layer in LAYERS:
        scores = [_fraction(one.normal) for one in told if one.layer == layer and one.normal is not None]
        if scores:
            found[layer.value] = _rounded(sum(scores, Fraction(0)) / len(scores))
    return found


def _feedback(told: Sequence[Outcome]) -> float | None:
    """The latest that can be read, 0 to 1; an agent's own word about its customer's mind is none."""
    for one in reversed(told):
        score = _number(one.data.get("score"))
        if one.kind is OutcomeKind.FEEDBACK and not one.from_agent and score is not None:
            low, high = scale_of(one.data.get("scale")) or (Fraction(0), ONE)
            if low <= score <= high:
                return _rounded((score - low) / (high - low))
    return None


def _number(value: Value) -> Fraction | None:
    """A finite number as the decimals that it is written in; true and false are one and zero."""
    if isinstance(value, int | float) and math.isfinite(value):
        return _fraction(value)
    return None


def _fraction(value: float) -> Fraction:
    return Fraction(repr(float(value)) if isinstance(value, float) else int(value))


def _rounded(value: Fraction) -> float:
    return float(round(value, DECIMALS))


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Value) -> int:
    """Of contradictions: a list of them, or how many there are."""
    if isinstance(value, list):
        return len(value)
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0
