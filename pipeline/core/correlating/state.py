"""What stage 3 keeps: each outcome's newest version; what states a key and is addressed to it (RULES.md 32-37)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.outcome import TRACE_KEY, Outcome, OutcomeKind

MOST_TRACES = 200
"""Source: RULES.md 36: a key that more traces state, begun by then, is too broad."""

Key = tuple[str, str]


class Identity(msgspec.Struct, array_like=True):
    """One outcome identity: its newest version, and every key and conversation it was ever sent to."""

    tenant: str
    outcome: Outcome
    keys: list[Key] = []
    conversation: str = ""


class Statement(msgspec.Struct, array_like=True):
    """A trace that states the key; `conversation` is empty when it no longer does."""

    stamp: int
    start: int
    conversation: str


class KeyState(msgspec.Struct, array_like=True):
    """One key of one tenant.

    Args:
        outcomes: "source\\0event_id" -> (stamp, newest version; None when no longer addressed to the key).
        sent: which conversations each was sent to.
    """

    tenant: str
    name: str
    value: str
    statements: dict[bytes, Statement] = {}
    outcomes: dict[str, tuple[int, Outcome | None]] = {}
    sent: dict[str, list[str]] = {}


def addresses(outcome: Outcome) -> list[Key]:
    """The keys that an outcome is addressed to; a trace id is a key like any other."""
    if outcome.kind is OutcomeKind.RETRACT:
        return []
    if outcome.trace_id:
        return [(TRACE_KEY, outcome.trace_id.hex())]
    return list(outcome.keys)


def waits(state: KeyState, identity: str, outcome: Outcome, max_clock_skew: int) -> bool:
    """Whether no session can have claimed an outcome by this key: nothing stating it had begun by then (rule 37)."""
    if not state.sent.get(identity):
        return True
    if outcome.kind is not OutcomeKind.EVIDENCE or state.name == TRACE_KEY:
        return False  # stage 4 tells
    begun_by = outcome.event_time + max_clock_skew
    return not any(one.conversation and one.start <= begun_by for one in state.statements.values())


def targets(state: KeyState, outcome: Outcome, max_clock_skew: int) -> tuple[list[str], bool]:
    """(conversations that an outcome by this key goes to, whether the key is too broad for it).

    Evidence goes to every conversation that holds a trace stating the key; stage 4 chooses the sessions. Other kinds go
    to that of the latest trace that states it and had begun, or, where none had, of the earliest (rule 36).
    """
    live = [(one.start, trace_id, one.conversation) for trace_id, one in state.statements.items() if one.conversation]
    if state.name == TRACE_KEY:
        return sorted({conversation for _, _, conversation in live}), False
    begun_by = outcome.event_time + max_clock_skew
    begun = [one for one in live if one[0] <= begun_by]
    if len(begun) > MOST_TRACES:
        return [], True
    if outcome.kind is OutcomeKind.EVIDENCE:
        return sorted({conversation for _, _, conversation in live}), False
    chosen: Iterable[tuple[int, bytes, str]] = [max(begun)] if begun else sorted(live)[:1]
    return [conversation for _, _, conversation in chosen], False
