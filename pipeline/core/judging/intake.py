"""What a record changes in a conversation: upserts by stamp, so that order and repeats do not matter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.core.judging.life import begin
from pipeline.core.judging.state import About, Conversation, FreshSpan, HeldOutcome, HeldTrace, Input
from schemas.outcome import Attached
from schemas.span import TraceGone, TraceSpans


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a record.

    Args:
        cause: for the reason of the next revision; empty where nothing is news.
        about: which input that is.
        fresh: spans that were not known, or of which a better copy came.
        repeated: spans of which a copy was known.
    """

    cause: str = ""
    fresh: tuple[FreshSpan, ...] = ()
    repeated: int = 0
    about: About | None = None


def take_spans(conversation: Conversation, record: TraceSpans, watermark: int) -> Taken | None:
    """Add spans of a trace; None when the trace has meanwhile gone elsewhere."""
    begin(conversation, record)
    held = conversation.traces.get(record.trace_id)
    if held is None:
        held = conversation.traces[record.trace_id] = HeldTrace(record.stamp, False, {})
    elif held.gone and record.stamp <= held.stamp:
        return None
    if record.stamp >= held.stamp and record.lead != held.lead:
        held.lead = record.lead
    held.stamp, held.gone = max(held.stamp, record.stamp), False
    fresh: list[FreshSpan] = []
    repeated = 0
    for span_id, record_time, body in record.spans:
        before = held.spans.get(span_id)
        repeated += before is not None
        if before is not None and before[1] == body:
            held.spans[span_id] = (min(record_time, before[0]), body)
            continue
        held.spans[span_id] = (record_time, body)  # stage 2 chose the better copy (rule 1)
        fresh.append(FreshSpan(record.trace_id, span_id, before, watermark))
    trace_id = record.trace_id.hex()
    return Taken(f"spans of trace {trace_id}" if fresh else "", tuple(fresh), repeated, About(Input.TRACE, trace_id))


def drop_trace(conversation: Conversation, record: TraceGone) -> Taken | None:
    """Take a trace away; None when it has come (back) here since."""
    held = conversation.traces.get(record.trace_id)
    if held is not None and record.stamp < held.stamp:
        return None
    conversation.traces[record.trace_id] = HeldTrace(record.stamp, True, {})
    moved = held is not None and not held.gone
    trace_id = record.trace_id.hex()
    cause = f"trace {trace_id} moved to another conversation" if moved else ""
    return Taken(cause, about=About(Input.TRACE, trace_id))


def take_outcome(conversation: Conversation, record: Attached, had: Iterable[int] = ()) -> Taken | None:
    """Attach, correct or withdraw an outcome; None when a later stamp was heard by this way.

    Args:
        had: the places of the sessions that have it by this way until now.
    """
    begin(conversation, record)
    held = conversation.outcomes.setdefault(f"{record.source}\0{record.event_id}", HeldOutcome([]))
    before = None
    for index, (via, stamp, content) in enumerate(held.ways):
        if via == record.via:
            if record.stamp < stamp:
                return None
            before = content
            held.ways[index] = (record.via, record.stamp, record.outcome)
            break
    else:
        held.ways.append((record.via, record.stamp, record.outcome))
    held.reached = None  # whoever sent it is answered
    after = record.outcome
    if (after and after.order) == (before and before.order):
        return Taken()
    what = f"{record.source} {record.event_id}"
    about = About(Input.OUTCOME, f"{record.source}\0{record.event_id}", tuple(sorted(had)))
    if after is None:
        return Taken(f"outcome withdrawn: {what}", about=about)
    return Taken(f"outcome{' corrected' if before is not None else ''}: {after.kind.value} {what}", about=about)
