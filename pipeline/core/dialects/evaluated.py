"""Evaluations that spans and log records carry become outcomes, as if they had been posted (RULES.md 40).

The rule this file keeps: what they carry is the agent's own word (RULES.md 40a), whoever it names as annotator.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pipeline.core.ingest_outcomes import OutcomeRules, read_outcome
from pipeline.core.timeline import to_datetime
from schemas.outcome import Outcome, OutcomeKind
from schemas.span import Evaluation, Scope, Span

SPANS = "spans"
LOGS = "logs"
"""Sources of outcomes that nobody posted."""


def outcomes_of(span: Span, record_time: int, rules: OutcomeRules) -> list[Outcome]:
    """One outcome for each evaluation: about a session to its conversation, if the span knows it, else to the trace."""
    found = []
    for index, one in enumerate(span.said.evaluations if span.said is not None else ()):
        event_id = f"{span.trace_id.hex()}/{span.span_id.hex()}/{index}"
        address = {"trace_id": span.trace_id.hex()}
        if one.scope is Scope.SESSION and span.ids:
            address = {"session_id": span.ids[0]}
        found.append(outcome_of(one, SPANS, event_id, span.tenant, address, record_time, rules))
    return found


def outcome_of(
    one: Evaluation,
    source: str,
    event_id: str,
    tenant: str,
    address: dict[str, str],
    record_time: int,
    rules: OutcomeRules,
    about: dict[str, str] | None = None,
) -> Outcome:
    """
    Args:
        address: the field of the event that says whom it reaches.
        about: more of its data.
    """
    data: dict[str, Any] = {"name": one.name, "score": one.score, "label": one.label or None, "scope": one.scope.value}
    data |= {"annotator": one.annotator or None, "state": "scored" if one.score is not None or one.label else None}
    event = {
        "event_id": event_id,
        "event_time": to_datetime(one.time).isoformat(),
        "source": source,
        "kind": OutcomeKind.EVALUATION,
        "tenant": tenant,
        "data": {name: value for name, value in (data | (about or {})).items() if value is not None},
        **address,
    }
    return replace(read_outcome(event, record_time, rules), from_agent=True)
