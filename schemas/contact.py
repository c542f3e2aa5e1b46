"""What stages 3 and 4 say to each other about sessions: who came back elsewhere, and what an outcome reached.

Both loops carry no watermark. Every question is answered at once, 'nobody' too, so that the asker knows how far it has
come; later changes are told again (RULES.md 37, 42).
"""

from __future__ import annotations

import msgspec


class Contact(msgspec.Struct, array_like=True, frozen=True):
    """One session as other conversations of its subject see it.

    Args:
        ordinal: in the present cut, for people; `trace_id`: of its first run, which is what finds it again.
        start: ns.
        after, until: a session that starts past `after`, up to and with `until`, takes its claim of completion back;
            both 0 where it claims none.
    """

    ordinal: int
    trace_id: bytes
    start: int
    family: str
    issues: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    after: int = 0
    until: int = 0


class Contacts(msgspec.Struct, array_like=True, frozen=True, tag="C"):
    """`trueup.correlations`: all sessions of a conversation that served the subject, as of `stamp`: a question."""

    tenant: str
    subject: str
    conversation: str
    stamp: int
    sessions: tuple[Contact, ...]


class Link(msgspec.Struct, array_like=True, frozen=True):
    """A session of this conversation, by the first trace of its first run, and one of another conversation.

    Args:
        at: when the later of the two starts, ns.
        conversation, ordinal: the other one.
    """

    trace_id: bytes
    at: int
    conversation: str
    ordinal: int


class Returns(msgspec.Struct, array_like=True, frozen=True, tag="R"):
    """`trueup.session-events`: what the subject's sessions elsewhere say about those of this conversation.

    Args:
        stamp: of one subject the highest holds.
        of: the stamp of the newest `Contacts` of this conversation that it takes in.
        reopened: sessions of this conversation, each with the earliest one elsewhere that reopens it.
        reopens: sessions of this conversation, with some of those elsewhere that they reopen.
    """

    tenant: str
    conversation: str
    subject: str
    stamp: int
    of: int
    reopened: tuple[Link, ...]
    reopens: tuple[Link, ...]


class Reached(msgspec.Struct, array_like=True, frozen=True, tag="r"):
    """`trueup.correlations`: whether the outcome reaches a session of the conversation; empty: the key leads nowhere.

    Args:
        stamp: of one conversation the highest holds.
    """

    tenant: str
    source: str
    event_id: str
    conversation: str
    stamp: int
    reached: bool
