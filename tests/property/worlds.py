"""Small worlds: conversations, traces, spans and outcomes that lie around every limit, and copies of them.

A world is complete: what arrives when is `delivery.py`'s. Two of three worlds are made to hold two sessions of a
conversation, a duplicate and a conflict, since chance alone seldom does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from pipeline.core.timeline import HOUR, MINUTE, SECOND, TimeRules
from tests.builders import T0, outcome, span, trace_id
from tests.oracle.model import OOutcome, OSettings, OSpan, OTrace
from tests.oracle.spans import conversation_of_trace, spans_that_count, start_of_trace
from tests.property.contracts import LIMITS, ODD

RULES = TimeRules()
Draw = Callable[..., Any]

STEPS: tuple[dict[str, Any], ...] = (
    {"kind": "inference", "finish_reasons": ("stop",)},
    {"kind": "tool", "tool": "place_order"},
    {"kind": "tool", "tool": "search", "call_id": "1"},
    {"kind": "tool", "tool": "lookup"},
    {"kind": "inference", "finish_reasons": ("tool_calls",), "asked_tools": 1},
    {"kind": "tool", "tool": "place_order", "failed": True, "call_id": "1"},
    {"kind": "tool", "tool": "place_order", "call_id": "1"},
    {"kind": "tool", "tool": "refund", "interrupted": True, "call_id": "1"},
    {"kind": "tool", "tool": "refund", "call_id": "1"},
    {"kind": "tool", "tool": "ask_customer", "interrupted": True},
    {"kind": "tool", "tool": "notify"},
    {"kind": "tool", "tool": "escalate_to_human"},
    {"kind": "tool", "tool": "escalate_to_human", "failed": True},
    {"kind": "tool", "tool": "refuse"},
    {"kind": "tool", "tool": "search", "failed": True, "call_id": "1"},
    {"kind": "handoff", "handoff_target": "care_human"},
    {"kind": "handoff", "handoff_target": "care_human", "control_flow": True, "failed": True},
    {"kind": "handoff", "handoff_target": "other_agent"},
    {"kind": "inference", "finish_reasons": ("tool_calls",)},
    {"kind": "inference", "finish_reasons": ("length",), "asked_tools": 2},
    {"kind": "inference", "failed": True},
    {"kind": "inference", "input_tokens": 7, "response_id": "r1"},
    {"kind": "inference", "input_tokens": 7, "response_id": "r2"},
    {"kind": "embedding", "input_tokens": 2},
    {"kind": "agent", "agent": "second"},
    {"kind": "step"},
    {"kind": "guardrail", "guardrail_tripped": True},
)

SAYINGS: tuple[dict[str, Any], ...] = (
    {"family": ("order",)},
    {"family": ("search", "order")},
    {"family": ("ask",)},
    {"family": ("other",)},
    {"claim": "completed"},
    {"claim": "failed"},
    {"claim": "escalated"},
    {"claim": "refused"},
    {"state": {"told": True}},
    {"state": {"told": False, "found": 2}},
    {"state": {"found": "many"}},
    {"state": {"found": 0, "told": None}},
    {"keys": {"order": ("k1",)}},
    {"keys": {"order": ("k1", "k2")}},
    {"keys": {"parcel": (7,)}},
    {"issues": ("i1",)},
    {"issues": ("i2",)},
    {"resource": {"test": True}},
)

KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("evidence", {"settled": True}),
    ("evidence", {"settled": False}),
    ("evidence", {"settled": None, "score": 3}),
    ("evidence", {"score": 1, "settled": True}),
    ("evidence", {"score": "good"}),
    ("evidence", {"seen": True}),
    ("escalation", {"state": "accepted"}),
    ("escalation", {"state": "attempted"}),
    ("reopen", {}),
    ("resolution", {"confirmed": True}),
    ("resolution", {"confirmed": False}),
)

NOBODY: tuple[dict[str, Any], ...] = (
    {"session_id": "nobody"},
    {"trace_id": trace_id(9999)},
    {"correlation": {"x": 1}},
)

moments = st.one_of(
    st.sampled_from(ODD),
    st.builds(lambda limit, step: limit + step, st.sampled_from(LIMITS), st.sampled_from((0, 1))),
    st.integers(0, 4000).map(lambda seconds: seconds * SECOND),
)


@dataclass(frozen=True)
class World:
    """Everything that is ever sent, copies included, and the watermark at which it is judged."""

    spans: tuple[OSpan, ...]
    outcomes: tuple[OOutcome, ...]
    watermark: int

    @cached_property
    def held(self) -> frozenset[str]:
        """Traces that still wait for an id at the end."""
        return frozenset(
            name
            for name, spans in self.traces.items()
            if conversation_of_trace(OTrace("default", name, tuple(spans))) is None
            and self.watermark <= min(one.end for one in spans) + RULES.trace_timeout
        )

    @cached_property
    def reached(self) -> int:
        """The watermark of the stages behind: not past the start of the oldest trace that is held."""
        traces = self.traces
        starts = [start_of_trace(OTrace("default", name, tuple(traces[name]))) for name in self.held]
        return min([self.watermark, *starts])

    @cached_property
    def traces(self) -> dict[str, list[OSpan]]:
        """The spans that count, by trace."""
        found: dict[str, list[OSpan]] = {}
        for one in spans_that_count(self.spans, OSettings(), Counter()):
            found.setdefault(one.trace_id, []).append(one)
        return found

    @cached_property
    def begin(self) -> int:
        return min(one.start for one in self.spans)


@st.composite
def worlds(draw: Draw, ids_known: bool = False) -> World:
    """A world.

    Args:
        ids_known: every trace has an id, so that none waits for one.
    """
    rich = draw(st.integers(0, 6)) < 6
    spans: list[OSpan] = []
    for number in range(draw(st.integers(1, 3))):
        spans += _conversation(draw, number, rich and not number, ids_known)
    outcomes = _outcomes(draw, spans, rich)
    spans += _copies(draw, spans, rich)
    last = max(one.end for one in spans)
    linked = any(one.links or one.response_id for one in spans)
    if draw(st.integers(0, 2)) < 2:
        watermark = last + 80 * HOUR + draw(st.sampled_from((0, 24 * HOUR)))
    else:
        watermark = draw(st.sampled_from(sorted({one.end for one in spans}))) + draw(moments)
    world = World(tuple(spans), tuple(outcomes), watermark)
    if linked and world.held:  # where it leads is not yet decided, so that nothing could be compared
        world = replace(world, watermark=last + RULES.trace_timeout + 1)
    return world


def _conversation(draw: Draw, number: int, rich: bool, ids_known: bool) -> list[OSpan]:
    clock = T0 + number * draw(st.sampled_from((0, MINUTE, 3 * HOUR)))
    spans: list[OSpan] = []
    count = draw(st.integers(2 if rich else 1, 5))
    returns = rich and draw(st.booleans())
    for index in range(count):
        found = _trace(draw, number * 10 + index + 1, f"c{number}", clock, ids_known)
        if rich and index == 0:
            found[0] = replace(found[0], family=("order",), conversation_ids=((0, f"c{number}"),))
        if rich and index == 1:
            found[0] = replace(found[0], family=("order",) if returns else ("search",))
            found[0] = replace(found[0], conversation_ids=((0, f"c{number}"),))
        spans += found
        clock = max(one.end for one in found) + (25 * HOUR if returns and index == 0 else draw(moments))
    return spans


def _trace(draw: Draw, number: int, name: str, start: int, ids_known: bool) -> list[OSpan]:
    steps = draw(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 5)), max_size=5))
    root = draw(st.sampled_from(("agent", "agent", "agent", "step")))
    first, clock = number * 100, start
    spans = [span(number, first, start, start, root, agent="helper" if root == "agent" else None)]
    for index, (step, pause, shape) in enumerate(steps, start=1):
        begin = clock + pause * SECOND if shape != 1 else start  # some begin together
        end = begin + draw(st.integers(0, 3)) * SECOND
        parent = {0: first + index - 1, 2: 99_999}.get(shape, first)  # below the one before, or an unknown one
        spans.append(span(number, first + index, begin, end, parent=parent, **step))
        clock = max(clock, end)
    spans[0] = replace(spans[0], end=clock, record_time=clock + SECOND)
    if draw(st.integers(0, 7)) == 0:
        spans[0] = replace(spans[0], failed=True)
    if draw(st.integers(0, 5)) == 0:
        spans[-1] = replace(spans[-1], links=(trace_id(draw(st.sampled_from((number - 1, number + 1, 1, 11, 9999)))),))
    for saying, at in draw(st.lists(st.tuples(st.sampled_from(SAYINGS), st.integers(0, 5)), max_size=3)):
        spans[at % len(spans)] = replace(spans[at % len(spans)], **saying)
    return _with_ids(draw, spans, name, ids_known)


def _with_ids(draw: Draw, spans: list[OSpan], name: str, ids_known: bool) -> list[OSpan]:
    where = draw(st.sampled_from(("root", "root", "any", "all", "conflict", "root" if ids_known else "none")))
    at = draw(st.integers(0, len(spans) - 1))
    own: tuple[tuple[int, str | int | float | None], ...] = ((0, name),)
    if where == "none":
        return spans
    chosen = {"root": [0], "any": [at], "all": range(len(spans)), "conflict": [0]}[where]
    marked = [replace(one, conversation_ids=own) if index in chosen else one for index, one in enumerate(spans)]
    if where == "conflict":
        marked[at] = replace(marked[at], conversation_ids=((0, "elsewhere"),))
    return marked


def _copies(draw: Draw, spans: Sequence[OSpan], rich: bool) -> list[OSpan]:
    """Redeliveries: the same again, the same recorded at another time, or an unequal copy."""
    copies = []
    chosen = st.tuples(st.integers(0, len(spans) - 1), st.integers(0, 3))
    for index, how in draw(st.lists(chosen, min_size=int(rich), max_size=3, unique_by=lambda pair: pair[0])):
        one = spans[index]
        if how == 1:
            one = replace(one, record_time=(one.record_time or 0) + MINUTE)
        elif how == 2:
            one = replace(one, attribute_count=1, failed=not one.failed)
        elif how == 3:
            one = replace(one, end=one.end + SECOND, conversation_ids=one.conversation_ids or ((0, "c0"),))
        copies.append(one)
    return copies


# -- outcomes ----------------------------------------------------------------------------------------------------------


def _outcomes(draw: Draw, spans: Sequence[OSpan], rich: bool) -> list[OOutcome]:
    found: list[OOutcome] = []
    for number in range(draw(st.integers(1 if rich else 0, 5))):
        kind, data = draw(st.sampled_from(KINDS))
        anchor = draw(st.sampled_from(spans))
        before = draw(st.sampled_from((0, 0, 0, 1, 5 * MINUTE, 5 * MINUTE + 1)))
        time = (anchor.start - before) if before else anchor.end + draw(moments)
        address = _address(draw, anchor, kind)
        base = outcome(f"e{number}", time, kind, data=data, **address)
        found.append(base)
        for how in draw(st.lists(st.integers(0, 4), min_size=int(rich and not number), max_size=2)):
            found.append(_again(draw, base, 1 if rich and not number and len(found) == 1 else how, anchor))
    return found


def _address(draw: Draw, anchor: OSpan, kind: str) -> dict[str, Any]:
    name = next((str(raw) for _, raw in anchor.conversation_ids), "c0")
    how = draw(st.integers(0, 8))
    if how <= 2:
        return {"session_id": name}
    if how == 3:
        return {"session_id": name, "ordinal": draw(st.integers(1, 3))}
    if how == 4:
        return {"trace_id": anchor.trace_id}
    if how == 5:
        return {"session_id": f"trace:{anchor.trace_id}"}
    if how == 6 and kind == "evidence":
        return {"correlation": {"order": "k2", "parcel": "7"}}
    if how == 7:
        chosen: dict[str, Any] = draw(st.sampled_from(NOBODY))
        return chosen
    return {"correlation": draw(st.sampled_from(({"order": "k1"}, {"parcel": 7}, {"order": "k2"})))}


def _again(draw: Draw, base: OOutcome, how: int, anchor: OSpan) -> OOutcome:
    """Another event of the same identity: a copy, an equal version, a newer one, a retraction, one sent elsewhere."""
    if how == 0:
        return replace(base, record_time=(base.record_time or 0) + MINUTE)
    if how == 3:
        return replace(base, kind="retract", data={}, event_version=draw(st.integers(1, 3)))
    kind, data = draw(st.sampled_from(KINDS))
    changed = replace(base, kind=kind, data=data, event_time=base.event_time + draw(st.sampled_from((0, 1, HOUR))))
    if how == 1:
        return replace(changed, event_version=base.event_version, data={**data, "note": "other"})
    changed = replace(changed, event_version=draw(st.integers(1, 3)))
    if how == 4:
        bare: dict[str, Any] = {"session_id": None, "ordinal": None, "trace_id": None, "correlation": {}}
        return replace(changed, **{**bare, **_address(draw, anchor, "reopen")})
    if len(changed.correlation) > 1 and kind != "evidence":
        return replace(changed, correlation={"order": "k2"})
    return changed
