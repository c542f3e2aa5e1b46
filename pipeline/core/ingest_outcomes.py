"""Outcome events as they were written to the topic, one or a list, to outcomes of the pipeline.

The rule this file keeps: an event that is not valid says which field and why, and takes no other event with it
(RULES.md 32 to 34).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any

from pydantic import ValidationError

from pipeline.core.ids import is_ours, normalise_id, trace_address
from pipeline.core.otlp.parsing import Fraction
from pipeline.core.otlp.values import canonical_json, flat
from pipeline.core.timeline import from_datetime
from schemas.outcome import PLACE_SHOWN, Outcome, OutcomeEvent, OutcomeKind, unfit
from schemas.span import Value

DEFAULT_TENANT = "default"


class BadOutcome(Exception):
    """The event cannot be used; the text names the field and what is wrong, without content."""


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """What decides about outcomes beside the event.

    Args:
        max_clock_skew: ns that an event may lie ahead of its record.
        agent_sources: sources of agents themselves, in any tenant or (tenant, source): what they say is a claim.
        outcome_sources: kind -> the only sources that it is taken from; what others say of that kind is a claim.
    """

    max_clock_skew: int
    agent_sources: frozenset[str | tuple[str, str]] = frozenset()
    outcome_sources: Mapping[OutcomeKind, frozenset[str]] = field(default_factory=dict)

    def is_agents(self, tenant: str, source: str) -> bool:
        """Whether what it says is an agent's own word: a claim, of which evaluations alone feed anything (rule 40a)."""
        return source in self.agent_sources or (tenant, source) in self.agent_sources

    def bars(self, source: str, kind: OutcomeKind) -> bool:
        """Whether the kind is taken from other sources alone: then it is kept and shown, and feeds nothing."""
        return source not in self.outcome_sources.get(kind, (source,))


def numbers(document: Any) -> Any:
    """The document with plain numbers where the JSON reader kept fractions as they were written."""
    if isinstance(document, Fraction):
        return float(document)
    if isinstance(document, dict):
        return {key: numbers(item) for key, item in document.items()}
    return [numbers(item) for item in document] if isinstance(document, list) else document


def read_outcome(event: Any, record_time: int, rules: OutcomeRules) -> Outcome:
    """The outcome of one event as parsed from JSON.

    Args:
        record_time: when the record was written, ns; 0 or less where that is unknown, then no clock is corrected.

    Raises: BadOutcome
    """
    if (found := unfit(event)) is not None:
        raise BadOutcome(": ".join(filter(None, found)))
    try:
        valid = OutcomeEvent.model_validate(event)
    except ValidationError as error:
        raise BadOutcome("; ".join(_complaint(dict(one)) for one in error.errors()[:3])) from None
    tenant = normalise_id(valid.tenant) or DEFAULT_TENANT
    _finite(valid.data, "data")  # before the dump, which makes them null
    whole = valid.model_copy(update={"tenant": tenant}).model_dump(mode="json")
    event_time, ahead = from_datetime(valid.event_time), False
    if event_time < 0:
        raise BadOutcome("event_time: lies before 1970")
    if record_time > 0 and event_time > record_time + rules.max_clock_skew:
        event_time, ahead = record_time, True
    if event_time >= 2**63:
        raise BadOutcome("event_time: lies too far in the future")
    session = _session(valid)
    trace = trace_address(session) if session else None
    if valid.trace_id is not None:
        trace = bytes.fromhex(valid.trace_id)
    if trace is not None and not any(trace):
        raise BadOutcome("trace_id: is all zeros, which names no trace")
    if trace is not None and valid.ordinal is not None:
        raise BadOutcome("ordinal: goes with a conversation, not with a trace")
    return Outcome(
        tenant=tenant,
        source=valid.source,
        event_id=valid.event_id,
        event_version=valid.event_version,
        event_time=event_time,
        kind=valid.kind,
        session_id="" if trace else session,
        ordinal=valid.ordinal,
        trace_id=trace or b"",
        keys=_keys(valid),
        data=_data(valid.data),
        digest=sha256(canonical_json(whole)).digest(),
        from_agent=(own := rules.is_agents(tenant, valid.source)),
        clock_ahead=ahead,
        barred=not own and rules.bars(valid.source, valid.kind),
    )


def _complaint(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "event"
    return f"{where[:PLACE_SHOWN]}: {str(error['msg'])[:200]}"


def _finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise BadOutcome(f"{where}: is no finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            _finite(item, f"{where}.{key}"[:PLACE_SHOWN])
    elif isinstance(value, list):
        for item in value:
            _finite(item, where)


def _session(event: OutcomeEvent) -> str:
    if event.session_id is None:
        return ""
    session = normalise_id(event.session_id)
    if not session:
        raise BadOutcome("session_id: says nothing (blank, null or no finite number)")
    if is_ours(session):
        raise BadOutcome("session_id: begins with a zero character, as no conversation's id does")
    return session


def _keys(event: OutcomeEvent) -> tuple[tuple[str, str], ...]:
    """The keys that have a value; an event that had keys and has none left names nobody."""
    given = event.correlation or {}
    keys = tuple(sorted((name, text) for name, value in given.items() if (text := normalise_id(value))))
    if given and not keys:
        raise BadOutcome("correlation: no key has a value")
    return keys


def _data(data: dict[str, Any]) -> dict[str, Value]:
    """Flat values; a whole number that goes into no 64 bits is its digits as text."""
    return {name: flat(value) for name, value in data.items()}
