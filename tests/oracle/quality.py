"""Rule 40: how well a session was done, as judges and people scored it. Only a score is ever a number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from tests.oracle.model import OContract, OOutcome, OSession
from tests.oracle.parts import OEvaluation

Scale = tuple[Fraction, Fraction]
LAYERS = ("memory", "knowledge", "tool", "prompt", "system")
UP_TO_ONE: Scale = (Fraction(0), Fraction(1))
UP_TO_TEN: Scale = (Fraction(0), Fraction(10))


def number_of(value: object) -> Fraction | None:
    """A finite number, exactly as its decimals say; true is one; a text is none."""
    if isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, int | float) and math.isfinite(value):
        return Fraction(str(value))
    return None


def rounded(value: Fraction) -> float:
    """Six decimals."""
    return float(round(value, 6))


def stated_scale(value: object) -> Scale | None:
    """`5` is from 0 to 5, `[1, 5]` from 1 to 5, anything else no scale."""
    low, high = value if isinstance(value, list | tuple) and len(value) == 2 else (0, value)
    ends = (number_of(low), number_of(high))
    if ends[0] is None or ends[1] is None or not ends[0] < ends[1]:
        return None
    return ends[0], ends[1]


def parts_of(contract: OContract | None) -> Mapping[str, tuple[float, float]]:
    """Part -> (max, weight) of the contract's goal."""
    return contract.goal_achievement if contract else {}


def scales_of(name: str, given: object, contract: OContract | None) -> tuple[Scale, list[Scale]]:
    """(the scale that an evaluation is read on, every scale that its score must keep to)."""
    stated, parts = stated_scale(given), parts_of(contract)
    own = (Fraction(0), Fraction(str(parts[name][0]))) if name in parts else None
    usual = UP_TO_TEN if name == "coherence" else own or UP_TO_ONE
    binding = [stated] if stated else [usual] if name == "coherence" else []
    return stated or usual, [*binding, *([own] if own else [])]


def state_of_evaluation(data: Mapping[str, object], score: Fraction | None, binding: Sequence[Scale]) -> str:
    """`scored`, `abstained` or `error`: as stated, if it says something, and within its scale."""
    stated = data.get("state")
    if stated is not None and stated != "scored":
        return "abstained" if stated == "abstained" else "error"
    label = data.get("label")
    if score is None:
        return "scored" if isinstance(label, str) and label else "error"
    return "scored" if all(low <= score <= high for low, high in binding) else "error"


def read_evaluation(outcome: OOutcome, contract: OContract | None) -> OEvaluation:
    """One evaluation as it was told."""
    data, name = outcome.data, str(outcome.data["name"])
    score = number_of(data.get("score"))
    (low, high), binding = scales_of(name, data.get("scale"), contract)
    state = state_of_evaluation(data, score, binding)
    counts = state == "scored" and score is not None
    told = data.get("contradictions")
    contradictions = len(told) if isinstance(told, list | tuple) else told
    return OEvaluation(
        name=name,
        state=state,
        score=score if counts else None,
        normal=rounded((score - low) / (high - low)) if counts and score is not None and low <= score <= high else None,
        label=str(data["label"]) if isinstance(data.get("label"), str) else "",
        layer=str(data["layer"]) if isinstance(data.get("layer"), str) else "",
        contradictions=max(0, contradictions) if type(contradictions) is int else 0,
        at=outcome.event_time,
    )


def evaluations_that_hold(told: Iterable[OOutcome], contract: OContract | None) -> dict[str, OEvaluation]:
    """Of each name the latest that was scored, by a number or a label, else the latest."""
    best: dict[str, tuple[bool, int, str, str]] = {}
    held: dict[str, OEvaluation] = {}
    for outcome in told:
        if outcome.kind == "evaluation" and isinstance(outcome.data.get("name"), str):
            one = read_evaluation(outcome, contract)
            rank = (one.state == "scored", outcome.event_time, outcome.event_id, outcome.source)
            if one.name not in held or rank > best[one.name]:
                best[one.name], held[one.name] = rank, one
    return held


def goal_of(held: Mapping[str, OEvaluation], contract: OContract | None) -> tuple[float | None, str]:
    """DESIGN.md 5: 10 x the sum of weight x (raw / max); known only if every part holds a number."""
    total, states = Fraction(0), set()
    for name, (most, weight) in parts_of(contract).items():
        one = held.get(name)
        if one is not None and one.score is not None:
            total += Fraction(str(weight)) * one.score / Fraction(str(most))
        else:
            states.add("missing" if one is None or one.state == "scored" else one.state)
    if not parts_of(contract):
        return None, "missing"
    if states:
        return None, next(state for state in ("error", "abstained", "missing") if state in states)
    return rounded(10 * total), "scored"


def feedback_of(told: Sequence[OOutcome], agents: frozenset[tuple[str, str]]) -> float | None:
    """The latest that can be read; `agents`: (source, event id) of what an agent said itself."""
    for outcome in sorted(told, key=lambda o: (o.event_time, o.event_id, o.source), reverse=True):
        score = number_of(outcome.data.get("score"))
        if outcome.kind != "feedback" or (outcome.source, outcome.event_id) in agents or score is None:
            continue
        low, high = stated_scale(outcome.data.get("scale")) or UP_TO_ONE
        if low <= score <= high:
            return rounded((score - low) / (high - low))
    return None


def read_quality(
    session: OSession, contract: OContract | None, told: Sequence[OOutcome], agents: frozenset[tuple[str, str]]
) -> None:
    """Everything that evaluations and feedback say of one session.

    Args:
        told: what reached it up to its end + retention and is not barred from saying it.
    """
    held = evaluations_that_hold(told, contract)
    session.evaluations = held
    session.goal_achievement, session.goal_state = goal_of(held, contract)
    coherence = held.get("coherence")
    if coherence is not None:
        session.coherence_state, session.contradictions = coherence.state, coherence.contradictions
        if coherence.normal is not None:
            session.coherence = rounded(10 * Fraction(str(coherence.normal)))
    for layer in LAYERS:
        scores = [Fraction(str(e.normal)) for e in held.values() if e.layer == layer and e.normal is not None]
        if scores:
            session.layers[layer] = rounded(sum(scores, Fraction(0)) / len(scores))
    session.feedback = feedback_of(told, agents)
