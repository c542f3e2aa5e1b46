"""Rules 1 to 6 and 8, and what is read off a span tree: which copies, times, ids and spans count."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from tests.oracle.model import OSettings, OSpan, OTrace

WORK = frozenset({"agent", "tool", "handoff", "inference", "embedding"})
MISSING_IDS = frozenset({"", "null", "None", "undefined"})


def tenant_of(token_tenant: str | None, stated: str | None, configured: str | None) -> str:
    """Rule 2: a token's, else `trueup.tenant`, else the value of the attribute `tenant_from` names."""
    return token_tenant or stated or configured or "default"


def normalised_times(span: OSpan, settings: OSettings) -> OSpan | None:
    """Rule 3; None is a dead letter (a file's span with neither time)."""
    start, end, record, flags = span.start, span.end, span.record_time, set(span.flags)
    if start == 0:
        if record is None:
            if end == 0:
                return None
            start = end
        else:
            start = record
            flags.add("start_from_record")
    if end < start:
        end = start
        if "start_from_record" not in flags:
            flags.add("negative_duration")
    if record is not None and end > record + settings.max_clock_skew:
        start, end = min(start, record), min(end, record)
        flags.add("clamped")
    return replace(span, start=start, end=end, flags=frozenset(flags))


def needed_record_time(span: OSpan) -> bool:
    """Rule 3: its times come from the record."""
    return bool(span.flags & {"clamped", "start_from_record"})


def plain_id(raw: object) -> str | None:
    """Rule 4: trimmed text of an id or key value; numeric and text are one; None if it says nothing."""
    if raw is None:
        return None
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    text = str(raw).strip()
    return None if text in MISSING_IDS else text


def normalised_conversation(raw: object) -> str | None:
    """Rule 4: one id, normalised; None if it counts as missing."""
    text = plain_id(raw)
    if text is None or re.fullmatch(r"trace:[0-9a-fA-F]{32}", text):
        return None
    encoded = text.encode()
    if len(encoded) <= 256:
        return text
    return encoded[:200].decode(errors="ignore") + "~" + hashlib.sha256(encoded).hexdigest()[:16]


def record_hash(span: OSpan) -> str:
    """Rule 1: SHA-256 of the record as canonical JSON, record time left out."""
    fields = asdict(span) | {"record_time": None, "flags": sorted(span.flags)}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()


def copy_that_wins(copies: Sequence[OSpan], settings: OSettings) -> OSpan | None:
    """Rule 1: of all copies of one span the one that counts, its times normalised."""
    if len(copies) == 1:
        return normalised_times(copies[0], settings)
    earliest: dict[str, OSpan] = {}
    for copy in copies:
        content = record_hash(copy)
        known = earliest.get(content)
        if known is None or (copy.record_time or 0) < (known.record_time or 0):
            earliest[content] = copy
    usable = [c for c in (normalised_times(copy, settings) for copy in earliest.values()) if c is not None]

    def rank(span: OSpan) -> tuple[bool, bool, int, int, int, str]:
        has_id = any(normalised_conversation(raw) for _, raw in span.conversation_ids)
        needed = needed_record_time(span)
        earlier = -(span.record_time or 0) if needed else 0
        return (has_id, not needed, earlier, span.end, span.attribute_count, record_hash(span))

    return max(usable, key=rank, default=None)


def spans_that_count(spans: Iterable[OSpan], settings: OSettings, dropped: Counter[str]) -> list[OSpan]:
    """Rule 1 for all spans: one for each (tenant, trace id, span id)."""
    copies: dict[tuple[str, str, str], list[OSpan]] = {}
    for span in spans:
        copies.setdefault((span.tenant, span.trace_id, span.span_id), []).append(span)
    kept = []
    for _, of_one in sorted(copies.items()):
        winner = copy_that_wins(of_one, settings)
        if winner is None:
            dropped["bad_time"] += len(of_one)
            continue
        dropped["duplicate"] += len(of_one) - 1
        kept.append(winner)
    return kept


def traces_of(spans: Iterable[OSpan], settings: OSettings, dropped: Counter[str]) -> list[OTrace]:
    """Rule 8: of each trace the spans with the smallest (start, span id)."""
    by_trace: dict[tuple[str, str], list[OSpan]] = {}
    for span in spans:
        by_trace.setdefault((span.tenant, span.trace_id), []).append(span)
    traces = []
    for (tenant, trace_id), members in sorted(by_trace.items()):
        ordered = sorted(members, key=lambda s: (s.start, s.span_id))
        left_out = len(ordered[settings.max_spans_per_trace :])
        dropped["truncated"] += left_out
        traces.append(OTrace(tenant, trace_id, tuple(ordered[: settings.max_spans_per_trace]), left_out))
    return traces


def depth_of(span: OSpan, trace: OTrace) -> tuple[int, bool]:
    """Rule 4: (depth from a root, whether the span is a root only because its parent is unknown)."""
    by_id = {s.span_id: s for s in trace.spans}
    depth, above = 0, span
    while above.parent_id is not None:
        if above.parent_id not in by_id or in_cycle(above, by_id):
            return (depth, depth == 0)
        depth, above = depth + 1, by_id[above.parent_id]
    return (depth, False)


def in_cycle(span: OSpan, by_id: dict[str, OSpan]) -> bool:
    """Whether a span is its own ancestor."""
    seen: set[str] = set()
    parent = span.parent_id
    while parent is not None and parent in by_id and parent not in seen:
        if parent == span.span_id:
            return True
        seen.add(parent)
        parent = by_id[parent].parent_id
    return False


def nearest_root_first(trace: OTrace) -> list[OSpan]:
    """Rule 4's order: nearest the root, true roots before orphans, then earlier start, smaller span id."""
    return sorted(trace.spans, key=lambda s: (*depth_of(s, trace), s.start, s.span_id))


def conversation_of_trace(trace: OTrace) -> str | None:
    """Rule 4: the id on the span nearest the root, of several on it the one whose key is configured first."""
    for span in nearest_root_first(trace):
        for _, raw in sorted(span.conversation_ids, key=lambda pair: pair[0]):
            found = normalised_conversation(raw)
            if found is not None:
                return found
    return None


def conflicting_ids(trace: OTrace) -> set[str]:
    """Rule 4: the other ids of a trace."""
    ids = {normalised_conversation(raw) for span in trace.spans for _, raw in span.conversation_ids}
    return {i for i in ids if i is not None} - {conversation_of_trace(trace) or ""}


def work_spans(spans: Iterable[OSpan]) -> list[OSpan]:
    """Rule 6: agent, tool, hand-off, inference and embedding spans."""
    return [span for span in spans if span.kind in WORK]


def start_of_trace(trace: OTrace) -> int:
    """Rule 6: the earliest start of its work; without work its earliest span's (rule 5)."""
    return min(span.start for span in work_spans(trace.spans) or trace.spans)


def end_of_trace(trace: OTrace) -> int:
    """Rules 6 and 3: the latest end of its work, of what is not clamped if there is any."""
    work = work_spans(trace.spans) or list(trace.spans)
    return max(span.end for span in [s for s in work if "clamped" not in s.flags] or work)


def ancestors(span: OSpan, trace: OTrace) -> list[OSpan]:
    """The spans above one, nearest first; a cycle ends the walk."""
    by_id = {s.span_id: s for s in trace.spans}
    above: list[OSpan] = []
    parent = span.parent_id
    while parent is not None and parent in by_id and by_id[parent] not in above and parent != span.span_id:
        above.append(by_id[parent])
        parent = by_id[parent].parent_id
    return above


def leaves(traces: Iterable[OTrace]) -> list[OSpan]:
    """RULES.md 2: tool, hand-off and inference spans without a work descendant."""
    found = []
    for trace in traces:
        parents_of_work = {a.span_id for span in work_spans(trace.spans) for a in ancestors(span, trace)}
        found += [
            s for s in trace.spans if s.kind in ("tool", "handoff", "inference") and s.span_id not in parents_of_work
        ]
    return found


def ended_last(spans: Iterable[OSpan]) -> OSpan | None:
    """The last span: it ended last, then started last, then has the greater id."""
    return max(spans, key=lambda s: (s.end, s.start, s.span_id, s.trace_id), default=None)


def really_failed(span: OSpan) -> bool:
    """Rule 19: control-flow exceptions, interrupts among them, are no failure."""
    return span.failed and not span.control_flow and not span.interrupted
