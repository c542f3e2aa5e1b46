"""Rules 5 and 7: which conversation a trace belongs to, and which traces are one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.oracle.model import ORun, OSettings, OTrace
from tests.oracle.spans import conversation_of_trace, end_of_trace, start_of_trace, work_spans


@dataclass(frozen=True)
class OConversation:
    """All runs under one conversation id of a tenant, in order of start."""

    tenant: str
    name: str
    attributed: bool
    runs: tuple[ORun, ...]


def earliest(traces: list[OTrace]) -> OTrace:
    """Of several traces the one that starts first, then the smaller id."""
    return min(traces, key=lambda t: (start_of_trace(t), t.trace_id))


def responses_of(trace: OTrace) -> set[str]:
    """The response ids of a trace."""
    return {span.response_id for span in trace.spans if span.response_id}


def traces_of_responses(traces: Mapping[str, OTrace]) -> dict[str, OTrace]:
    """Rule 5: for each response id the earliest trace with an id that has it, else the earliest."""
    sharing: dict[str, list[OTrace]] = {}
    for trace in traces.values():
        for response in responses_of(trace):
            sharing.setdefault(response, []).append(trace)
    return {
        response: earliest([t for t in having if conversation_of_trace(t) is not None] or having)
        for response, having in sharing.items()
    }


def linked_traces(trace: OTrace, answered: Mapping[str, OTrace], settings: OSettings) -> set[str]:
    """Rule 5: its span links, and for each response id the trace that stands for it."""
    linked = {link for span in trace.spans for link in span.links}
    linked |= {answered[response].trace_id for response in responses_of(trace)}
    linked.discard(trace.trace_id)
    return set(sorted(linked)[: settings.most_links])


def leads_to(
    trace: OTrace, traces: Mapping[str, OTrace], answered: Mapping[str, OTrace], settings: OSettings
) -> OTrace | None:
    """Rule 5: the one trace that an id-less trace leads to."""
    if conversation_of_trace(trace) is not None:
        return None
    known = [traces[i] for i in linked_traces(trace, answered, settings) if i in traces]
    with_id = [t for t in known if conversation_of_trace(t) is not None]
    return earliest(with_id or known) if known else None


def end_of_chain(trace: OTrace, following: Mapping[str, OTrace | None], settings: OSettings) -> OTrace:
    """Rule 5: where the chain from a trace ends; a cycle ends at its earliest trace."""
    way = [trace]
    seen = {trace.trace_id}
    while (step := following[way[-1].trace_id]) is not None:
        if step.trace_id in seen:
            return earliest(way[next(i for i, t in enumerate(way) if t.trace_id == step.trace_id) :])
        way.append(step)
        seen.add(step.trace_id)
    return earliest(way) if len(way) > settings.longest_chain else way[-1]


def runs_of_group(group: list[OTrace], settings: OSettings) -> list[ORun]:
    """Rule 7: the runs of a trace with the id-less traces that lead to it."""
    working = sorted((t for t in group if work_spans(t.spans)), key=lambda t: (start_of_trace(t), t.trace_id))
    parts: list[list[OTrace]] = []
    for trace in working:
        if not parts or start_of_trace(trace) > max(map(end_of_trace, parts[-1])) + settings.session_gap:
            parts.append([])
        parts[-1].append(trace)
    begun = [start_of_trace(part[0]) for part in parts]
    ends = [max(map(end_of_trace, part)) for part in parts]
    names = [part[0].trace_id for part in parts]
    for trace in sorted((t for t in group if not work_spans(t.spans)), key=lambda t: t.trace_id):
        before = [i for i, start in enumerate(begun) if start <= start_of_trace(trace)]
        parts[before[-1] if before else 0].append(trace)
    return [
        ORun(name, tuple(part), start, end) for name, part, start, end in zip(names, parts, begun, ends, strict=True)
    ]


def conversations_of(traces: list[OTrace], settings: OSettings, dropped: Counter[str]) -> list[OConversation]:
    """Rules 5 to 7 for every trace; a group without work belongs to no session and is counted."""
    found: list[OConversation] = []
    for tenant in sorted({t.tenant for t in traces}):
        of_tenant = {t.trace_id: t for t in traces if t.tenant == tenant}
        answered = traces_of_responses(of_tenant)
        following = {i: leads_to(t, of_tenant, answered, settings) for i, t in of_tenant.items()}
        groups: dict[str, list[OTrace]] = {}
        for trace in of_tenant.values():
            groups.setdefault(end_of_chain(trace, following, settings).trace_id, []).append(trace)
        runs: dict[tuple[str, bool], list[ORun]] = {}
        for end, group in sorted(groups.items()):
            if not any(work_spans(t.spans) for t in group):
                dropped["no_work"] += sum(len(t.spans) for t in group)
                continue
            stated = conversation_of_trace(of_tenant[end])
            name = (stated, True) if stated is not None else (f"trace:{end}", False)
            runs.setdefault(name, []).extend(runs_of_group(group, settings))
        for (conversation, attributed), members in sorted(runs.items()):
            ordered = tuple(sorted(members, key=lambda r: (r.start, r.name)))
            found.append(OConversation(tenant, conversation, attributed, ordered))
    return found
