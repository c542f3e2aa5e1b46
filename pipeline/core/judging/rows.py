"""Verdicts as rows for ClickHouse and as JSON for other systems; the column order is `schemas.rows.TABLES`."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import msgspec

from pipeline.core.timeline import to_text
from schemas.outcome import SESSION_VIA, TRACE_KEY, Attached
from schemas.rows import TABLES
from schemas.segment import LAYERS
from schemas.span import Span
from schemas.verdict import Verdict
from schemas.wire import Row

TIMES = frozenset(
    {"as_of", "start", "end", "claimed_at", "completed_at", "verified_at", "escalated_at", "handoff_at", "reopened_at",
     "confirmed_at", "resolution_failed_at", "passed_at", "failed_at", "deadline",
     "at"}
)  # fmt: skip

_IN_ORDER = {table: itemgetter(*columns) for table, columns in TABLES.items()}


def as_json(verdict: Verdict) -> bytes:
    """The verdict as JSON; times in ISO 8601, null where there is none."""
    return msgspec.json.encode(readable(msgspec.to_builtins(verdict)))


def readable(data: dict[str, Any]) -> dict[str, Any]:
    """Nanoseconds become text; what `evidence` says becomes {value, at}."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in TIMES:
            found[name] = to_text(value) if value else None
        elif name in ("criteria", "evaluations"):
            found[name] = [readable(one) for one in value]
        elif name in ("quality", "failure"):
            found[name] = readable(value) if value is not None else None
        elif name == "evidence":
            found[name] = {key: {"value": one[0], "at": to_text(one[1])} for key, one in value.items()}
        else:
            found[name] = value
    return found


def _of_session(verdict: Verdict) -> dict[str, Any]:
    """The columns that a row of a part of a verdict has of the whole."""
    return {
        "tenant": verdict.tenant,
        "conversation": verdict.conversation,
        "ordinal": verdict.ordinal,
        "version": verdict.version,
        "is_deleted": int(verdict.deleted),
    }


def _row(table: str, values: dict[str, Any]) -> Row:
    return Row(table, list(_IN_ORDER[table](values)))


def verdict_rows(verdict: Verdict, bucket: int, settled: bool, began: int = 0) -> Iterable[Row]:
    """Rows of `verdicts` and of its parts.

    Args:
        bucket: the start of its cohort bucket, ns.
        began: which life of the conversation it belongs to, as in all rows of a conversation.
    """
    values = {name: getattr(verdict, name) for name in Verdict.__struct_fields__}
    values.update(
        is_deleted=int(verdict.deleted),
        bucket=bucket,
        contract_version=verdict.contract,
        completion=verdict.completion.value,
        input_tokens=verdict.tokens[0],
        output_tokens=verdict.tokens[1],
        cached_tokens=verdict.tokens[2],
        settled=int(settled),
        began=began,
    )
    for name in (
        "attributed",
        "escalated",
        "handoff_attempted",
        "reopened",
        "follow_up",
        "refused",
        "invalid",
        "eligible",
        "resolved",
    ):
        values[name] = int(values[name])
    values.update(_quality(verdict))
    for name in ("verified", "confirmed"):
        values[name] = None if values[name] is None else int(values[name])
    for name in ("agents", "models", "tools", "trace_ids", "flags", "subjects", "issues"):
        values[name] = list(values[name])
    yield _row("verdicts", values)
    for evaluation in verdict.quality.evaluations:
        yield _row(
            "evaluations",
            {
                **_of_session(verdict),
                "evaluation": evaluation.name,
                "state": evaluation.state.value,
                **{name: getattr(evaluation, name) for name in ("score", "normal", "label", "layer", "source", "at")},
                "from_agent": int(evaluation.from_agent),
                "contradictions": evaluation.contradictions,
            },
        )
    for one in verdict.criteria:
        yield _row(
            "criteria",
            {
                **_of_session(verdict),
                "criterion": one.id,
                "required": int(one.required),
                "independent": int(one.independent),
                "weight": one.weight,
                "status": one.status.value,
                "reason": one.reason.value,
                "passed_at": one.passed_at,
                "failed_at": one.failed_at,
                "deadline": one.deadline,
                "stage": one.stage,
                "agent": one.agent,
            },
        )


def _quality(verdict: Verdict) -> dict[str, Any]:
    """The columns that say how well it was done, what failed it, and which scenario it plays."""
    quality, failure, trial = verdict.quality, verdict.failure, verdict.trial
    values: dict[str, Any] = {
        name: getattr(quality, name) for name in ("goal_achievement", "coherence", "contradictions", "feedback")
    }
    values |= {layer.value: quality.layers.get(layer.value) for layer in LAYERS}
    values |= {"goal_state": quality.goal_state.value, "coherence_state": quality.coherence_state.value}
    values |= {
        "failure_stage": failure.stage.value if failure is not None else "",
        "failure_cause": failure.cause if failure is not None else "",
        "failure_agent": failure.agent if failure is not None else "",
        "failure_at": failure.at if failure is not None else 0,
        "scenario": trial.scenario if trial is not None else "",
        "trial": trial.trial if trial is not None else "",
    }
    for name in ("name_precision", "name_recall", "argument_precision", "argument_recall"):
        values[f"tool_{name}"] = getattr(trial, name) if trial is not None else None
    return values | {"reliability": trial.reliability if trial is not None else None}


def revision_row(verdict: Verdict, changed: list[str], document: bytes, began: int = 0) -> Row:
    """A row of `revisions`: every one ever published, with its reason."""
    return _row(
        "revisions",
        {
            "tenant": verdict.tenant,
            "conversation": verdict.conversation,
            "ordinal": verdict.ordinal,
            "revision": verdict.revision,
            "version": verdict.version,
            "is_deleted": 0,
            "as_of": verdict.as_of,
            "reason": verdict.reason,
            "changed": msgspec.json.encode(changed).decode(),
            "verdict": document.decode(),
            "began": began,
        },
    )


def outcome_row(record: Attached, version: int, began: int = 0) -> Row:
    one = record.outcome
    return _row(
        "outcomes",
        {
            "tenant": record.tenant,
            "conversation": record.conversation,
            "source": record.source,
            "event_id": record.event_id,
            "via": _way(record.via),
            "version": version,
            "is_deleted": int(one is None),
            "event_version": one.event_version if one else 0,
            "event_time": one.event_time if one else 0,
            "kind": one.kind.value if one else "",
            "data": msgspec.json.encode(one.data if one else {}).decode(),
            "from_agent": int(one.from_agent or one.barred) if one else 0,
            "began": began,
        },
    )


def step_row(conversation: str, span: Span, version: int, began: int = 0, deleted: bool = False) -> Row:
    """A row of `agent_steps`; `deleted`: the span counts no more."""
    return _row(
        "agent_steps",
        {
            "tenant": span.tenant,
            "conversation": conversation,
            "trace_id": span.trace_id.hex(),
            "span_id": span.span_id.hex(),
            "version": version,
            "is_deleted": int(deleted),
            "parent_id": span.parent_id.hex(),
            "start": span.start,
            "end": span.end,
            "kind": span.kind.value,
            "name": span.name,
            "agent": span.agent,
            "tool": span.tool,
            "call_id": span.call_id,
            "model": span.model,
            "failed": int(span.failed),
            "control": span.control.value,
            "input_tokens": span.tokens[0],
            "output_tokens": span.tokens[1],
            "cached_tokens": span.tokens[2],
            "flags": span.flags,
            "service": _service(span),
            "began": began,
        },
    )


def _way(via: tuple[str, str]) -> str:
    """`session`, `trace:<32 hex>`, which is spelled like no key, or `name=value`."""
    if via == SESSION_VIA:
        return via[0]
    return f"trace:{via[1]}" if via[0] == TRACE_KEY else "=".join(via)


def _service(span: Span) -> str:
    """Who sent it, with its version."""
    return " ".join(str(one) for name in ("service.name", "service.version") if (one := span.resource.get(name)))
