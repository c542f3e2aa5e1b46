"""What the spans of a session say: the variables that expressions may read (RULES.md 23, 24) and usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.core.contracts.book import CompiledContract
from pipeline.core.judging.calls import HANDOFF_NAME, ToolCall, tool_calls
from pipeline.core.judging.views import RunView, TraceView, ended_last, started_first
from pipeline.core.timeline import SECOND
from schemas.span import Kind, Span, Value


def traces_of(runs: Iterable[RunView]) -> list[TraceView]:
    return [trace for run in runs for trace in (*run.traces, *run.idle_traces)]


def state_of(spans: Iterable[Span]) -> dict[str, Value]:
    """Of each state field the non-null value on the span that ended last (rule 24)."""
    state: dict[str, Value] = {}
    for span in sorted((one for one in spans if one.said is not None and one.said.state), key=ended_last):
        assert span.said is not None
        state.update({name: value for name, value in span.said.state.items() if value is not None})
    return state


def resource_of(spans: Iterable[Span]) -> dict[str, Value]:
    """Of each resource attribute the value on the earliest span that has it."""
    found: dict[str, Value] = {}
    for span in sorted(spans, key=started_first):
        for name, value in span.resource.items():
            if value is not None:
                found.setdefault(name, value)
    return found


def first_named(spans: Sequence[Span], name: str, kinds: frozenset[Kind]) -> list[str]:
    """Distinct names by first start."""
    found: dict[str, None] = {}
    for span in spans:
        value = getattr(span, name)
        if value and span.kind in kinds:
            found.setdefault(value)
    return list(found)


def tool_table(calls: Iterable[ToolCall]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for call in calls:
        row = table.setdefault(call.tool, {"calls": 0, "ok": 0, "failed": 0})
        row["calls"] += 1
        row["ok" if call.ok else "failed"] += 1
    return table


EVERYTHING = frozenset({"state", "tools", "resource", "session"})


def variables(
    runs: Sequence[RunView],
    contract: CompiledContract | None,
    spans: Sequence[Span] | None = None,
    wanted: frozenset[str] = EVERYTHING,
) -> dict[str, Any]:
    """`state`, `tools`, `resource` and those fields of `session` that do not need boundaries or claims.

    Args:
        spans: only these of the runs' spans (for 'when did it first hold'); default all.
        wanted: the variables to compute.
    """
    traces = traces_of(runs)
    if spans is None:
        chosen = [span for trace in traces for span in trace.spans]
    else:
        kept = {(span.trace_id, span.span_id) for span in spans}
        touched = {span.trace_id for span in spans}
        chosen = list(spans)
        traces = [_cut(trace, kept) for trace in traces if trace.trace_id in touched]
    found: dict[str, Any] = {}
    if "state" in wanted:
        found["state"] = state_of(chosen)
    if "resource" in wanted:
        found["resource"] = resource_of(chosen)
    if "tools" in wanted or "session" in wanted:
        calls = tool_calls(traces, contract)
        found["tools"] = tool_table(calls)
        if "session" in wanted:
            found["session"] = _session(runs, traces, sorted(chosen, key=started_first), calls)
    return found


def _session(
    runs: Sequence[RunView], traces: Sequence[TraceView], spans: Sequence[Span], calls: Sequence[ToolCall]
) -> dict[str, Any]:
    tripped = [span.said.tripped for span in spans if span.said is not None and span.said.tripped is not None]
    work = [span for span in spans if span.is_work]
    duration = (max(span.end for span in work) - work[0].start) if work else 0
    return {
        "agents": first_named(spans, "agent", frozenset({Kind.AGENT})),
        "tools": _tools(spans),
        "models": first_named(spans, "model", frozenset({Kind.INFERENCE, Kind.EMBEDDING})),
        "runs": len(runs),
        "errors": sum(leaf.failed for trace in traces for leaf in trace.leaves),
        "retries": sum(call.retries for call in calls),
        "guardrails": {"checks": len(tripped), "tripped": sum(tripped)},
        "duration_s": duration / SECOND,
    }


def _tools(spans: Sequence[Span]) -> list[str]:
    """Tools by first start: those that ran, and those that log records say a model asked for."""
    found: dict[str, None] = {}
    for span in spans:
        if span.kind is Kind.TOOL and span.tool:
            found.setdefault(span.tool)
        found.update(dict.fromkeys(name for name in span.wanted if not HANDOFF_NAME.match(name)))
    return list(found)


def _cut(trace: TraceView, kept: set[tuple[bytes, bytes]]) -> TraceView:
    spans = tuple(span for span in trace.spans if (span.trace_id, span.span_id) in kept)
    return TraceView(trace.trace_id, spans, 0, trace.lead)


def distinct_resources(spans: Iterable[Span]) -> list[Mapping[str, Value]]:
    """Each distinct resource once (rule 23: `invalid_when` is evaluated for each)."""
    found: list[Mapping[str, Value]] = []
    for span in spans:
        if span.resource not in found:
            found.append(span.resource)
    return found


def usage_of(calls: Iterable[Span]) -> tuple[int, int, int]:
    """Input, output and cached input tokens of `calls_once` (DESIGN.md section 4, Usage)."""
    total = [0, 0, 0]
    for span in calls:
        for index in range(3):
            total[index] += span.tokens[index]
    return total[0], total[1], total[2]


def cost_of(calls: Iterable[Span]) -> int | None:
    """Billionths of a dollar of `calls_once`; None unless each of them that used tokens tells its cost."""
    costs = [span.cost for span in calls if any(span.tokens)]
    return sum(costs) if costs and all(costs) else None


def calls_once(traces: Iterable[TraceView]) -> list[Span]:
    """Model and embedding spans, each call once.

    A model span with a model span below it and no agent, tool or hand-off between is a wrapper; equal response ids are
    one call.
    """
    found: list[Span] = []
    seen: set[str] = set()
    for trace in traces:
        wrappers: set[bytes] = set()
        for span in trace.spans:
            if span.kind is Kind.INFERENCE:
                for up in trace.ancestors(span):
                    if up.kind in (Kind.AGENT, Kind.TOOL, Kind.HANDOFF):
                        break
                    if up.kind in (Kind.INFERENCE, Kind.EMBEDDING):
                        wrappers.add(up.span_id)
        for span in sorted(trace.spans, key=started_first):
            if span.kind not in (Kind.INFERENCE, Kind.EMBEDDING) or span.span_id in wrappers:
                continue
            if span.response_id:
                if span.response_id in seen:
                    continue
                seen.add(span.response_id)
            found.append(span)
    return found
