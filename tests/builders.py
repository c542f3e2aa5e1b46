"""Spans, traces, sessions and outcomes for tests, each described once.

The rule this file keeps: the description is the oracle's record; what the pipeline reads is derived from it, so that
both are given exactly the same. Times are nanoseconds; `T0` is a whole bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import load
from pipeline.core.ingest_times import NO_TIME, span_times
from pipeline.core.timeline import TimeRules
from schemas.outcome import Outcome, OutcomeArrival, OutcomeKind
from schemas.span import Control, Kind, Said, Span, SpanArrival
from tests.oracle.loading import contract_of
from tests.oracle.model import DAY, MINUTE, SECOND, OContract, OOutcome, OSettings, OSpan
from tests.oracle.outcomes import event_hash, keys_of_outcome
from tests.oracle.spans import normalised_conversation, plain_id, really_failed, work_spans

T0 = 20_000 * DAY
SKEW = TimeRules().max_clock_skew
NOT_NARROWED: Mapping[str, frozenset[str]] = MappingProxyType({})

_encode = msgspec.msgpack.Encoder().encode


def settings(rules: TimeRules) -> OSettings:
    """The oracle's settings with the limits of `rules`."""
    return OSettings(**{name: getattr(rules, name) for name in TimeRules.__slots__ if hasattr(OSettings, name)})


def contracts(*texts: str, rules: TimeRules | None = None) -> tuple[ContractBook, list[OContract]]:
    """The contracts of some YAML texts for both sides."""
    book = load([(f"contract-{index}.yaml", text) for index, text in enumerate(texts)], rules or TimeRules())
    return book, [contract_of(yaml.safe_load(text)) for text in texts]


# -- spans -------------------------------------------------------------------------------------------------------------


def trace_id(number: int) -> str:
    return f"{number:032x}"


def span_id(number: int) -> str:
    return f"{number:016x}"


def span(
    trace: int, number: int, start: int, end: int, kind: str = "agent", parent: int | None = None, **more: Any
) -> OSpan:
    """One span; `id="c"` gives it a conversation id. `number` must differ between all spans of a test."""
    conversation = more.pop("id", None)
    if conversation is not None:
        more["conversation_ids"] = ((0, conversation),)
    subject = more.get("tool") or more.get("handoff_target") or more.get("model") or more.get("agent") or ""
    more.setdefault("name", f"{kind} {subject}".strip())
    more.setdefault("record_time", end + SECOND)
    above = None if parent is None else span_id(parent)
    return OSpan(trace_id(trace), span_id(number), start, end, kind=kind, parent_id=above, **more)


def trace(
    number: int,
    start: int,
    conversation: str | None = "c",
    seconds: int = 10,
    tool: str | None = None,
    finish: str = "stop",
    **more: Any,
) -> list[OSpan]:
    """A run: an agent span over an optional tool span and a model span that answers; `more` goes on the agent span."""
    first, end = number * 100, start + seconds * SECOND
    middle = start + seconds * SECOND // 2
    spans = [span(number, first, start, end, "agent", agent="helper", id=conversation, **more)]
    if tool is not None:
        spans.append(span(number, first + 1, start, middle, "tool", first, tool=tool))
    spans.append(span(number, first + 2, middle, end, "inference", first, finish_reasons=(finish,)))
    return spans


def session(number: int, start: int, turns: int = 2, conversation: str | None = "c", **more: Any) -> list[OSpan]:
    """Some runs a minute apart, the traces numbered from `number`; `more` goes on the first run's agent span."""
    spans = trace(number, start, conversation, **more)
    for turn in range(1, turns):
        spans += trace(number + turn, start + turn * MINUTE, conversation)
    return spans


def arrival(one: OSpan) -> SpanArrival:
    """The span as stage 1 sends it: its times are corrected there, by its record's."""
    start, end, time_flags = span_times(one.start, one.end, one.record_time or 0, SKEW)
    assert time_flags != NO_TIME, "no span but a dead letter"
    ids = (normalised_conversation(raw) for _, raw in sorted(one.conversation_ids, key=lambda pair: pair[0]))
    keys = _keys(one)
    said = Said(
        families=one.family,
        claim=one.claim or "",
        state=dict(one.state),  # type: ignore[arg-type]
        keys=keys,
        issues=_texts(one.issues),
        subjects=_texts((one.subject,) if isinstance(one.subject, str) else one.subject or ()),
        tripped=one.guardrail_tripped,
        scenario=one.scenario or "",
        trial=one.trial or "",
        arguments=None if one.arguments is None else dict(one.arguments),
    )
    slim = Span(
        tenant=one.tenant,
        trace_id=bytes.fromhex(one.trace_id),
        span_id=bytes.fromhex(one.span_id),
        parent_id=bytes.fromhex(one.parent_id or ""),
        start=start,
        end=end,
        kind=Kind(one.kind),
        name=one.name,
        failed=really_failed(one),
        control=Control.INTERRUPT if one.interrupted else Control.HANDOFF if one.control_flow else Control.NONE,
        flags=time_flags,
        attributes=one.attribute_count,
        ids=tuple(dict.fromkeys(text for text in ids if text is not None)),
        agent=one.agent or "",
        tool=one.tool or "",
        call_id=one.call_id or "",
        handoff_to=one.handoff_target or "",
        model=one.model or one.requested_model or "",
        response_id=one.response_id or "",
        finish=one.finish_reasons,
        asked=-1 if one.asked_tools is None else one.asked_tools,
        tokens=(one.input_tokens, one.output_tokens, one.cached_tokens),
        resource=dict(one.resource),  # type: ignore[arg-type]
        links=tuple(sorted({bytes.fromhex(link) for link in one.links} - {bytes.fromhex(one.trace_id)})),
        said=None if said == Said() else said,
    )
    return SpanArrival(
        slim.tenant,
        slim.trace_id,
        slim.span_id,
        slim.parent_id,
        slim.start,
        slim.end,
        one.record_time or 0,
        slim.ids,
        bool(work_spans([one])),
        tuple(sorted((name, value) for name, values in keys.items() for value in values)),
        _encode(slim),
        slim.links,
        slim.response_id,
    )


def _texts(values: Iterable[str | int | float | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for raw in values if (text := plain_id(raw))))


def _keys(one: OSpan) -> dict[str, tuple[str, ...]]:
    found = {name: _texts(values) for name, values in one.keys.items()}
    return {name: values for name, values in found.items() if values}


# -- outcomes ----------------------------------------------------------------------------------------------------------


def outcome(event_id: str, event_time: int, kind: str = "evidence", **more: Any) -> OOutcome:
    """One outcome of the source `crm`; to conversation `c` unless it is addressed otherwise."""
    if kind != "retract" and not {"session_id", "trace_id", "correlation"} & set(more):
        more["session_id"] = "c"
    more.setdefault("record_time", event_time + SECOND)
    return OOutcome(more.pop("source", "crm"), event_id, event_time, kind, **more)


def outcome_arrival(one: OOutcome, sources: Mapping[str, frozenset[str]] = NOT_NARROWED) -> OutcomeArrival:
    """The outcome as stage 1 sends it; equal versions are decided by the oracle's hash on both sides.

    Args:
        sources: kind -> the only sources that may say it.
    """
    ahead = one.record_time is not None and one.event_time > one.record_time + SKEW
    address = plain_id(one.session_id) if one.session_id is not None else ""
    trace = one.trace_id or ""
    if address and address.startswith("trace:") and normalised_conversation(address) is None:
        address, trace = "", address.removeprefix("trace:")
    inside = Outcome(
        tenant=one.tenant,
        source=one.source,
        event_id=one.event_id,
        event_version=one.event_version,
        event_time=(one.record_time or 0) if ahead else one.event_time,
        kind=OutcomeKind(one.kind),
        session_id=address or "",
        ordinal=one.ordinal,
        trace_id=bytes.fromhex(trace),
        keys=tuple(sorted(keys_of_outcome(one))),
        data=dict(one.data),  # type: ignore[arg-type]
        digest=bytes.fromhex(event_hash(one)),
        from_agent=one.from_agent,
        clock_ahead=ahead,
        barred=not one.from_agent and one.source not in sources.get(one.kind, (one.source,)),
    )
    return OutcomeArrival(inside, one.record_time or 0)
