"""Small worlds: conversations, traces, spans and outcomes that lie around every limit, and copies of them.

A world is complete: what arrives when is `delivery.py`'s. Most worlds are made to hold two sessions of a conversation,
a duplicate and a conflict, and many who come back, keys that several state, clocks that are wrong: chance alone seldom
makes any of it.
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
from tests.oracle.spans import (
    conversation_of_trace,
    needed_record_time,
    normalised_times,
    spans_that_count,
    start_of_trace,
    traces_of,
)
from tests.property.contracts import LIMITS, ODD
from tests.property.sayings import EVALUATIONS, KINDS, NOBODY, SAYINGS, STEPS

RULES = TimeRules()
TOO_BROAD = 3
"""Traces that may state a key; far fewer than in earnest, so that small worlds have keys that are too broad."""
SOURCES_THAT_MAY_SAY = {"resolution": frozenset({"crm", "shop"}), "refusal": frozenset({"crm"})}
Draw = Callable[..., Any]

SPEAKERS: tuple[dict[str, Any], ...] = ({}, {}, {}, {"source": "shop"}, {"from_agent": True, "source": "bot"})

moments = st.one_of(
    st.sampled_from(ODD),
    st.builds(lambda limit, step: limit + step, st.sampled_from(LIMITS), st.sampled_from((0, 1))),
    st.integers(0, 4000).map(lambda seconds: seconds * SECOND),
)


@dataclass(frozen=True)
class World:
    """Everything that is ever sent, copies included, and the watermark at which it is judged.

    Args:
        most: spans of a trace that count (rule 8).
    """

    spans: tuple[OSpan, ...]
    outcomes: tuple[OOutcome, ...]
    watermark: int
    most: int = RULES.max_spans_per_trace

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
        told = OSettings(max_spans_per_trace=self.most)
        kept = traces_of(spans_that_count(self.spans, told, Counter()), told, Counter())
        return {one.trace_id: list(one.spans) for one in kept}

    @cached_property
    def begin(self) -> int:
        return min(corrected(one).start for one in self.spans)


@dataclass(frozen=True)
class Shape:
    """What a world is made to hold.

    Args:
        rich: two sessions in the first conversation, a duplicate, a conflict.
        returns: customers come back, in this conversation or in another one.
        crowd: every trace states the same key.
        clocks: some spans and outcomes have impossible times.
        ids_known: every trace has an id, so that none waits for one.
    """

    rich: bool
    returns: bool
    crowd: bool
    clocks: bool
    ids_known: bool


def corrected(one: OSpan) -> OSpan:
    """The span as rule 3 has it."""
    found = normalised_times(one, OSettings())
    assert found is not None
    return found


@st.composite
def worlds(draw: Draw, ids_known: bool = False, most: int = RULES.max_spans_per_trace) -> World:
    """A world.

    Args:
        ids_known: every trace has an id, so that none waits for one.
        most: spans of a trace that count.
    """
    shape = Shape(
        rich=draw(st.integers(0, 6)) < 6,
        returns=draw(st.booleans()),
        crowd=draw(st.booleans()),
        clocks=draw(st.booleans()),
        ids_known=ids_known,
    )
    spans: list[OSpan] = []
    for number in range(draw(st.integers(2 if shape.returns else 1, 3))):
        spans += _conversation(draw, number, shape, spans)
    outcomes = _outcomes(draw, spans, shape)
    spans += _copies(draw, spans, shape.rich)
    last = max(corrected(one).end for one in spans)
    linked = any(one.links or one.response_id for one in spans)
    if draw(st.integers(0, 2)) < 2:
        watermark = last + 80 * HOUR + draw(st.sampled_from((0, 24 * HOUR)))
    else:
        watermark = draw(st.sampled_from(sorted({corrected(one).end for one in spans}))) + draw(moments)
    world = World(tuple(spans), tuple(outcomes), watermark, most)
    if linked and world.held:  # where it leads is not yet decided, so that nothing could be compared
        world = replace(world, watermark=last + RULES.trace_timeout + 1)
    return world


def _conversation(draw: Draw, number: int, shape: Shape, before: Sequence[OSpan]) -> list[OSpan]:
    clock = T0 + number * draw(st.sampled_from((0, MINUTE, 3 * HOUR)))
    elsewhere = shape.returns and number > 0
    if elsewhere:  # soon after the resume window of the first conversation's first trace, or when it may be too late
        first = max(one.end for one in before if one.trace_id == before[0].trace_id)
        clock = first + draw(st.sampled_from((HOUR, HOUR + 1, 2 * HOUR, 24 * HOUR, 48 * HOUR, 48 * HOUR + 1)))
    main = shape.rich and not number
    spans: list[OSpan] = []
    again = main and draw(st.booleans())
    days = not main and not elsewhere and draw(st.integers(0, 2)) == 0
    for index in range(draw(st.integers(2 if main else 3 if days else 1, 3))):
        found = _trace(draw, number * 10 + index + 1, f"c{number}", clock, shape)
        stated: dict[str, Any] = {"conversation_ids": ((0, f"c{number}"),)}
        if (main or elsewhere) and index == 0:
            found[0] = replace(found[0], family=("order",), **stated)
        if main and index == 1:
            found[0] = replace(found[0], family=("order",) if again else ("search",), **stated)
        if shape.returns and index == 0:
            issues = draw(st.sampled_from((("i1",), ("i1", "i2"), ())))
            found[0] = replace(found[0], subject=("s",), issues=issues, claim="failed" if elsewhere else "completed")
        if days:  # it waits for somebody, longer than a day in all
            found.append(_question(number * 10 + index + 1, found))
        spans += found
        clock = max(one.end for one in found) + (
            13 * HOUR if days else 25 * HOUR if again and index == 0 else draw(moments)
        )
    return spans


def _question(number: int, before: Sequence[OSpan]) -> OSpan:
    """A model that asks for a tool that never runs, behind all else of its trace."""
    end = max(corrected(one).end for one in before)
    asks: dict[str, Any] = {"finish_reasons": ("tool_calls",), "asked_tools": 1}
    return span(number, number * 100 + 50, end, end, "inference", parent=number * 100, **asks)


def _trace(draw: Draw, number: int, name: str, start: int, shape: Shape) -> list[OSpan]:
    steps = draw(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 5)), max_size=4))
    root = draw(st.sampled_from(("agent", "agent", "agent", "step")))
    first, clock = number * 100, start
    spans = [span(number, first, start, start, root, agent="helper" if root == "agent" else None)]
    for index, (step, pause, where) in enumerate(steps, start=1):
        begin = clock + pause * SECOND if where != 1 else start  # some begin together
        end = begin + draw(st.integers(0, 3)) * SECOND
        parent = {0: first + index - 1, 2: 99_999}.get(where, first)  # below the one before, or an unknown one
        spans.append(span(number, first + index, begin, end, parent=parent, **step))
        clock = max(clock, end)
    spans[0] = replace(spans[0], end=clock, record_time=clock + SECOND)
    if draw(st.integers(0, 7)) == 0:
        spans[0] = replace(spans[0], failed=True)
    if draw(st.integers(0, 5)) == 0:
        spans[-1] = replace(spans[-1], links=(trace_id(draw(st.sampled_from((number - 1, number + 1, 1, 11, 9999)))),))
    if shape.crowd:
        spans[0] = replace(spans[0], keys={"order": ("k1",)})
    for saying, at in draw(st.lists(st.tuples(st.sampled_from(SAYINGS), st.integers(0, 5)), max_size=3)):
        spans[at % len(spans)] = replace(spans[at % len(spans)], **saying)
    if shape.clocks and draw(st.booleans()):
        at = draw(st.integers(0, len(spans) - 1))
        spans[at] = _wrong(draw, spans[at])
    return _with_ids(draw, spans, name, shape.ids_known)


def _wrong(draw: Draw, one: OSpan) -> OSpan:
    """A span whose times are not to be believed, or only just."""
    changed: tuple[dict[str, int], ...] = (
        {"record_time": one.end - RULES.max_clock_skew},
        {"record_time": one.end - RULES.max_clock_skew - 1},
        {"record_time": one.end - HOUR},
        {"start": 0},
        {"start": one.end + MINUTE},
    )
    return replace(one, **draw(st.sampled_from(changed)))


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
        if how == 1 and not needed_record_time(corrected(one)):
            one = replace(one, record_time=(one.record_time or 0) + MINUTE)
        elif how == 2:
            one = replace(one, attribute_count=1, failed=not one.failed)
        elif how == 3:
            one = replace(one, end=one.end + SECOND, conversation_ids=one.conversation_ids or ((0, "c0"),))
        copies.append(one)
    return copies


# -- outcomes ----------------------------------------------------------------------------------------------------------


def _outcomes(draw: Draw, spans: Sequence[OSpan], shape: Shape) -> list[OOutcome]:
    found: list[OOutcome] = []
    rich = shape.rich
    if draw(st.integers(0, 3)) == 0:  # all parts of a goal, which chance seldom brings together
        at = corrected(spans[0]).end + draw(moments)
        for name, score in (("accuracy", 2.1), ("effort", draw(st.sampled_from((3, 4, 5))))):
            found.append(outcome(name, at, "evaluation", session_id="c0", data={"name": name, "score": score}))
    if draw(st.integers(0, 2)) == 0:  # the customer answers, or answers twice
        for number in range(draw(st.integers(1, 2))):
            said, at = {"confirmed": draw(st.booleans())}, corrected(spans[0]).end + draw(moments)
            found.append(outcome(f"answer{number}", at, "resolution", session_id="c0", data=said))
    for number in range(draw(st.integers(2 if rich else 0, 5))):
        kind, data = draw(st.sampled_from(KINDS) | st.sampled_from(EVALUATIONS))
        anchor = corrected(draw(st.sampled_from(spans)))
        before = draw(st.sampled_from((0, 0, 0, 1, 5 * MINUTE, 5 * MINUTE + 1)))
        time = (anchor.start - before) if before else anchor.end + draw(moments)
        shared = shape.crowd and draw(st.booleans())
        address = {"correlation": {"order": "k1"}} if shared else _address(draw, anchor, kind)
        said_by = draw(st.sampled_from(SPEAKERS))
        base = outcome(f"e{number}", time, kind, data=data, **said_by, **address)
        if shape.clocks and draw(st.integers(0, 3)) == 0:
            base = replace(base, record_time=time - RULES.max_clock_skew - draw(st.sampled_from((0, 1, HOUR))))
        found.append(base)
        first = rich and not number
        for index, how in enumerate(draw(st.lists(st.integers(0, 4), min_size=int(first), max_size=2))):
            found.append(_again(draw, base, 1 if first and not index else how, anchor))
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
    if len(changed.correlation) > 1 and kind != "evidence":  # every other kind has one key
        changed = replace(changed, correlation={"order": "k2"})
    if how == 1:
        return replace(changed, event_version=base.event_version, data={**data, "note": "other"})
    changed = replace(changed, event_version=draw(st.integers(1, 3)))
    if how == 4:
        bare: dict[str, Any] = {"session_id": None, "ordinal": None, "trace_id": None, "correlation": {}}
        return replace(changed, **{**bare, **_address(draw, anchor, "reopen")})
    return changed
