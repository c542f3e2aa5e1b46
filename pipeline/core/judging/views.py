"""Traces and runs as the rules look at them (RULES.md 3-8, 13, 17-19).

A view is computed from a trace's spans alone, whatever order they came in, and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.core.contracts.book import CompiledContract
from pipeline.core.judging.told import limited, with_told
from schemas.span import Control, Kind, Span, SpanFlag

ANSWERED = frozenset({"stop", "end_turn"})
LEAVES = frozenset({Kind.TOOL, Kind.HANDOFF, Kind.INFERENCE})
CALLS = frozenset({Kind.TOOL, Kind.HANDOFF})


def ended_last(span: Span) -> tuple[int, int, bytes]:
    """Order of 'the span that ended last (then started last, then the greater id)' (rule 24)."""
    return span.end, span.start, span.span_id


def started_first(span: Span) -> tuple[int, bytes]:
    return span.start, span.span_id


def root_order(spans: Iterable[Span]) -> list[Span]:
    """Nearest the root first (rule 4): true roots, then spans whose parent is unknown, then by depth, start, span id.

    A circle of parents has no root: its spans count as spans of an unknown parent, what hangs below them does not.
    """
    by_id = {span.span_id: span for span in spans}
    depths: dict[bytes, int] = {}
    for span in by_id.values():
        path: dict[bytes, None] = {}
        one: Span | None = span
        while one is not None and one.span_id not in depths and one.span_id not in path:
            path[one.span_id] = None
            one = by_id.get(one.parent_id) if one.parent_id else None
        circle = one.span_id if one is not None and one.span_id in path else None
        above = -1 if one is None or circle is not None else depths[one.span_id]
        inside = circle is not None
        for span_id in reversed(path):
            above = 0 if inside else above + 1
            depths[span_id] = above
            inside = inside and span_id != circle
    orphans = {one.span_id for one in by_id.values() if one.parent_id and depths[one.span_id] == 0}
    return sorted(by_id.values(), key=lambda one: (depths[one.span_id], one.span_id in orphans, one.start, one.span_id))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One outermost span of a tool, and what the spans of that tool below it say."""

    span: Span
    failed: bool
    interrupted: bool


@dataclass(frozen=True, slots=False)
class TraceView:
    """One trace: its kept spans (rule 8), work, time, and what it states."""

    trace_id: bytes
    spans: tuple[Span, ...]
    truncated: int = 0
    lead: bytes = b""

    @property
    def leads_to(self) -> bytes:
        """The trace at which the chain of its links ends (rule 5); itself, if it follows none."""
        return self.lead or self.trace_id

    @cached_property
    def by_id(self) -> dict[bytes, Span]:
        return {span.span_id: span for span in self.spans}

    @cached_property
    def work(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.is_work)

    @cached_property
    def start(self) -> int:
        return min(span.start for span in self.work or self.spans)

    @cached_property
    def end(self) -> int:
        """The latest end of its work; a span whose clock ran ahead counts only where no other can say (rule 3)."""
        timed = self.work or self.spans
        sound = [span.end for span in timed if not span.flags & SpanFlag.CLAMPED]
        return max(sound or [span.end for span in timed])

    @cached_property
    def from_root(self) -> list[Span]:
        return root_order(self.spans)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The stated family, nearest the root; of an array the first (rule 13)."""
        for span in self.from_root:
            if span.said is not None and span.said.families:
                return (span.said.families[0],)
        return ()

    @cached_property
    def covered(self) -> frozenset[bytes]:
        """Spans with a work descendant."""
        found: set[bytes] = set()
        for span in self.work:
            parent = self.by_id.get(span.parent_id)
            while parent is not None and parent.span_id not in found and parent.span_id != span.span_id:
                found.add(parent.span_id)
                parent = self.by_id.get(parent.parent_id)
        return frozenset(found)

    @cached_property
    def leaves(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind in LEAVES and span.span_id not in self.covered)

    def ancestors(self, span: Span) -> Iterable[Span]:
        seen = {span.span_id}
        parent = self.by_id.get(span.parent_id)
        while parent is not None and parent.span_id not in seen:
            yield parent
            seen.add(parent.span_id)
            parent = self.by_id.get(parent.parent_id)

    @cached_property
    def outermost_calls(self) -> tuple[Span, ...]:
        """Tool and hand-off spans without one above them that is of the same call, by start.

        A request that waits for an approval is no call yet.
        """
        calls = [one for one in self.spans if one.kind in CALLS and not one.requested]
        found = [one for one in calls if not any(_are_one(up, one) for up in self.ancestors(one))]
        return tuple(sorted(found, key=started_first))

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """The outermost tool and hand-off spans, each with what is nested in it."""
        found = []
        for span in self.outermost_calls:
            nested = self.nested(span)
            failed = any(one.failed for one in nested)
            interrupted = not failed and any(one.control is Control.INTERRUPT for one in nested)
            found.append(Attempt(span, failed, interrupted))
        return tuple(found)

    def nested(self, outer: Span) -> list[Span]:
        """`outer` and the spans of the same call below it."""
        inside = [outer]
        for span in self.spans:
            same = span is not outer and _are_one(outer, span)
            if same and any(up.span_id == outer.span_id for up in self.ancestors(span)):
                inside.append(span)
        return inside


def _are_one(outer: Span, inner: Span) -> bool:
    """Whether a call within another one is the same once more: of its kind and tool, and to nobody else."""
    alike = inner.kind is outer.kind and inner.tool == outer.tool
    return alike and inner.handoff_to in ("", outer.handoff_to or inner.handoff_to)


def view_trace(trace_id: bytes, spans: Iterable[Span], most: int, lead: bytes = b"") -> TraceView:
    """The trace with the `most` spans of smallest (start, span id), completed by what log records tell of them."""
    counted, left_out = limited(sorted(spans, key=started_first), most)
    return TraceView(trace_id, tuple(with_told(counted)), left_out, lead)


@dataclass(frozen=True, slots=False)
class RunView:
    """One run: the working traces of one go, and traces without work that go with it. `start`, `end` in ns."""

    traces: tuple[TraceView, ...]
    idle_traces: tuple[TraceView, ...] = field(default=())

    @cached_property
    def start(self) -> int:
        return min(trace.start for trace in self.traces)

    @cached_property
    def end(self) -> int:
        return max(trace.end for trace in self.traces)

    @cached_property
    def trace_id(self) -> bytes:
        return min(self.traces, key=lambda trace: (trace.start, trace.trace_id)).trace_id

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        return tuple(span for trace in (*self.traces, *self.idle_traces) for span in trace.spans)

    @cached_property
    def leaves(self) -> tuple[Span, ...]:
        return tuple(leaf for trace in self.traces for leaf in trace.leaves)

    @cached_property
    def stated_family(self) -> str:
        """Several in one run: the earliest trace's (rule 13)."""
        for trace in sorted((*self.traces, *self.idle_traces), key=lambda one: (one.start, one.trace_id)):
            if trace.families:
                return trace.families[0]
        return ""

    @cached_property
    def last_leaf(self) -> Span | None:
        return max(self.leaves, key=ended_last, default=None)

    @cached_property
    def first_leaf(self) -> Span | None:
        return min(self.leaves, key=started_first, default=None)

    @cached_property
    def has_model(self) -> bool:
        return any(span.kind is Kind.INFERENCE for span in self.spans)

    @cached_property
    def ended_in_known_answer(self) -> bool:
        last = self.last_leaf
        return last is not None and last.kind is Kind.INFERENCE and bool(ANSWERED & set(last.finish))

    @cached_property
    def interrupts(self) -> tuple[Span, ...]:
        """The interrupted spans after whose end no leaf starts (rule 17)."""
        latest = max((leaf.start for leaf in self.leaves), default=0)
        return tuple(span for span in self.spans if span.control is Control.INTERRUPT and latest <= span.end)

    @cached_property
    def open_calls(self) -> bool:
        """Fewer outermost tool and hand-off spans started since its last model span than that asked for."""
        last = max((span for span in self.spans if span.kind is Kind.INFERENCE), key=ended_last, default=None)
        if last is None or last.asked <= 0:
            return False  # where it does not say how many it asked for: none
        begun = sum(call.start >= last.start for trace in self.traces for call in trace.outermost_calls)
        return begun < last.asked

    @property
    def waits(self) -> bool:
        return bool(self.interrupts) or self.open_calls

    def waits_for_person(self, contract: CompiledContract | None) -> bool:
        """An open tool approval waits for a person; an interrupt for the customer, unless it stops an approval tool."""
        approval = contract.approval_tools if contract is not None else frozenset()
        return self.open_calls or any(one.kind is Kind.TOOL and one.tool in approval for one in self.interrupts)

    @cached_property
    def error_at_end(self) -> bool:
        """Rule 19, for this run."""
        last = self.last_leaf
        if last is not None and last.failed:
            return True
        trace = max(self.traces, key=lambda one: (one.end, one.start, one.trace_id))
        root = trace.from_root[0]
        return root.failed and root.is_work

    @cached_property
    def is_answer(self) -> bool:
        """Rule 18."""
        if self.waits or self.error_at_end:
            return False
        last = self.last_leaf
        if last is not None:
            return last.kind is Kind.INFERENCE
        return all(span.kind is Kind.AGENT for trace in self.traces for span in trace.work)


def runs_of(traces: Iterable[TraceView], session_gap: int) -> list[RunView]:
    """The runs of a conversation in order of start (rule 7); empty when there is no work at all.

    A run is a trace with the id-less traces that lead to it; one that starts more than `session_gap` after the latest
    end so far begins a run of its own. A trace without work goes with the run of its group begun last before it; a
    group without work belongs to no session (rule 6).
    """
    groups: dict[bytes, list[TraceView]] = {}
    for view in sorted(traces, key=lambda one: (one.start, one.trace_id)):
        groups.setdefault(view.leads_to, []).append(view)
    found = [run for group in groups.values() for run in _runs_of_group(group, session_gap)]
    return sorted(found, key=lambda run: (run.start, run.trace_id))


def _runs_of_group(group: list[TraceView], session_gap: int) -> list[RunView]:
    parts: list[list[TraceView]] = []
    latest = 0
    for view in group:
        if view.work:
            if not parts or view.start - latest > session_gap:
                parts.append([])
            latest = max(latest, view.end) if parts[-1] else view.end
            parts[-1].append(view)
    idle: list[list[TraceView]] = [[] for _ in parts]
    for view in group:
        if parts and not view.work:
            begun = [index for index, part in enumerate(parts) if part[0].start <= view.start]
            idle[begun[-1] if begun else 0].append(view)
    return [RunView(tuple(part), tuple(rest)) for part, rest in zip(parts, idle, strict=True)]
