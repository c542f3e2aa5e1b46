"""Outcome events: what really happened, as the business recorded it. The Pydantic model is the published contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from schemas.span import Value


class OutcomeKind(StrEnum):
    EVIDENCE = "evidence"
    ESCALATION = "escalation"
    REOPEN = "reopen"
    RESOLUTION = "resolution"
    FEEDBACK = "feedback"
    EVALUATION = "evaluation"
    INVALIDATE = "invalidate"
    REFUSAL = "refusal"
    RETRACT = "retract"


def _no_boolean(value: object) -> object:
    """True is no 1: what is no id on a span is none here (RULES.md 4)."""
    if isinstance(value, bool):
        raise ValueError("true and false are no ids, numbers or times")
    return value


def _no_zero(text: str) -> str:
    """Else two pairs of names could be joined to one."""
    if JOINT in text:
        raise ValueError("holds a zero character, by which parts of an id are told apart")
    return text


JOINT = "\0"
"""Between the parts of keys; no part but the last may hold it."""
NoBoolean = BeforeValidator(_no_boolean)
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Name = Annotated[Text, AfterValidator(_no_zero)]
Id = Annotated[str | int | float | None, NoBoolean]
MOST_KEYS = 32
"""Business keys of one event, and of one span: each is told, kept and looked up on its own."""
MAX_WHOLE = 2**63 - 1
MAX_DIGITS = 1024
"""Of a whole number in `data`, or of one that is an id: what 64 bits do not hold is kept as text."""
MAX_DEPTH = 100
"""Levels of lists and objects in an event."""
PLACE_SHOWN = 100

TRACE_KEY = ""
"""The name of the key that a trace's id is, which its own trace states: a key of a user's has a name."""
HANDOFFS = ("attempted", "accepted", "failed")
"""What became of a hand-off to a person, as an escalation says in `data.state`."""
EVALUATED = ("scored", "abstained", "error")
"""What became of an evaluation, in `data.state`; `scored` where it does not say."""
SESSION_VIA = ("session", "")
"""The way of an outcome that names its conversation."""


class OutcomeEvent(BaseModel):
    """One outcome event, as it is posted to `/v1/outcomes` or written to `trueup.outcomes`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    event_id: Text
    event_version: Annotated[int, NoBoolean, Field(ge=0, le=MAX_WHOLE)] = 1
    event_time: Annotated[datetime, NoBoolean]
    source: Name
    kind: OutcomeKind
    tenant: Name = "default"
    session_id: Id = None
    ordinal: Annotated[Annotated[int, Field(ge=1, le=MAX_WHOLE)] | None, NoBoolean] = None
    trace_id: Annotated[Annotated[str, Field(pattern="^[0-9a-fA-F]{32}$")] | None, NoBoolean] = None
    correlation: dict[Name, Id] | None = None
    data: dict[str, Any] = {}

    @field_validator("event_time")
    @classmethod
    def _with_zone(cls, value: datetime) -> datetime:
        if value.tzinfo is None:
            raise ValueError("event_time needs a time zone, such as 2026-04-02T10:00:00Z")
        return value.astimezone(UTC)

    @field_validator("correlation", mode="before")
    @classmethod
    def _few_keys(cls, value: object) -> object:
        """Before anything is done with each of them."""
        if isinstance(value, dict) and len(value) > MOST_KEYS:
            raise ValueError(f"an event takes at most {MOST_KEYS} keys, not {len(value)}")
        return value

    @model_validator(mode="after")
    def _one_address(self) -> OutcomeEvent:
        given = [n for n in ("session_id", "trace_id", "correlation") if getattr(self, n) not in (None, {})]
        if self.kind is OutcomeKind.RETRACT:
            return self
        if len(given) != 1:
            said = " and ".join(given) or "none"
            raise ValueError(f"exactly one of session_id, trace_id, correlation is needed, not {said}")
        if self.ordinal is not None and self.session_id is None:
            raise ValueError("ordinal goes with session_id only")
        if self.correlation and self.kind is not OutcomeKind.EVIDENCE and len(self.correlation) != 1:
            raise ValueError(f"{self.kind} takes exactly one correlation key; only evidence takes several")
        return self

    @model_validator(mode="after")
    def _what_its_kind_says(self) -> OutcomeEvent:
        """What nobody could judge is refused where its sender hears of it, not taken for something else."""
        state = self.data.get("state")
        if self.kind is OutcomeKind.ESCALATION and state not in HANDOFFS:
            raise ValueError(f"an escalation needs data.state, one of {', '.join(HANDOFFS)}")
        if self.kind is OutcomeKind.RESOLUTION and not isinstance(self.data.get("confirmed"), bool):
            raise ValueError("a resolution needs data.confirmed, true or false")
        if self.kind is OutcomeKind.EVALUATION:
            if not isinstance(self.data.get("name"), str) or not self.data["name"]:
                raise ValueError("an evaluation needs data.name, a text")
            if state is not None and state not in EVALUATED:
                raise ValueError(f"data.state of an evaluation is one of {', '.join(EVALUATED)}")
        return self


def unfit(event: object) -> tuple[str, str] | None:
    """What in a parsed event no record can carry: (where, why) of the first such value; None where all can be.

    Half of a surrogate pair is no text. With something else in its place two ids may become one, so that the event is
    refused.
    """
    return next(_unfit(event, "", MAX_DEPTH), None)


def _unfit(value: object, place: str, levels: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if _HALF_A_PAIR.search(value):
            yield place, "holds half of a surrogate pair, which is no text"
    elif isinstance(value, int):
        if abs(value) >= _TOO_LONG:
            yield place, f"is a whole number of more than {MAX_DIGITS} digits"
    elif isinstance(value, dict | list) and not levels:
        yield place, f"is nested more than {MAX_DEPTH} levels deep"
    elif isinstance(value, dict):
        for key, held in value.items():
            name = _HALF_A_PAIR.sub("?", str(key))
            inner = f"{place}.{name}".lstrip(".")[:PLACE_SHOWN]
            if name != key:
                yield inner, "its name holds half of a surrogate pair, which is no text"
            yield from _unfit(held, inner, levels - 1)
    elif isinstance(value, list):
        for held in value:
            yield from _unfit(held, place, levels - 1)


_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_TOO_LONG = 10**MAX_DIGITS


class Outcome(msgspec.Struct, array_like=True, frozen=True):
    """An outcome inside the pipeline: validated, its tenant decided, its ids normalised.

    Args:
        event_time: ns; cut to the record's time where the event's clock ran ahead.
        session_id, trace_id: empty when it is not addressed so; a `trace:<32 hex>` session is a trace address.
        keys: correlation keys, (name, value), sorted.
        digest: SHA-256 of the canonical JSON of the event as validated (decides between equal versions).
        from_agent: it comes from an agent's own source: a claim, no evidence.
        barred: its source may not say its kind: it is shown and feeds nothing at all.
        heard_at: when its Kafka record was written, ns; for measuring how soon it shows, nothing else.
    """

    tenant: str
    source: str
    event_id: str
    event_version: int
    event_time: int
    kind: OutcomeKind
    session_id: str
    ordinal: int | None
    trace_id: bytes
    keys: tuple[tuple[str, str], ...]
    data: dict[str, Value]
    digest: bytes
    from_agent: bool = False
    clock_ahead: bool = False
    heard_at: int = 0
    barred: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """What versions and retractions refer to, within the tenant."""
        return self.source, self.event_id

    @property
    def order(self) -> tuple[int, bool, bytes]:
        """The greater one holds: version, then retraction, then digest (rule 32)."""
        return self.event_version, self.kind is OutcomeKind.RETRACT, self.digest


class OutcomeArrival(msgspec.Struct, array_like=True, frozen=True, tag="o"):
    """`trueup.correlations`, first hop: an outcome on its way to its identity, where its versions meet."""

    outcome: Outcome
    record_time: int


class Addressed(msgspec.Struct, array_like=True, frozen=True, tag="a"):
    """`trueup.correlations`, second hop: the newest version of an outcome that is addressed to this key.

    `outcome` None: it is no longer addressed to it (retracted, or a newer version went elsewhere).
    """

    tenant: str
    name: str
    value: str
    source: str
    event_id: str
    stamp: int
    outcome: Outcome | None


class Attached(msgspec.Struct, array_like=True, frozen=True, tag="A"):
    """`trueup.session-events`: the outcome reaches this conversation by `via`; None: no longer.

    Args:
        via: `SESSION_VIA`, or the key it came by, (name, value). One outcome may arrive by several.
        stamp: of one (identity, via) the highest stamp holds.
    """

    tenant: str
    conversation: str
    source: str
    event_id: str
    via: tuple[str, str]
    stamp: int
    outcome: Outcome | None
