"""Which conversation each trace of a closed set belongs to (RULES.md 1, 4 and 5).

The stages decide this as traces arrive; here all are there, so each chain of links is simply followed to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.core.judging.views import TraceView, view_trace
from schemas.span import Kind, Span

MOST_CANDIDATES = 8
LONGEST_CHAIN = 10_000

Key = tuple[str, bytes]
"""Tenant and trace id."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Traces that belong together. `conversation_id` is empty where no span has one."""

    tenant: str
    conversation_id: str
    traces: tuple[TraceView, ...]


def conversations(spans: Iterable[Span], max_spans: int) -> list[Conversation]:
    """The conversations of these spans, those that begin first first."""
    traces = {key: view_trace(key[1], held, max_spans) for key, held in _by_trace(spans).items()}
    ids = {key: _stated_id(view) for key, view in traces.items()}
    sharing = _first_with(traces, ids)
    nexts = {key: _next(key, traces, ids, sharing) for key in traces if not ids[key]}
    found: dict[tuple[str, str, bytes], list[TraceView]] = {}
    for key, view in traces.items():
        end = _end(key, nexts, traces)
        group = (key[0], ids[end], b"" if ids[end] else end[1])
        found.setdefault(group, []).append(TraceView(view.trace_id, view.spans, view.truncated, lead=end[1]))
    grouped = [
        Conversation(tenant, conversation_id, tuple(sorted(views, key=_age)))
        for (tenant, conversation_id, _), views in found.items()
    ]
    return sorted(grouped, key=lambda one: _age(one.traces[0]))


def _by_trace(spans: Iterable[Span]) -> dict[Key, list[Span]]:
    """Each span once: of copies one with an id, then the later end, then the one with more attributes."""
    best: dict[tuple[str, bytes, bytes], Span] = {}
    for span in spans:
        key = (span.tenant, span.trace_id, span.span_id)
        if key not in best or _worth(span) > _worth(best[key]):
            best[key] = span
    traces: dict[Key, list[Span]] = {}
    for span in best.values():
        traces.setdefault((span.tenant, span.trace_id), []).append(span)
    return traces


def _worth(span: Span) -> tuple[bool, int, int, str]:
    return bool(span.ids), span.end, span.attributes, repr(span)


def _age(view: TraceView) -> tuple[int, bytes]:
    return view.start, view.trace_id


def _stated_id(view: TraceView) -> str:
    return next((span.ids[0] for span in view.from_root if span.ids), "")


def _first_with(traces: Mapping[Key, TraceView], ids: Mapping[Key, str]) -> dict[tuple[str, str], Key]:
    """For each tenant's response id the earliest trace with an id that has it, else the earliest."""
    having: dict[tuple[str, str], set[Key]] = {}
    for key, view in traces.items():
        for span in view.spans:
            if span.response_id and span.kind is not Kind.TOLD:
                having.setdefault((key[0], span.response_id), set()).add(key)
    return {
        response: min(keys, key=lambda other: (not ids[other], _age(traces[other])))
        for response, keys in having.items()
    }


def _next(
    key: Key, traces: Mapping[Key, TraceView], ids: Mapping[Key, str], sharing: Mapping[tuple[str, str], Key]
) -> Key | None:
    """Where a trace without an id leads: what it links to, or shares a response id with."""
    tenant, _ = key
    spans = traces[key].spans
    linked = {(tenant, link) for span in spans for link in span.links}
    linked |= {sharing[tenant, span.response_id] for span in spans if (tenant, span.response_id) in sharing}
    known = [other for other in sorted(linked - {key})[:MOST_CANDIDATES] if other in traces]
    return min(known, key=lambda other: (not ids[other], _age(traces[other])), default=None)


def _end(key: Key, nexts: Mapping[Key, Key | None], traces: Mapping[Key, TraceView]) -> Key:
    """The end of a trace's chain; of a circle, and of one that is too long, its earliest trace."""
    path = [key]
    seen = {key}
    while (following := nexts.get(path[-1])) is not None:
        if following in seen:
            return min(path[path.index(following) :], key=lambda one: _age(traces[one]))
        if len(path) >= LONGEST_CHAIN:
            return min(path, key=lambda one: _age(traces[one]))
        path.append(following)
        seen.add(following)
    return path[-1]
