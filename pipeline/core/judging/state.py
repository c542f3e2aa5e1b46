"""What stage 4 keeps of a conversation. Everything that moves this state is in `step.py`; the rest reads it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from pipeline.core.judging.attach import Via
from pipeline.core.judging.fold import Contribution
from schemas.contact import Link
from schemas.outcome import Outcome


class HeldTrace(msgspec.Struct, array_like=True):
    """A trace: the highest stamp heard, whether it was taken away at that stamp, and its spans, packed.

    Args:
        spans: span id -> (record time, encoded `Span`).
        lead: the trace that it leads to (rule 5); empty for itself.
    """

    stamp: int
    gone: bool = False
    spans: dict[bytes, tuple[int, bytes]] = {}
    lead: bytes = b""


class HeldOutcome(msgspec.Struct, array_like=True):
    """An outcome identity: by each way it may come, the highest stamp and its content then (None: withdrawn).

    Args:
        reached: whether stage 3 was told that a session has it; None where it is to be told.
    """

    ways: list[tuple[Via, int, Outcome | None]] = []
    reached: bool | None = None

    def newest(self) -> Outcome | None:
        """The content that holds: the newest version that any way carries (one way may be behind another)."""
        found = [outcome for _, _, outcome in self.ways if outcome is not None]
        return max(found, key=lambda one: one.order, default=None)

    def vias(self) -> list[Via]:
        return sorted(via for via, _, outcome in self.ways if outcome is not None)


class ToldSubject(msgspec.Struct, array_like=True):
    """What stage 3 was told of the sessions that served a subject, and what it said (RULES.md 42).

    Args:
        stamp, digest: of what was told last; `answered`: the greatest stamp that was answered.
        heard: the stamp of the newest answer; `reopened`, `reopens`: what it says, as in `Returns`.
    """

    stamp: int
    digest: bytes
    answered: int = 0
    heard: int = 0
    reopened: tuple[Link, ...] = ()
    reopens: tuple[Link, ...] = ()


class Published(msgspec.Struct, array_like=True):
    """One ordinal as it was last sent: its revision, content and contribution."""

    revision: int
    digest: bytes
    verdict: bytes  # encoded Verdict; empty after a tombstone
    contribution: Contribution | None


def sealed(revision: int) -> Published:
    """Of a session whose bucket has sealed: nothing but how often it was published."""
    return Published(revision, b"", b"", None)


class FreshSpan(NamedTuple):
    """A span that came since the conversation was last judged.

    Args:
        before: (record time, body) of the copy that it took the place of; None if the span was not known.
        watermark: when it came: what was open then takes it, however far event time has gone on since.
    """

    trace_id: bytes
    span_id: bytes
    before: tuple[int, bytes] | None
    watermark: int


class Input(StrEnum):
    """What may change a conversation."""

    TRACE = "trace"
    OUTCOME = "outcome"
    CONTRACT = "contract"
    RETURNS = "returns"


class About(msgspec.Struct, array_like=True, frozen=True):
    """Which input a cause is.

    Args:
        name: the trace's id, or "source\\0event_id" of the outcome.
        had: the places of the sessions that had the outcome before it was corrected or withdrawn.
    """

    what: Input
    name: str = ""
    had: tuple[int, ...] = ()


class Conversation(msgspec.Struct, array_like=True):
    """A conversation.

    Args:
        causes: what changed since the last publication, for the revision's reason; `about` says which input each is.
        fresh: spans that came since the last judgement; whoever restores the conversation judges it.
        packed: settled sessions, first to last: their spans are gone (`packed.pack_session`).
        counted: what each of them counts, in place of its `published` (`packed.pack_count`); kept in state alone.
        idle: marks of the spans of traces that had settled without a session.
        leaves: when the retention of all that it ever held is over, ns.
        sealed: how many of the packed sessions have sealed: they are published never again.
        began: the event time of what came first, in whole seconds, ns: which life of the conversation it is.
    """

    tenant: str
    name: str
    traces: dict[bytes, HeldTrace] = {}
    outcomes: dict[str, HeldOutcome] = {}  # "source\0event_id"
    published: list[Published] = []
    causes: list[str] = []
    due: int = 0
    fresh: list[FreshSpan] = []
    subjects: dict[str, ToldSubject] = {}
    packed: list[bytes] = []
    counted: list[bytes] = []
    idle: bytes = b""
    leaves: int = 0
    sealed: int = 0
    began: int = 0
    about: dict[str, About] = {}

    def caused_by(self, cause: str, about: About | None) -> None:
        """One more cause of the next revision."""
        if cause not in self.causes:
            self.causes.append(cause)
        if about is not None:
            known = self.about.get(cause, about)
            self.about[cause] = msgspec.structs.replace(about, had=tuple({*known.had, *about.had}))

    def told(self) -> None:
        """It was published: what caused that causes no other revision."""
        self.causes, self.about = [], {}
