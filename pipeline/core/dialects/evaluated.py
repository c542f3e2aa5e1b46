"""Evaluations that spans carry become outcomes, as if they had been posted (RULES.md 40).

The rule this file keeps: what a span carries is the agent's own word (RULES.md 40a), whoever it names as annotator.
"""

from __future__ import annotations

from msgspec.structs import replace

from pipeline.core.ingest_outcomes import OutcomeRules, read_outcome
from pipeline.core.timeline import to_datetime
from schemas.outcome import Outcome, OutcomeKind
from schemas.span import Scope, Span

SOURCE = "spans"


def outcomes_of(span: Span, record_time: int, rules: OutcomeRules) -> list[Outcome]:
    """One outcome for each evaluation: about a session to its conversation, if the span knows it, else to the trace."""
    found = []
    for index, one in enumerate(span.said.evaluations if span.said is not None else ()):
        data = {"name": one.name, "score": one.score, "label": one.label or None, "scope": one.scope.value}
        data |= {"annotator": one.annotator or None, "state": "scored" if one.score is not None or one.label else None}
        event = {
            "event_id": f"{span.trace_id.hex()}/{span.span_id.hex()}/{index}",
            "event_time": to_datetime(one.time).isoformat(),
            "source": SOURCE,
            "kind": OutcomeKind.EVALUATION,
            "tenant": span.tenant,
            "data": {name: value for name, value in data.items() if value is not None},
        }
        if one.scope is Scope.SESSION and span.ids:
            event["session_id"] = span.ids[0]
        else:
            event["trace_id"] = span.trace_id.hex()
        found.append(replace(read_outcome(event, record_time, rules), from_agent=True))
    return found
