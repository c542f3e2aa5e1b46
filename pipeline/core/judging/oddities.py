"""What is odd about a session, as flags of its verdict: clocks, ids, limits, and whom it served."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pipeline.core.judging.views import TraceView
from schemas.span import SpanFlag

TRUNCATED = "truncated"
"""A trace has more spans than are kept (RULES.md 8)."""
CONFLICTING_IDS = "conflicting_ids"
"""A trace has several conversation ids (RULES.md 4)."""
MISSING_PARENTS = "missing_parents"
"""A span names a parent that has not come: sampled out, never exported, or still under way."""
SEVERAL_SUBJECTS = "several_subjects"
"""It served more than one: one conversation id for all users, most often."""


def flags_of(traces: Iterable[TraceView], subjects: Collection[str]) -> tuple[str, ...]:
    """The flags, sorted; those of spans by their names."""
    found: set[str] = {SEVERAL_SUBJECTS} if len(subjects) > 1 else set()
    bits = 0
    for trace in traces:
        ids: set[str] = set()
        for span in trace.spans:
            bits |= span.flags
            ids.update(span.ids)
            if span.parent_id and span.parent_id not in trace.by_id:
                found.add(MISSING_PARENTS)
        if len(ids) > 1:
            found.add(CONFLICTING_IDS)
        if trace.truncated:
            found.add(TRUNCATED)
    found.update(str(flag.name).lower() for flag in SpanFlag(bits))
    return tuple(sorted(found))


def subjects_of(traces: Iterable[TraceView]) -> frozenset[str]:
    """Whom they serve."""
    return frozenset(
        who for trace in traces for span in trace.spans if span.said is not None for who in span.said.subjects
    )
