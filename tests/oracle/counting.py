"""Rules 45 to 47: who is in which rate's numerator and denominator, and the age of each delayed event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tests.oracle.model import OSession

Counts = tuple[int, int]
MICRO = 1_000_000


def completion(s: OSession) -> Counts:
    """Eligible; complete."""
    return (s.eligible and s.completion == "complete", s.eligible)


def claimed_completion(s: OSession) -> Counts:
    """Eligible; claimed completed, explicitly or by assumption."""
    return (s.eligible and s.claim.completed, s.eligible)


def claimed_explicit(s: OSession) -> Counts:
    """Eligible; claimed completed explicitly."""
    return (s.eligible and s.claim.completed and not s.claim.assumed, s.eligible)


def claimed_assumed(s: OSession) -> Counts:
    """Eligible; claimed completed by assumption."""
    return (s.eligible and s.claim.assumed, s.eligible)


def verified_completion(s: OSession) -> Counts:
    """Eligible with an applicable independent criterion; verified."""
    counts = s.eligible and s.verified is not None
    return (counts and s.verified is True, counts)


def resolution(s: OSession) -> Counts:
    """Eligible; complete and neither escalated, reopened nor denied."""
    return (s.eligible and s.resolved, s.eligible)


def confirmed_resolution(s: OSession) -> Counts:
    """Eligible and answered by the customer; confirmed."""
    counts = s.eligible and s.answered
    return (counts and s.confirmed, counts)


def reopen(s: OSession) -> Counts:
    """Eligible and claimed completed; reopened."""
    counts = s.eligible and s.claim.completed
    return (counts and s.reopened, counts)


def escalation(s: OSession) -> Counts:
    """Eligible; accepted hand-off."""
    return (s.eligible and s.escalated, s.eligible)


def containment(s: OSession) -> Counts:
    """Rule 46: eligible; no hand-off attempted, not abandoned."""
    return (s.eligible and not s.handoff_attempted and s.terminal_reason != "abandoned", s.eligible)


def tool_success(s: OSession) -> Counts:
    """Tool calls of sessions that are not invalid; ok."""
    if s.invalid:
        return (0, 0)
    return (len(s.tools_ok), len(s.tools_ok) + len(s.tools_failed))


def attribution(s: OSession) -> Counts:
    """Sessions that are not invalid; with a real conversation id."""
    return (not s.invalid and s.attributed, not s.invalid)


RATES: dict[str, Callable[[OSession], Counts]] = {
    "completion": completion,
    "claimed_completion": claimed_completion,
    "claimed_completion_explicit": claimed_explicit,
    "claimed_completion_assumed": claimed_assumed,
    "verified_completion": verified_completion,
    "resolution": resolution,
    "confirmed_resolution": confirmed_resolution,
    "reopen": reopen,
    "escalation": escalation,
    "containment": containment,
    "tool_success": tool_success,
    "attribution": attribution,
}


def rows_of(session: OSession) -> list[str]:
    """Rule 46: its family's row, where it has a family, and the system row."""
    return [""] if session.family is None else ["", session.family]


def observed_rates(sessions: Sequence[OSession]) -> dict[tuple[str, str], Counts]:
    """Rules 45 and 46: numerator and denominator of each rate for each row, zeros included."""
    rows = sorted({row for session in sessions for row in rows_of(session)} | {""})
    totals = {}
    for row in rows:
        members = [s for s in sessions if row in rows_of(s)]
        for name, counts in RATES.items():
            totals[row, name] = (sum(counts(s)[0] for s in members), sum(counts(s)[1] for s in members))
    return totals


def measures_of(s: OSession) -> dict[str, float | None]:
    """What a mean is taken of: every value that the session has."""
    trial = s.trial
    of_trial = (
        {}
        if trial is None
        else {
            "tool_name_precision": trial.name_precision,
            "tool_name_recall": trial.name_recall,
            "tool_argument_precision": trial.argument_precision,
            "tool_argument_recall": trial.argument_recall,
            "reliability": trial.reliability,
        }
    )
    return {
        "score": s.score,
        "goal_achievement": s.goal_achievement,
        "coherence": s.coherence,
        "feedback": s.feedback,
        **s.layers,
        "turns": s.turns,
        "tool_calls": len(s.tools_ok) + len(s.tools_failed),
        "retries": s.retries,
        **of_trial,
    }


def summed_means(sessions: Sequence[OSession]) -> dict[tuple[str, str], tuple[int, int]]:
    """(row, measure) -> (eligible sessions that have it, their sum in millionths)."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for session in (s for s in sessions if s.eligible):
        for name, value in measures_of(session).items():
            for row in rows_of(session) if value is not None else ():
                n, total = sums.get((row, name), (0, 0))
                sums[row, name] = (n + 1, total + round((value or 0) * MICRO))
    return sums


def failed_by(sessions: Sequence[OSession]) -> dict[tuple[str, str], int]:
    """(row, stage or criterion) -> eligible sessions that broke there first, or failed it."""
    found: Counter[tuple[str, str]] = Counter()
    for session in (s for s in sessions if s.eligible):
        names = [
            f"criterion/{name}" for name, (status, *_) in session.criteria.items() if status in ("failed", "error")
        ]
        if session.completion == "incomplete" and session.failure is not None:
            names.append(f"stage/{session.failure.stage}")
        found.update((row, name) for row in rows_of(session) for name in names)
    return dict(found)


def event_of(rate: str, s: OSession) -> int | None:
    """Rule 47: when the event of a delayed rate happened; None if it has not."""
    if rate == "completion":
        return s.completed_at
    if rate == "verified_completion":
        return s.verified_at
    if rate == "resolution":
        return s.resolution_failed_at
    if rate == "reopen":
        return s.reopened_at
    if rate == "escalation":
        return s.escalated_at
    abandoned = [s.end] if s.terminal_reason == "abandoned" else []
    attempted = [s.handoff_attempted_at] if s.handoff_attempted_at is not None else []
    return min([*abandoned, *attempted], default=None)


DELAYED = ("completion", "verified_completion", "resolution", "reopen", "escalation", "containment")
"""Of these the event is a failure in resolution and containment, the rate's own good or bad event elsewhere."""


def event_ages(sessions: Sequence[OSession]) -> dict[str, dict[tuple[str, str, int], int | None]]:
    """Rule 47: age at the event of each session in the denominator; at or before the end is age 0."""
    ages: dict[str, dict[tuple[str, str, int], int | None]] = {}
    for rate in DELAYED:
        ages[rate] = {}
        for session in sessions:
            if RATES[rate](session)[1]:
                moment = event_of(rate, session)
                ages[rate][session.key] = None if moment is None else max(0, moment - session.end)
    return ages
