"""Rules 25 and 27 to 30: each criterion's status, reason and time, and what they come to together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.oracle.expressions import Answer, Truth, evaluate
from tests.oracle.model import OCriterion, OOutcome

Variables = Mapping[str, Mapping[str, object]]
Judged = Callable[[Mapping[str, object]], Variables]
"""Evidence -> the variables of a check."""


@dataclass(frozen=True)
class OResult:
    """One criterion of one session."""

    criterion: OCriterion
    status: str
    reason: str
    passed_at: int | None = None
    failed_since: int | None = None
    raised: bool = False


def evidence_at(outcomes: Sequence[OOutcome], moment: int) -> dict[str, object]:
    """Rule 28: of each field the non-null value with the greatest (event time, event id) at or before a moment."""
    evidence: dict[str, object] = {}
    for outcome in sorted(outcomes, key=lambda o: (o.event_time, o.event_id, o.source)):
        if outcome.event_time <= moment:
            evidence.update({name: value for name, value in outcome.data.items() if value is not None})
    return evidence


def holds_since(
    holds: Callable[[Mapping[str, object]], bool], outcomes: Sequence[OOutcome], limit: int, end: int
) -> int:
    """Rule 29: the earliest moment since which it has held without a break, and at least the session's end."""
    since = end
    for moment in sorted({o.event_time for o in outcomes if o.event_time <= limit}, reverse=True):
        if not holds(evidence_at(outcomes, moment)):
            return since
        since = max(end, moment)
    return end if holds({}) else since


def false_reason(answer: Answer) -> str:
    """Rules 25 and 29: why a check that is not true is false."""
    if answer.truth is Truth.UNKNOWN:
        return "not_reported" if answer.not_reported else "unverified"
    return "false"


def judge_criterion(
    criterion: OCriterion,
    variables: Judged,
    evidence: Sequence[OOutcome],
    end: int,
    terminal: bool,
    watermark: int,
) -> OResult:
    """Rules 27 to 29: one criterion."""
    limit = end if criterion.deadline is None else end + criterion.deadline
    readable = [] if criterion.deadline is None else evidence
    given = variables(evidence_at(readable, limit))
    applies = (
        Answer(Truth.TRUE) if criterion.applies is None else evaluate(criterion.applies, {**given, "evidence": {}})
    )
    if applies.truth is Truth.FALSE:
        return OResult(criterion, "not_applicable", "not_applicable")
    check = evaluate(criterion.check, given)
    if check.holds:
        since = holds_since(lambda e: evaluate(criterion.check, variables(e)).holds, readable, limit, end)
        return OResult(criterion, "passed", "met", passed_at=since)
    refutation = criterion.fails_when
    refuted = evaluate(refutation, given) if refutation is not None else Answer(Truth.FALSE)
    raised = Truth.ERROR in (check.truth, refuted.truth)
    decided = watermark > limit if criterion.deadline is not None else terminal
    if refutation is not None and refuted.holds and (criterion.deadline is not None or terminal):
        since = holds_since(lambda e: evaluate(refutation, variables(e)).holds, readable, limit, end)
        return OResult(criterion, "failed", "fails_when", failed_since=since, raised=raised)
    if not decided:
        return OResult(criterion, "pending", "waiting", raised=raised)
    if check.truth is Truth.ERROR:
        return OResult(criterion, "error", "error", failed_since=limit, raised=True)
    return OResult(criterion, "failed", false_reason(check), failed_since=limit, raised=raised)


def completion_of(results: Sequence[OResult]) -> str:
    """Rule 30: incomplete, else pending, else complete, by the required ones that apply."""
    required = [r.status for r in results if r.criterion.required]
    if "failed" in required or "error" in required:
        return "incomplete"
    return "pending" if "pending" in required else "complete"


def verified_of(results: Sequence[OResult]) -> bool | None:
    """Rule 30: complete, and every applicable independent criterion passed; None where none applies."""
    independent = [r for r in results if r.criterion.trust == "independent" and r.status != "not_applicable"]
    if not independent:
        return None
    return completion_of(results) == "complete" and all(r.status == "passed" for r in independent)


def score_of(results: Sequence[OResult]) -> float | None:
    """Rule 27: passed weight / weight of the applicable ones, required or not."""
    applicable = [r for r in results if r.status != "not_applicable"]
    weight = sum(r.criterion.weight for r in applicable)
    return sum(r.criterion.weight for r in applicable if r.status == "passed") / weight if weight else None
