"""Contracts and outcomes as INTERFACES.md writes them (parsed YAML or JSON), as the oracle takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.oracle.model import DAY, HOUR, MINUTE, SECOND, OContract, OCriterion, OOutcome

Document = Mapping[str, Any]
UNITS = {"ms": SECOND // 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration_of(text: str) -> int:
    """`72h`, `30m`, `5 s`: nanoseconds."""
    found = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    return int(found[1]) * UNITS[found[2]]


def moment_of(value: str | date | datetime) -> int:
    """A time of a document in nanoseconds since the epoch; without a zone it is UTC."""
    moment = datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1) * 1000


def criterion_of(document: Document) -> OCriterion:
    """One item of `criteria`."""
    deadline = document.get("deadline")
    return OCriterion(
        id=document["id"],
        check=document["check"],
        fails_when=document.get("fails_when"),
        applies=document.get("applies"),
        trust=document.get("trust", "any"),
        deadline=None if deadline is None else duration_of(deadline),
        weight=float(document.get("weight", 1)),
        required=document.get("required", True),
        stage=document.get("stage"),
        agent=document.get("agent"),
    )


def expected_value(value: object) -> str | None:
    """One spelling of what an argument must be; None where any value will do."""
    if value is None or (isinstance(value, str) and value.startswith("{") and value.endswith("}")):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def contract_of(document: Document) -> OContract:
    """One contract file, parsed."""

    def window(name: str) -> int | None:
        return duration_of(document[name]) if document.get(name) is not None else None

    def names(of: str, which: str) -> tuple[str, ...]:
        found: Sequence[str] = (document.get(of) or {}).get(which) or ()
        return tuple(found)

    since = document.get("effective_from")
    parts: Mapping[str, Document] = document.get("goal_achievement") or {}
    return OContract(
        family=document["family"],
        version=document["version"],
        effective_from=None if since is None else moment_of(since),
        applies_when=document.get("applies_when"),
        criteria=tuple(map(criterion_of, document.get("criteria") or ())),
        goal_achievement={name: (float(part["max"]), float(part["weight"])) for name, part in parts.items()},
        expected={
            one.get("scenario") or "": tuple(
                (call["tool"], {name: expected_value(value) for name, value in (call.get("arguments") or {}).items()})
                for call in one["calls"]
            )
            for one in document.get("expected_tool_calls") or ()
        },
        claimed_when=document.get("claimed_when"),
        assume_claim=document.get("assume_claim", True),
        escalated_tools=names("escalated_when", "tools"),
        escalated_handoffs=names("escalated_when", "handoffs"),
        approval_tools=names("approval_when", "tools"),
        refused_when=document.get("refused_when"),
        invalid_when=document.get("invalid_when"),
        reopen_window=window("reopen_window"),
        resume_window=window("resume_window"),
        closing_grace=window("closing_grace"),
        wait_window=window("wait_window"),
    )


def outcome_of(event: Document, record_time: int | None = None, from_agent: bool = False) -> OOutcome:
    """One outcome event, parsed."""
    return OOutcome(
        source=event["source"],
        event_id=event["event_id"],
        event_time=moment_of(event["event_time"]),
        kind=event["kind"],
        tenant=event.get("tenant") or "default",
        event_version=event.get("event_version", 1),
        record_time=record_time,
        session_id=event.get("session_id"),
        ordinal=event.get("ordinal"),
        trace_id=event.get("trace_id"),
        correlation=event.get("correlation") or {},
        data=event.get("data") or {},
        from_agent=from_agent,
    )
