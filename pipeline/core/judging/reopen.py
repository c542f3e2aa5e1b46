"""Which earlier session a later one reopens (RULES.md 41, 44); a return that reopens nothing is a follow-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.judging.boundaries import Session
from pipeline.core.timeline import TimeRules


@dataclass(frozen=True, slots=True)
class Claimed:
    """A session's claim of completion, as reopening asks for it: '', 'explicit' or 'assumed'."""

    how: str
    issues: frozenset[str]


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
                start = sessions[later].start
                reopened[earlier] = min(reopened.get(earlier, start), start)
                break
    return reopened, answers


def _reopens(
    sessions: Sequence[Session], claims: Sequence[Claimed], later: int, earlier: int, rules: TimeRules
) -> bool:
    before, after = sessions[earlier], sessions[later]
    if not claims[earlier].how or not before.family.name or before.family.name != after.family.name:
        return False
    both = claims[earlier].issues, claims[later].issues
    if all(both) and not both[0] & both[1]:
        return False
    contract = before.family.contract
    pause = after.start - before.end
    if pause <= 0 or pause > (contract.reopen_window if contract else rules.reopen_window):
        return False
    if claims[earlier].how == "assumed":
        return pause > max(rules.session_gap, contract.resume_window if contract else rules.resume_window)
    return True
