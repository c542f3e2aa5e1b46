"""What stage 3 keeps: each outcome's newest version; what states a key and is addressed to it; whom a subject met.

Everything stays until its retention is over, and it is known what changed (RULES.md 32-37, 42).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Generic, TypeVar

import msgspec

from schemas.contact import Contact, Link
from schemas.outcome import TRACE_KEY, Outcome, OutcomeKind

Key = tuple[str, str]
State = TypeVar("State")

_encode = msgspec.msgpack.Encoder().encode


class Identity(msgspec.Struct, array_like=True):
    """One outcome identity: its newest version, every key and conversation it was ever sent to, and what it reached.

    Args:
        reached: conversation -> (stamp, whether it reaches a session there).
        answered: somebody has said so since it was last sent.
    """

    tenant: str
    outcome: Outcome
    keys: list[Key] = []
    conversation: str = ""
    reached: dict[str, tuple[int, bool]] = {}
    answered: bool = False

    @property
    def waits(self) -> bool:
        """No session has it yet (rule 37)."""
        return self.outcome.kind is not OutcomeKind.RETRACT and not any(one for _, one in self.reached.values())


class Statement(msgspec.Struct, array_like=True):
    """A trace that states the key; `conversation` is empty when it no longer does."""

    stamp: int
    start: int
    conversation: str


class AddressedOutcome(msgspec.Struct, array_like=True):
    """An outcome that is, or was, addressed to the key.

    Args:
        outcome: its newest version; None when no longer addressed to the key.
        sent: the conversations that have it by this key.
        too_broad: it was counted that the key is too broad for it.
    """

    stamp: int
    outcome: Outcome | None
    sent: set[str] = set()
    too_broad: bool = False


class KeyState(msgspec.Struct, array_like=True):
    """One key of one tenant: the traces that state it, the outcomes ("source\\0event_id") addressed to it."""

    tenant: str
    name: str
    value: str
    statements: dict[bytes, Statement] = {}
    outcomes: dict[str, AddressedOutcome] = {}


class Side(msgspec.Struct, array_like=True):
    """The sessions of one conversation that served a subject, and what it was last told about others (rule 42)."""

    tenant: str
    subject: str
    conversation: str
    stamp: int
    sessions: tuple[Contact, ...] = ()
    reopened: tuple[Link, ...] = ()
    reopens: tuple[Link, ...] = ()


def addresses(outcome: Outcome) -> list[Key]:
    """The keys that an outcome is addressed to; a trace id is a key like any other."""
    if outcome.kind is OutcomeKind.RETRACT:
        return []
    if outcome.trace_id:
        return [(TRACE_KEY, outcome.trace_id.hex())]
    return list(outcome.keys)


class Kept(Generic[State]):
    """States by key, which of them changed since the last cut, and when each is to be looked at again.

    Args:
        prefix: the first byte of its keys.
        expires: state -> the last event time that can count for it, None where it holds nothing (ns).
        retention: how long it stays after that, ns.
    """

    __slots__ = ("_armed", "_decode", "_dirty", "_expires", "_gone", "_retention", "_timers", "prefix", "states")

    def __init__(
        self, prefix: bytes, kind: type[State], expires: Callable[[State], int | None], retention: int
    ) -> None:
        self.prefix, self._expires, self._retention = prefix, expires, retention
        self.states: MutableMapping[bytes, State] = {}
        self._decode: Callable[[bytes], State] = msgspec.msgpack.Decoder(kind).decode
        self._dirty: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._timers: list[tuple[int, bytes]] = []
        self._armed: set[bytes] = set()

    def key(self, *parts: str) -> bytes:
        return self.prefix + "\0".join(parts).encode()

    def load(self, key: bytes, encoded: bytes) -> State:
        state = self.states[key] = self._decode(encoded)
        self._arm(key, state, 0)
        return state

    def touch(self, key: bytes, state: State, now: int) -> None:
        """The state is new or was changed; `now` is the watermark."""
        self.states[key] = state
        self._gone.discard(key)
        self._dirty.add(key)
        self._arm(key, state, now)

    def forget(self, key: bytes) -> None:
        del self.states[key]
        self._dirty.discard(key)
        self._gone.add(key)

    def due(self, watermark: int) -> Iterator[tuple[bytes, State]]:
        """What has expired at `watermark`; whoever takes it forgets it, or it is asked about again next time."""
        again: list[tuple[bytes, State]] = []
        while self._timers and self._timers[0][0] < watermark:
            _, key = heapq.heappop(self._timers)
            self._armed.discard(key)
            state = self.states.get(key)
            if state is None:
                continue
            last = self._expires(state)
            if last is None or last + self._retention < watermark:
                yield key, state
            if key in self.states:
                again.append((key, state))
        for key, state in again:
            self._arm(key, state, watermark)

    def _arm(self, key: bytes, state: State, now: int) -> None:
        if key not in self._armed:
            self._armed.add(key)
            last = self._expires(state)
            heapq.heappush(self._timers, ((now if last is None else last) + self._retention, key))

    def _encoded(self, key: bytes) -> bytes:
        return _encode(self.states[key])

    def changed(self) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """(encoded states that changed, keys that are gone) since the last call."""
        states: list[tuple[bytes, Any]] = [(key, self._encoded(key)) for key in self._dirty]
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        return states, gone
