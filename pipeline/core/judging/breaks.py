"""What went wrong in a session and stayed so, as its spans tell it: the candidates for why it is incomplete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.core.judging.calls import ToolCall
from pipeline.core.judging.summary import Break
from pipeline.core.judging.views import RunView, TraceView
from schemas.span import Kind, Span


def breaks_of(traces: Iterable[TraceView], calls: Sequence[ToolCall], last: RunView) -> tuple[Break, ...]:
    """Tools whose last call failed, and an error at the end that no tool made, by time.

    Args:
        calls: by start; `last`: the run that ended last.
    """
    latest: dict[str, ToolCall] = {}
    for call in calls:
        latest[call.tool] = call
    views = {view.trace_id: view for view in traces}
    found = [
        Break("tool", call.tool, _agent_above(views.get(call.span.trace_id), call.span), call.end)
        for call in latest.values()
        if not call.ok
    ]
    return tuple(sorted([*found, *_of_end(last)], key=lambda one: (one.at, one.what, one.name)))


def _of_end(run: RunView) -> list[Break]:
    """Rule 19, where no tool made it: the model did not answer, or the run itself broke."""
    if not run.error_at_end:
        return []
    leaf = run.last_leaf
    if leaf is not None and leaf.failed:
        if leaf.kind is not Kind.INFERENCE:
            return []
        view = next((one for one in run.traces if one.trace_id == leaf.trace_id), None)
        return [Break("model", leaf.model, _agent_above(view, leaf), leaf.end)]
    root = max(run.traces, key=lambda one: (one.end, one.start, one.trace_id)).from_root[0]
    return [Break("run", "", root.agent, root.end)]


def _agent_above(view: TraceView | None, span: Span) -> str:
    """The agent that a span names, else the nearest above it."""
    if span.agent or view is None:
        return span.agent
    return next((one.agent for one in view.ancestors(span) if one.agent), "")
