"""Small worlds for the oracle's own cases: times are seconds after `T0`, trace ids are numbers in 32 hex digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.oracle.model import DAY, SECOND, OContract, OCriterion, OOutcome, OSession, OSettings, OSpan, World
from tests.oracle.world import judge_world

T0 = 20_000 * DAY
MIN, HOURS, DAYS = 60, 3600, 86_400
FAR = 20 * DAYS
"""A watermark past every window of the default contract, and within retention."""


def at(seconds: float) -> int:
    """Nanoseconds of a moment given in seconds after `T0`."""
    return T0 + int(seconds * SECOND)


def trace_id(number: int) -> str:
    """32 hex digits."""
    return f"{number:032x}"


def span(trace: int, name: str, start: float, end: float, kind: str = "agent", **more: Any) -> OSpan:
    """One span; `id="c"` gives it a conversation id, `links=[2]` links to other traces."""
    conversation = more.pop("id", None)
    if conversation is not None:
        more["conversation_ids"] = ((0, conversation),)
    more["links"] = tuple(map(trace_id, more.pop("links", ())))
    parent = more.pop("parent", None)
    return OSpan(trace_id(trace), name, at(start), at(end), kind=kind, parent_id=parent, name=name, **more)


def turn(trace: int, start: float, conversation: str | None = "c", **more: Any) -> list[OSpan]:
    """A run of ten seconds that ends in an answer: an agent over a model span."""
    return [
        span(trace, "1", start, start + 10, "agent", id=conversation, agent="helper", **more),
        span(trace, "2", start + 1, start + 9, "inference", parent="1", finish_reasons=("stop",)),
    ]


def tool_turn(trace: int, start: float, name: str, conversation: str | None = "c", **more: Any) -> list[OSpan]:
    """A run of ten seconds: an agent, a tool, and a model span that answers; `more` goes on the tool span."""
    return [
        span(trace, "1", start, start + 10, "agent", id=conversation, agent="helper"),
        span(trace, "2", start + 1, start + 5, "tool", parent="1", tool=name, **more),
        span(trace, "3", start + 6, start + 9, "inference", parent="1", finish_reasons=("stop",)),
    ]


def outcome(event_id: str, time: float, kind: str = "evidence", **more: Any) -> OOutcome:
    """One outcome of the source `crm`; to conversation `c` unless it is addressed otherwise."""
    if not {"session_id", "trace_id", "correlation"} & set(more):
        more["session_id"] = "c"
    return OOutcome(more.pop("source", "crm"), event_id, at(time), kind, **more)


def contract(*criteria: OCriterion, **more: Any) -> OContract:
    """Version 1 of the family `order`."""
    return OContract(more.pop("family", "order"), more.pop("version", 1), criteria=criteria, **more)


def judge(
    spans: Sequence[OSpan],
    outcomes: Sequence[OOutcome] = (),
    contracts: Sequence[OContract] = (),
    watermark: float = FAR,
    settings: OSettings | None = None,
) -> World:
    """The world of some spans and outcomes."""
    return judge_world(spans, outcomes, contracts, settings or OSettings(), at(watermark))


def only(world: World) -> OSession:
    """The one session of a world."""
    (session,) = world.sessions
    return session


def cut(world: World, conversation: str = "c") -> list[list[int]]:
    """The trace numbers of each session of a conversation."""
    return [[int(t, 16) for t in s.trace_ids] for s in world.sessions if s.conversation == conversation]
