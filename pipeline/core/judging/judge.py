"""The verdict of a session: a pure function of its spans, outcomes, contract and the watermark (RULES.md 15-47)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.contracts.expressions import Truth
from pipeline.core.judging.attach import Proof, Via, attach
from pipeline.core.judging.boundaries import FamilySource, Session
from pipeline.core.judging.causes import cause_of
from pipeline.core.judging.criteria import completion_of, judge_criterion, verified_of
from pipeline.core.judging.quality import quality_of
from pipeline.core.judging.reopen import Claimed, Elsewhere, contacts_of, printed, reopened_by
from pipeline.core.judging.summarise import summary_of
from pipeline.core.judging.summary import Summary
from pipeline.core.timeline import TimeRules
from schemas.contact import Contact
from schemas.outcome import HANDOFFS, Outcome, OutcomeKind
from schemas.span import DOLLAR
from schemas.verdict import Completion, Status, Verdict

UNATTRIBUTED = "trace:"


@dataclass(slots=True)
class Case:
    """A session with everything its verdict needs, computed once."""

    session: Session
    proof: Proof
    summary: Summary
    values: dict[str, Any]
    end: int
    terminal: bool
    refused: bool
    invalid: bool
    claimed: str
    claimed_by_spans: str
    raised: int


@dataclass(frozen=True, slots=True)
class Judged:
    """All verdicts of a conversation, and what else there is to tell of them.

    Args:
        reached: (source, event id) of the outcomes that a session has -> whether one has it in time.
        contacts: by subject the sessions that others may have something in common with.
        attached: of each session its outcomes.
    """

    verdicts: list[Verdict]
    reached: dict[tuple[str, str], bool]
    contacts: dict[str, tuple[Contact, ...]]
    raised: int
    next_due: int
    attached: list[list[Outcome]]


def judge_conversation(
    tenant: str,
    conversation: str,
    sessions: Sequence[Session],
    outcomes: Mapping[tuple[str, str], tuple[Outcome, Sequence[Via]]],
    rules: TimeRules,
    watermark: int,
    returns: Elsewhere,
) -> Judged:
    """Judge every session of a conversation at `watermark` (ns).

    Args:
        returns: what is known of other conversations of the subjects.

    Returns:
        the verdicts in order of ordinal, without version and revision; what outcomes and other conversations ask for;
        how many expressions raised; the next event time at which time alone may change a verdict (0: never).
    """
    proofs, reached = attach(outcomes, sessions, rules)
    cases = [_case(session, proof, rules, watermark) for session, proof in zip(sessions, proofs, strict=True)]
    claims = [Claimed(case.claimed, case.claimed_by_spans, case.summary) for case in cases]
    reopened, answers = reopened_by(sessions, claims, rules)
    verdicts = [
        _verdict(
            tenant, conversation, index, case, reopened.get(index), answers.get(index), claims[index], returns,
            rules, watermark,
        )
        for index, case in enumerate(cases)
    ]  # fmt: skip
    due = [moment for case, one in zip(cases, verdicts, strict=True) for moment in _moments(case, one, rules)]
    raised = sum(case.raised for case in cases) + sum(one.raises for verdict in verdicts for one in verdict.criteria)
    later = [moment for moment in due if moment >= watermark]
    attached = [proof.shown for proof in proofs]
    contacts = {} if conversation.startswith(UNATTRIBUTED) else contacts_of(sessions, claims, rules)
    return Judged(verdicts, reached, contacts, raised, min(later) + 1 if later else 0, attached)


def _case(session: Session, proof: Proof, rules: TimeRules, watermark: int) -> Case:
    contract = session.family.contract
    summary = summary_of(session)
    end = summary.end
    grace = contract.closing_grace if contract else rules.closing_grace
    closes = session.claim.time + grace if session.claim is not None else end + rules.session_gap
    values = dict(summary.values)
    raised = session.family.raised
    refused = False
    invalid = bool(proof.of(OutcomeKind.INVALIDATE, end + rules.retention))
    if contract is not None:
        if contract.claimed_when is not None:
            raised += contract.claimed_when.holds(values) is Truth.RAISED
        if contract.refused_when is not None:
            answer = contract.refused_when.holds(values)
            refused, raised = refused or answer is Truth.TRUE, raised + (answer is Truth.RAISED)
        if contract.invalid_when is not None:
            for resource in summary.resources:
                answer = contract.invalid_when.holds({**values, "resource": resource})
                invalid, raised = invalid or answer is Truth.TRUE, raised + (answer is Truth.RAISED)
    case = Case(
        session=session,
        proof=proof,
        summary=summary,
        values=values,
        end=end,
        terminal=watermark > closes,
        refused=refused or bool(proof.of(OutcomeKind.REFUSAL, end + rules.retention)),
        invalid=invalid,
        claimed="",
        claimed_by_spans=_claimed(session, summary, refused, rules, watermark),
        raised=raised,
    )
    case.claimed = _claimed(session, summary, case.refused, rules, watermark)
    about = {"turns": session.turns, "handoffs": len(summary.handoffs), "claimed": bool(case.claimed)}
    case.values["session"] = summary.values["session"] | about
    return case


def _claimed(session: Session, summary: Summary, refused: bool, rules: TimeRules, watermark: int) -> str:
    """`explicit`, `assumed` (rule 16) or nothing."""
    contract = session.family.contract
    if session.claim is not None:
        return "explicit" if session.claim.value == "completed" else ""
    if contract is not None and not contract.assume_claim:
        return ""
    quiet = max(rules.session_gap, contract.resume_window if contract else rules.resume_window)
    last = summary.last_run
    handed_over = "accepted" in summary.handoffs
    if watermark > summary.end + quiet and last.is_answer and not last.error_at_end and not handed_over:
        return "" if refused else "assumed"
    return ""


def _verdict(
    tenant: str,
    conversation: str,
    index: int,
    case: Case,
    reopened_at: int | None,
    answered: int | None,
    claimed: Claimed,
    returns: Elsewhere,
    rules: TimeRules,
    watermark: int,
) -> Verdict:
    session, proof, contract, end = case.session, case.proof, case.session.family.contract, case.end
    summary = case.summary
    horizon = end + (contract.horizon if contract else rules.reopen_window)
    window = end + (contract.reopen_window if contract else rules.reopen_window)
    criteria = tuple(
        judge_criterion(one, case.values, proof, end, case.terminal, watermark)
        for one in (contract.criteria if contract else ())
    )
    completion, completed_at = completion_of(criteria, end) if contract else (Completion.NONE, 0)
    verified, verified_at = verified_of(criteria, completion, completed_at)

    escalations = [one for one in proof.of(OutcomeKind.ESCALATION, horizon) if one.data.get("state") in HANDOFFS]
    accepted = [max(end, one.event_time) for one in escalations if one.data["state"] == "accepted"]
    accepted += [end for state in summary.handoffs if state == "accepted"]
    reopenings = [one.event_time for one in proof.of(OutcomeKind.REOPEN, window)]
    reopenings += [reopened_at] if reopened_at is not None else []
    came_back, taken_back = returns.reopening(claimed), returns.taken_back(claimed)
    reopenings += [came_back.at] if came_back is not None else []
    answers = [one for one in proof.of(OutcomeKind.RESOLUTION, horizon) if isinstance(one.data.get("confirmed"), bool)]
    confirmed = bool(answers[-1].data["confirmed"]) if answers else None
    claim = session.claim.value if session.claim is not None else ""
    attempted = [max(end, one.event_time) for one in escalations]
    attempted += [end] if summary.handoffs else []
    if session.claim is not None and claim == "escalated":
        attempted.append(max(end, session.claim.time))

    eligible = (
        case.terminal
        and contract is not None
        and session.family.source is not FamilySource.INHERITED
        and not case.refused
        and not case.invalid
    )
    failures = [one.failed_at for one in criteria if one.required and one.status in (Status.FAILED, Status.ERROR)]
    failures += accepted + reopenings + ([answers[-1].event_time] if confirmed is False else [])
    not_resolved = completion is not Completion.COMPLETE or failures
    applicable = [one for one in criteria if one.status is not Status.NOT_APPLICABLE]
    weight = sum(one.weight for one in applicable)
    passed = sum(one.weight for one in applicable if one.status is Status.PASSED)
    known = proof.evidence_until(horizon)
    return Verdict(
        tenant=tenant,
        conversation=conversation,
        ordinal=index + 1,
        as_of=watermark,
        trace_ids=tuple(sorted(one.hex() for one in summary.trace_ids)),
        start=summary.start,
        end=end,
        attributed=not conversation.startswith(UNATTRIBUTED),
        family=session.family.name,
        family_source=session.family.source.value,
        contract=contract.name if contract else "",
        claim=claim,
        claimed=case.claimed,
        claimed_at=session.claim.time if session.claim is not None else end if case.claimed else 0,
        terminal=case.terminal,
        terminal_reason=_terminal_reason(case, bool(accepted)),
        completion=completion,
        completed_at=completed_at,
        verified=verified,
        verified_at=verified_at,
        criteria=criteria,
        score=passed / weight if weight else None,
        escalated=bool(accepted),
        escalated_at=min(accepted, default=0),
        handoff_attempted=bool(attempted),
        handoff_at=min(attempted, default=0),
        reopened=bool(reopenings),
        reopened_at=min(reopenings, default=0),
        reopens=answered + 1 if answered is not None else 0,
        reopened_by=printed(came_back),
        reopens_elsewhere=taken_back,
        follow_up=index > 0 and answered is None and not taken_back,
        confirmed=confirmed,
        confirmed_at=answers[-1].event_time if answers else 0,
        refused=case.refused,
        refused_claimed=claim == "refused",
        invalid=case.invalid,
        eligible=eligible,
        resolved=eligible and not not_resolved,
        resolution_failed_at=max(end, min(failures)) if failures else 0,
        runs=summary.runs,
        turns=session.turns,
        tool_calls=summary.calls,
        tool_calls_ok=summary.calls_ok,
        errors=case.values["session"]["errors"],
        retries=case.values["session"]["retries"],
        tokens=summary.tokens,
        cost_usd=None if summary.cost is None else summary.cost / DOLLAR,
        agents=tuple(case.values["session"]["agents"]),
        tools=tuple(case.values["session"]["tools"]),
        models=tuple(case.values["session"]["models"]),
        subjects=summary.subjects,
        issues=summary.issues,
        flags=summary.flags,
        evidence={name: (one.value, one.time) for name, one in sorted(known.items())},
        quality=quality_of(proof.shown, contract, end + rules.retention),
        failure=cause_of(contract, criteria, summary.breaks, session.claim) if case.terminal and contract else None,
        trial=summary.trial,
    )


def _terminal_reason(case: Case, escalated: bool) -> str:
    """Rule 21, the first that holds; empty while the session is open."""
    if not case.terminal:
        return ""
    session, last = case.session, case.summary.last_run
    reasons = (
        ("invalid", case.invalid),
        ("refused", case.refused),
        ("escalated", escalated),
        ("claimed_failed", session.claim is not None and session.claim.value == "failed"),
        ("completed", bool(case.claimed)),
        ("failed", last.error_at_end),
        ("timed_out", last.waits_for_person),
        ("abandoned", last.waits and not last.waits_for_person),
    )
    return next((name for name, holds in reasons if holds), "ended")


def _moments(case: Case, verdict: Verdict, rules: TimeRules) -> list[int]:
    """Event times after which the passing of time alone may change the verdict."""
    session, contract = case.session, case.session.family.contract
    grace = contract.closing_grace if contract else rules.closing_grace
    moments = [session.claim.time + grace if session.claim is not None else case.end + rules.session_gap]
    if session.claim is None:
        moments.append(case.end + max(rules.session_gap, contract.resume_window if contract else rules.resume_window))
    moments += [one.deadline for one in verdict.criteria if one.deadline and one.status is Status.PENDING]
    return moments
