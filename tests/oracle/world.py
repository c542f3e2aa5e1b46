"""The whole oracle in one call: complete sets in, every session, rate and count out. No clock, no increments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.oracle.chains import conversations_of
from tests.oracle.counting import event_ages, failed_by, observed_rates, summed_means
from tests.oracle.cutting import count_unknown_claims, sessions_of, windows_of
from tests.oracle.judging import earlier, judge_session
from tests.oracle.model import OContract, OOutcome, OSession, OSettings, OSpan, World
from tests.oracle.outcomes import OPlace, attach
from tests.oracle.reopening import follow_ups, reopen_across_conversations, reopen_within_conversation
from tests.oracle.spans import conflicting_ids, spans_that_count, traces_of


def judge_world(
    spans: Iterable[OSpan],
    outcomes: Iterable[OOutcome],
    contracts: Sequence[OContract],
    settings: OSettings,
    watermark: int,
) -> World:
    """RULES.md 1 to 47 over complete sets at one watermark."""
    dropped: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    traces = traces_of(spans_that_count(spans, settings, dropped), settings, dropped)
    counted["conflict"] += sum(len(conflicting_ids(t)) for t in traces)
    conversations = conversations_of(traces, settings, dropped)
    count_unknown_claims(conversations, counted)
    places = [
        OPlace(conversation, ordinal, episode)
        for conversation in conversations
        for ordinal, episode in enumerate(sessions_of(conversation, contracts, settings), start=1)
    ]
    attached, waiting = attach(outcomes, places, settings, watermark, counted)
    judged = [(p, judge_session(p, attached[p.key], settings, watermark)) for p in places]
    reopen_within_conversation(judged, settings)
    reopen_across_conversations(judged, settings)
    follow_ups(judged)
    sessions = [session for _, session in judged]
    for session in sessions:
        resolution_of(session)
    return World(
        sessions=sessions,
        dropped=+dropped,
        counted=+counted,
        waiting=waiting,
        rates=observed_rates(sessions),
        means=summed_means(sessions),
        failures=failed_by(sessions),
        events=event_ages(sessions),
    )


def resolution_of(session: OSession) -> None:
    """Rules 45 and 47: resolved, or since when not: the earliest failure that stands."""
    failed_at = session.resolution_failed_at
    for holds, moment in (
        (session.escalated, session.escalated_at),
        (session.reopened, session.reopened_at),
        (session.denied, session.answered_at),
    ):
        if holds:
            failed_at = earlier(failed_at, moment)
    session.resolution_failed_at = failed_at
    session.resolved = session.completion == "complete" and failed_at is None


def settles_at(bucket_end: int, contracts: Sequence[OContract], settings: OSettings) -> int:
    """Rule 48: the watermark past which a bucket is settled."""
    horizons = [windows_of(contract, settings).horizon for contract in (None, *contracts)]
    resume = [windows_of(contract, settings).resume for contract in (None, *contracts)]
    wait = [windows_of(contract, settings).wait for contract in (None, *contracts)]
    return bucket_end + max(settings.session_gap, *resume, *wait, *horizons) + settings.lateness
