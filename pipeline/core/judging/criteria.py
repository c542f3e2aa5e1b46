"""One criterion of one session: passed, failed, pending, error or not applicable, and since when (RULES.md 25-29)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.core.contracts.book import CompiledCriterion
from pipeline.core.contracts.expressions import Expression, Truth
from pipeline.core.judging.attach import EvidenceValue, Proof
from schemas.verdict import Completion, CriterionVerdict, Reason, Status


def judge_criterion(
    criterion: CompiledCriterion,
    values: Mapping[str, Any],
    proof: Proof,
    end: int,
    terminal: bool,
    watermark: int,
) -> CriterionVerdict:
    """Judge one criterion.

    Args:
        values: `state`, `tools`, `resource`, `session` of the session.
        end: the session's end, ns; the deadline counts from it.
        terminal: rule 21; a check without a deadline is decided then.
        watermark: ns.
    """

    def verdict(
        status: Status, reason: Reason, passed_at: int = 0, failed_at: int = 0, raises: bool = False
    ) -> CriterionVerdict:
        deadline = end + criterion.deadline if criterion.deadline is not None else 0
        return CriterionVerdict(
            id=criterion.id,
            status=status,
            reason=reason,
            required=criterion.required,
            independent=criterion.independent,
            weight=criterion.weight,
            passed_at=passed_at,
            failed_at=failed_at,
            deadline=deadline,
            stage=criterion.stage,
            agent=criterion.agent,
            raises=raises,
        )

    limit = end + (criterion.deadline or 0)
    known = proof.evidence_until(limit)
    now = {**values, "evidence": {name: one.value for name, one in known.items()}}
    if criterion.applies is not None and criterion.applies.holds(now) is Truth.FALSE:
        return verdict(Status.NOT_APPLICABLE, Reason.NOT_APPLICABLE)
    answer = criterion.check.holds(now)
    if answer is Truth.TRUE:
        since = _held_since(criterion.check, values, proof, limit, end)
        return verdict(Status.PASSED, Reason.MET, passed_at=since)
    may_fail = terminal or criterion.deadline is not None  # without a deadline nothing false is decided while open
    refuted = criterion.fails_when.holds(now) if criterion.fails_when is not None else Truth.FALSE
    raises = Truth.RAISED in (answer, refuted)
    if may_fail and criterion.fails_when is not None and refuted is Truth.TRUE:
        since = _held_since(criterion.fails_when, values, proof, limit, end)
        return verdict(Status.FAILED, Reason.FAILS_WHEN, failed_at=since, raises=raises)
    decided = watermark > limit if criterion.deadline is not None else terminal
    if not decided:
        return verdict(Status.PENDING, Reason.WAITING, raises=raises)
    if answer is Truth.RAISED:
        return verdict(Status.ERROR, Reason.ERROR, failed_at=limit, raises=True)
    return verdict(Status.FAILED, _why_false(criterion, answer, now), failed_at=limit, raises=raises)


def completion_of(criteria: Sequence[CriterionVerdict], end: int) -> tuple[Completion, int]:
    """Rule 30, and since when it is complete: the latest pass time of the required criteria (rule 47)."""
    required = [one for one in criteria if one.required and one.status is not Status.NOT_APPLICABLE]
    if any(one.status in (Status.FAILED, Status.ERROR) for one in required):
        return Completion.INCOMPLETE, 0
    if any(one.status is Status.PENDING for one in required):
        return Completion.PENDING, 0
    return Completion.COMPLETE, max([end, *(one.passed_at for one in required)])


def verified_of(
    criteria: Sequence[CriterionVerdict], completion: Completion, completed_at: int
) -> tuple[bool | None, int]:
    """Rule 30: complete, and every applicable independent criterion passed; None where none applies."""
    independent = [one for one in criteria if one.independent and one.status is not Status.NOT_APPLICABLE]
    if not independent:
        return None, 0
    if completion is Completion.COMPLETE and all(one.status is Status.PASSED for one in independent):
        return True, max([completed_at, *(one.passed_at for one in independent)])
    return False, 0


def _why_false(criterion: CompiledCriterion, answer: Truth, now: Mapping[str, Any]) -> Reason:
    if answer is Truth.FALSE:
        return Reason.FALSE
    missing = any(now["state"].get(name) is None for name in criterion.check.reads("state"))
    return Reason.NOT_REPORTED if missing else Reason.UNVERIFIED


def _held_since(expression: Expression, values: Mapping[str, Any], proof: Proof, limit: int, end: int) -> int:
    """The earliest moment since which it has held without a break along its evidence, at least the session's end."""
    if "evidence" not in expression.variables:
        return end
    named = expression.reads("evidence")
    steps: list[tuple[str, EvidenceValue]] = [
        (name, one)
        for name, found in proof.evidence.items()
        if not named or name in named
        for one in found
        if one.time <= limit
    ]
    steps.sort(key=lambda step: (step[1].time, step[1].event_id))
    evidence: dict[str, Any] = {}
    since = end if expression.holds({**values, "evidence": evidence}) is Truth.TRUE else None
    for index, (name, one) in enumerate(steps):
        evidence[name] = one.value
        if index + 1 < len(steps) and steps[index + 1][1].time == one.time:
            continue  # one moment
        holds = expression.holds({**values, "evidence": evidence}) is Truth.TRUE
        since = (one.time if since is None else since) if holds else None
    return max(end, since if since is not None else end)
