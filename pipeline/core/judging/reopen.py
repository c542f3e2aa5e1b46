"""Which earlier session a later one reopens (RULES.md 41, 42, 44); a return that reopens nothing is a follow-up.

Within a conversation it is decided here. Of other conversations of the same subject stage 3 tells; what it has to know
of a session for that is its `Contact`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.core.erasing import ERASED, REASON
from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.summary import Summary
from pipeline.core.timeline import TimeRules
from schemas.contact import Contact, Link


@dataclass(frozen=True, slots=True)
class Claimed:
    """What reopening asks of a session.

    Args:
        how: its claim of completion: '', 'explicit' or 'assumed'; `by_spans`: the same, whatever outcomes say.
        summary: what its spans state, subjects, issues and keys among it, which are sets.
    """

    how: str
    by_spans: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other conversations of the subjects say of our sessions, by the first trace of each."""

    reopened: Mapping[bytes, Link] = field(default_factory=dict)
    reopens: Mapping[bytes, tuple[Link, ...]] = field(default_factory=dict)

    def reopening(self, claimed: Claimed) -> Link | None:
        """The earliest session elsewhere that reopens it; none while the answer is to another cut than the present."""
        link = self.reopened.get(claimed.summary.trace_ids[0])
        return link if link is not None and claimed.by_spans and link.at > claimed.summary.end else None

    def taken_back(self, claimed: Claimed) -> tuple[str, ...]:
        """The sessions elsewhere that it reopens, as they are printed."""
        found = self.reopens.get(claimed.summary.trace_ids[0], ())
        return tuple(sorted(printed(one) for one in found if one.at == claimed.summary.start))


def printed(link: Link | None) -> str:
    """`conversation#ordinal`; empty for none."""
    if link is not None and link.conversation == ERASED:
        return REASON
    return f"{link.conversation}#{link.ordinal}" if link is not None else ""


def contacts_of(
    sessions: Sequence[Session], claims: Sequence[Claimed], rules: TimeRules
) -> dict[str, tuple[Contact, ...]]:
    """By subject the sessions that one elsewhere can have something in common with (rule 42)."""
    found: dict[str, list[Contact]] = {}
    for index, (session, claimed) in enumerate(zip(sessions, claims, strict=True)):
        summary = claimed.summary
        if not summary.subjects or not session.family.name or not (summary.issues or summary.keys):
            continue
        after, until = _takes_back(session, claimed, rules)
        contact = Contact(
            ordinal=index + 1,
            trace_id=summary.trace_ids[0],
            start=summary.start,
            family=session.family.name,
            issues=tuple(sorted(summary.issues)),
            keys=tuple(sorted(summary.keys)),
            after=after,
            until=until,
        )
        for subject in summary.subjects:
            found.setdefault(subject, []).append(contact)
    return {subject: tuple(contacts) for subject, contacts in found.items()}


def _takes_back(session: Session, claimed: Claimed, rules: TimeRules) -> tuple[int, int]:
    """Past which start, up to which, a session elsewhere takes the claim back; 0 where there is none to take."""
    if not claimed.by_spans:
        return 0, 0
    contract = session.family.contract
    pause = contract.resume_window if contract else rules.resume_window
    window = contract.reopen_window if contract else rules.reopen_window
    if claimed.by_spans == "assumed":
        pause = max(pause, rules.session_gap)
    return claimed.summary.end + pause, claimed.summary.end + window


def reopened_by(
    sessions: Sequence[Session], claims: Sequence[Claimed], rules: TimeRules
) -> tuple[dict[int, int], dict[int, int]]:
    """(reopened index -> start of the earliest session that reopens it, reopening index -> reopened index)."""
    reopened: dict[int, int] = {}
    answers: dict[int, int] = {}
    for later in range(1, len(sessions)):
        for earlier in range(later - 1, -1, -1):
            if _reopens(sessions, claims, later, earlier, rules):
                answers[later] = earlier
                start = claims[later].summary.start
                reopened[earlier] = min(reopened.get(earlier, start), start)
                break
    return reopened, answers


def _reopens(
    sessions: Sequence[Session], claims: Sequence[Claimed], later: int, earlier: int, rules: TimeRules
) -> bool:
    before, after = sessions[earlier], sessions[later]
    summaries = claims[earlier].summary, claims[later].summary
    if not claims[earlier].how or not before.family.name or before.family.name != after.family.name:
        return False
    both = set(summaries[0].issues), set(summaries[1].issues)
    if all(both) and not both[0] & both[1]:
        return False
    contract = before.family.contract
    pause = summaries[1].start - summaries[0].end
    if pause <= 0 or pause > (contract.reopen_window if contract else rules.reopen_window):
        return False
    if claims[earlier].how == "assumed":
        return pause > max(rules.session_gap, contract.resume_window if contract else rules.resume_window)
    return True
