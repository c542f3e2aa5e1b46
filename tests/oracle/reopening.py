"""Rules 41, 42 and 44: what a later session says about earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.judging import earlier
from tests.oracle.model import OSession, OSettings
from tests.oracle.outcomes import OPlace
from tests.oracle.parts import OClaim

Judged = Sequence[tuple[OPlace, OSession]]


def same_family(one: OSession, other: OSession) -> bool:
    """Rules 41 and 44: the same known family, inherited or not; two unknown ones are not the same."""
    return one.family is not None and one.family == other.family


def issues_allow(one: OSession, other: OSession) -> bool:
    """Rule 41: where both state an issue they have one in common."""
    return not one.issues or not other.issues or bool(one.issues & other.issues)


def claim_and_time_allow(before: OPlace, claim: OClaim, start: int) -> bool:
    """Rule 41: it claimed completion and ended before the start, within its windows."""
    end, windows = before.episode.end, before.episode.windows
    if not claim.completed or not end < start <= end + windows.reopen:
        return False
    return not claim.assumed or start > end + windows.quiet


def mark_reopened(before: OSession, later: OSession) -> None:
    """The earlier session is reopened at the later one's start, if nothing did so earlier."""
    before.reopened = True
    before.reopened_at = earlier(before.reopened_at, later.start)
    later.reopens = (*later.reopens, (before.conversation, before.ordinal))


def reopen_within_conversation(judged: Judged, settings: OSettings) -> None:
    """Rule 41: a later session reopens the latest earlier one of its conversation that qualifies."""
    of_conversation: dict[tuple[str, str], list[tuple[OPlace, OSession]]] = {}
    for place, session in judged:
        of_conversation.setdefault(session.key[:2], []).append((place, session))
    for place, later in judged:
        qualifying = [
            before
            for before_place, before in of_conversation[later.key[:2]]
            if before.ordinal < later.ordinal
            and same_family(before, later)
            and issues_allow(before, later)
            and claim_and_time_allow(before_place, before.claim, place.episode.start)
        ]
        if qualifying:
            mark_reopened(max(qualifying, key=lambda s: s.ordinal), later)


def reopen_across_conversations(judged: Judged, settings: OSettings) -> None:
    """Rule 42: the same for another attributed conversation of the subject; every one that qualifies."""
    with_subject = [(place, session) for place, session in judged if session.subjects]
    for _, later in with_subject:
        for before_place, before in with_subject:
            if (
                before.tenant == later.tenant
                and before.conversation != later.conversation
                and before.attributed
                and later.attributed
                and before.subjects & later.subjects
                and same_family(before, later)
                and issues_allow(before, later)
                and (before.issues & later.issues or before.keys & later.keys)
                and later.start > before.end + before_place.episode.windows.resume
                and claim_and_time_allow(before_place, before.claim_by_spans, later.start)
            ):
                mark_reopened(before, later)


def follow_ups(judged: Judged) -> None:
    """Rule 44: a later session of a conversation that reopens nothing."""
    for _, session in judged:
        session.follow_up = session.ordinal > 1 and not session.reopens
