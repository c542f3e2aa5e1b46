"""Erasure: the order that a person gives, and what stages tell each other of what it hit.

Only the order itself names what is to be erased, on its way to stage 4; everything behind it goes by digests.
"""

from __future__ import annotations

import msgspec

ERASE_ROWS = "erase"
"""A row of this name is no row: it tells the sink to erase a conversation. Its values are `EraseRows`, in order."""


class Forget(msgspec.Struct, array_like=True, frozen=True, tag="F"):
    """`trueup.session-events`: erase a conversation, or whatever the partition holds of a subject.

    Args:
        conversation, subject: one of them is empty; the subject is its keyed hash.
        order: for the receipts. at: when it was given, ns.
        salt: random and kept nowhere else: what stays of an erased session bears a name made with it.
        ordinals: sessions of the conversation that the store has, which the state may not.
    """

    tenant: str
    conversation: str
    subject: str
    order: str
    at: int
    salt: bytes
    ordinals: int = 0


class Forgotten(msgspec.Struct, array_like=True, frozen=True, tag="f"):
    """`trueup.spans`, `trueup.correlations`, to every partition: this conversation is erased.

    Args:
        digest: of tenant and conversation.
        until: event time up to which it must not come again, ns.
        alias: what its receipts call it.
    """

    tenant: str
    digest: bytes
    until: int
    order: str
    alias: str


class Unasked(msgspec.Struct, array_like=True, frozen=True, tag="n"):
    """`trueup.spans`, to every partition: the trace is erased; whatever it asked is asked no longer."""

    tenant: str
    trace_id: bytes


class Unaddressed(msgspec.Struct, array_like=True, frozen=True, tag="u"):
    """`trueup.correlations`, from a key to an outcome's identity: whom it reached by this key is erased."""

    tenant: str
    source: str
    event_id: str
    name: str
    value: str
    until: int


class EraseRows(msgspec.Struct, array_like=True, frozen=True):
    """What the sink is told.

    Args:
        digest: see `Forgotten`. until: when the store may take such a conversation again, ns.
        alias: what the store calls what stays of it; empty where nothing does, as its trace is elsewhere.
    """

    tenant: str
    conversation: str
    digest: bytes
    until: int
    order: str
    alias: str
