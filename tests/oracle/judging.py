"""Rules 16, 20, 21, 38 to 40 and 43: everything about one session that needs no other session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.oracle.calls import error_at_end, handoffs_to_person, is_answer, run_waits_for, tool_calls, usage_of
from tests.oracle.criteria import (
    OResult,
    completion_of,
    judge_criterion,
    score_of,
    verified_of,
)
from tests.oracle.cutting import OEpisode
from tests.oracle.expressions import Truth, is_invalid_by_spans, is_refused_by_spans, judging_variables
from tests.oracle.failing import failure_of
from tests.oracle.model import OOutcome, OSession, OSettings
from tests.oracle.outcomes import OPlace, is_agents_own, keys_of_trace, may_say
from tests.oracle.parts import OClaim
from tests.oracle.quality import read_quality
from tests.oracle.spans import conflicting_ids, plain_id
from tests.oracle.trials import trial_of


def judge_session(place: OPlace, attached: Sequence[OOutcome], settings: OSettings, watermark: int) -> OSession:
    """One session: spans, then outcomes, then claim, criteria and terminal reason."""
    episode = place.episode
    session = facts_of(place, settings)
    said = [o for o in attached if may_say(o, settings)]
    session.outcomes = tuple(sorted((o.source, o.event_id) for o in attached))
    read_outcomes(session, episode, said, settings)
    read_evaluations(session, episode, attached, settings)
    read_handoffs(session, episode)
    session.claim_by_spans = claim_of(episode, settings, watermark, refused_by_outcome=False)
    session.claim = claim_of(episode, settings, watermark, has_refusal(episode, said, settings))
    claimed_handoff(session)
    session.terminal = is_terminal(episode, settings, watermark)
    session.terminal_reason = terminal_reason_of(session, episode) if session.terminal else None
    calls = tool_calls(episode.runs, episode.contract)
    session.trial = trial_of(episode.spans, episode.contract, calls)
    session.retries = sum(call.retries for call in calls)
    if episode.contract is not None:
        results = judge_criteria(session, episode, said, watermark)
        read_criteria(session, results)
        if session.terminal:
            session.failure = failure_of(episode, calls, results, session.claim)
    session.eligible = is_eligible(session)
    return session


def facts_of(place: OPlace, settings: OSettings) -> OSession:
    """What the spans say, before any judgement."""
    episode, spans = place.episode, place.episode.spans
    calls = tool_calls(episode.runs, episode.contract)
    flags = {flag for span in spans for flag in span.flags}
    flags |= {"truncated" for t in place.traces if t.truncated}
    flags |= {"conflicting_ids" for t in place.traces if conflicting_ids(t)}
    for t in place.traces:
        known = {s.span_id for s in t.spans}
        flags |= {"missing_parents" for s in t.spans if s.parent_id is not None and s.parent_id not in known}
    named = (v for s in spans for v in ([s.subject] if isinstance(s.subject, str) else s.subject or ()))
    subjects = frozenset(text for text in map(plain_id, named) if text is not None)
    flags |= {"several_subjects"} if len(subjects) > 1 else set()
    return OSession(
        tenant=place.conversation.tenant,
        conversation=place.conversation.name,
        ordinal=place.ordinal,
        start=episode.start,
        end=episode.end,
        attributed=place.conversation.attributed,
        family=episode.family.name,
        family_state=episode.family.state,
        contract_version=episode.contract.version if episode.contract else None,
        trace_ids=tuple(sorted(t.trace_id for t in place.traces)),
        runs=len(episode.runs),
        turns=episode.turns,
        flags=frozenset(flags),
        tools_ok=tuple(sorted(c.name for c in calls if c.deciding is not None and not c.deciding.failed)),
        tools_failed=tuple(sorted(c.name for c in calls if c.deciding is not None and c.deciding.failed)),
        usage=usage_of(episode.runs),
        subjects=subjects,
        issues=frozenset(text for s in spans for text in map(plain_id, s.issues) if text is not None),
        keys=frozenset(key for t in place.traces for key in keys_of_trace(t)),
        bucket=episode.end // settings.bucket * settings.bucket,
    )


def within(outcomes: Sequence[OOutcome], kind: str, limit: int) -> list[OOutcome]:
    """Rule 38: the outcomes of a kind up to a limit, in order of (event time, event id)."""
    chosen = [o for o in outcomes if o.kind == kind and o.event_time <= limit]
    return sorted(chosen, key=lambda o: (o.event_time, o.event_id, o.source))


def has_refusal(episode: OEpisode, said: Sequence[OOutcome], settings: OSettings) -> bool:
    """Rule 38: a refusal outcome up to end + retention."""
    return bool(within(said, "refusal", episode.end + settings.retention))


def read_outcomes(session: OSession, episode: OEpisode, said: Sequence[OOutcome], settings: OSettings) -> None:
    """Rules 20, 38, 39 and 43: escalation, reopen, answer, refusal and invalidation by outcome."""
    horizon = episode.end + episode.windows.horizon
    kept = episode.end + settings.retention
    escalations = [
        o for o in within(said, "escalation", horizon) if o.data.get("state") in ("attempted", "accepted", "failed")
    ]
    session.handoff_attempted_at = min((o.event_time for o in escalations), default=None)
    session.escalated_at = min((o.event_time for o in escalations if o.data.get("state") == "accepted"), default=None)
    reopens = within(said, "reopen", episode.end + episode.windows.reopen)
    session.reopened_at = min((o.event_time for o in reopens), default=None)
    answers = [o for o in within(said, "resolution", horizon) if isinstance(o.data.get("confirmed"), bool)]
    if answers:
        session.answered = True
        session.confirmed = answers[-1].data["confirmed"] is True
        session.denied = not session.confirmed
        session.answered_at = answers[-1].event_time
    refused = is_refused_by_spans(episode.runs, episode.contract)
    invalid = is_invalid_by_spans(episode.runs, episode.contract)
    session.criterion_errors += (refused.truth is Truth.ERROR) + (invalid.truth is Truth.ERROR)
    session.refused = refused.holds or has_refusal(episode, said, settings)
    session.invalid = invalid.holds or bool(within(said, "invalidate", kept))


def read_evaluations(session: OSession, episode: OEpisode, attached: Sequence[OOutcome], settings: OSettings) -> None:
    """Rule 40: evaluations and feedback up to end + retention; the agent's own evaluations count here alone."""
    kept = episode.end + settings.retention
    told = [o for o in attached if (is_agents_own(o, settings) or may_say(o, settings)) and o.event_time <= kept]
    agents = frozenset((o.source, o.event_id) for o in told if is_agents_own(o, settings))
    read_quality(session, episode.contract, told, agents)


def earlier(first: int | None, second: int | None) -> int | None:
    """The earlier of two moments, either of which may not exist."""
    return min((moment for moment in (first, second) if moment is not None), default=None)


def read_handoffs(session: OSession, episode: OEpisode) -> None:
    """Rule 20: hand-offs to a person in the spans."""
    for attempt, how in handoffs_to_person(episode.runs, episode.contract):
        session.handoff_attempted_at = earlier(session.handoff_attempted_at, attempt.span.end)
        if how == "accepted":
            session.escalated_at = earlier(session.escalated_at, attempt.span.end)
    session.escalated = session.escalated_at is not None
    session.handoff_attempted = session.handoff_attempted_at is not None
    session.reopened = session.reopened_at is not None


def claimed_handoff(session: OSession) -> None:
    """Rules 15 and 20: a claim of `escalated` is an attempt, one of `refused` a flag."""
    session.refused_claimed = session.claim.value == "refused"
    if session.claim.value == "escalated":
        session.handoff_attempted = True
        session.handoff_attempted_at = earlier(session.handoff_attempted_at, session.claim.time)


def claim_of(episode: OEpisode, settings: OSettings, watermark: int, refused_by_outcome: bool) -> OClaim:
    """Rules 15 and 16: the explicit claim, else the assumed one."""
    explicit = episode.explicit_claim
    if explicit.value is not None:
        return explicit
    allowed = episode.contract.assume_claim if episode.contract else True
    accepted = any(how == "accepted" for _, how in handoffs_to_person(episode.runs, episode.contract))
    refused = refused_by_outcome or is_refused_by_spans(episode.runs, episode.contract).holds
    quiet = watermark > episode.end + episode.windows.quiet
    if allowed and quiet and is_answer(episode.last_run) and not accepted and not refused:
        return OClaim(assumed=True, time=episode.end)
    return OClaim()


def is_terminal(episode: OEpisode, settings: OSettings, watermark: int) -> bool:
    """Rule 21: past the explicit claim + grace, else past end + session gap."""
    claim = episode.explicit_claim
    if claim.time is not None:
        return watermark > claim.time + episode.windows.grace
    return watermark > episode.end + settings.session_gap


def terminal_reason_of(session: OSession, episode: OEpisode) -> str:
    """Rule 21: the first that holds."""
    waits_for = run_waits_for(episode.last_run, episode.contract)
    reasons = {
        "invalid": session.invalid,
        "refused": session.refused,
        "escalated": session.escalated,
        "claimed_failed": session.claim.value == "failed",
        "completed": session.claim.completed,
        "failed": error_at_end(episode.last_run),
        "timed_out": waits_for == "person",
        "abandoned": waits_for == "customer",
    }
    return next((reason for reason, holds in reasons.items() if holds), "ended")


def judge_criteria(session: OSession, episode: OEpisode, said: Sequence[OOutcome], watermark: int) -> list[OResult]:
    """Rules 27 to 29 for every criterion of the contract in force."""
    contract = episode.contract
    evidence = [o for o in said if o.kind == "evidence"]

    def variables(given: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
        return judging_variables(episode.runs, contract, episode.turns, session.claim.completed, given)

    return [
        judge_criterion(c, variables, evidence, episode.end, session.terminal, watermark)
        for c in (contract.criteria if contract else ())
    ]


def read_criteria(session: OSession, results: Sequence[OResult]) -> None:
    """Rules 30 and 47: completion, verified, and since when; a failure's moment goes to resolution."""
    session.criteria = {r.criterion.id: (r.status, r.reason, r.passed_at) for r in results}
    session.failed_at = {r.criterion.id: r.failed_since for r in results if r.failed_since is not None}
    session.raising = frozenset(r.criterion.id for r in results if r.raised)
    session.criterion_errors += sum(r.raised for r in results)
    session.score = score_of(results)
    session.completion = completion_of(results)
    session.verified = verified_of(results)
    passed = [r for r in results if r.passed_at is not None]
    required = [r.passed_at for r in passed if r.passed_at is not None and r.criterion.required]
    proven = [
        r.passed_at
        for r in passed
        if r.passed_at is not None and (r.criterion.required or r.criterion.trust == "independent")
    ]
    if session.completion == "complete":
        session.completed_at = max([session.end, *required])
    if session.verified:
        session.verified_at = max([session.end, *proven])
    failures = [r.failed_since for r in results if r.criterion.required and r.failed_since is not None]
    if session.completion == "incomplete":
        session.resolution_failed_at = min(failures)


def is_eligible(session: OSession) -> bool:
    """Rule 45: terminal, judged by exactly one contract, family not inherited, not refused, not invalid."""
    return (
        session.terminal
        and session.contract_version is not None
        and session.family_state in ("stated", "derived")
        and not session.refused
        and not session.invalid
    )
