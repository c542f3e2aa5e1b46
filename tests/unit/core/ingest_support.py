"""Requests and readings for the tests of stage 1: real protobuf messages in, spans, outcomes and letters out."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipeline.core.ingest import Ingest
from pipeline.core.timeline import TimeRules
from schemas.envelope import encode
from schemas.outcome import Outcome
from schemas.span import Span, SpanArrival
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter

TRACE = bytes(range(16))
SPAN = bytes(range(1, 9))
T = 1_760_000_000 * 10**9
PARTITIONS = 4

decode_span = msgspec.msgpack.Decoder(Span).decode
decode_letter = msgspec.json.Decoder(DeadLetter).decode


class Read:
    """What came of records: spans, outcomes, letters in the order they were sent, and counts."""

    def __init__(self, ingest: Ingest) -> None:
        records, counts = ingest.outbox.take()
        self.counts: Counter[tuple[str, str]] = Counter({(str(r), why): n for (r, why), n in counts.items()})
        self.arrivals: list[SpanArrival] = []
        self.outcomes: list[Outcome] = []
        self.letters: list[DeadLetter] = []
        for (topic, partition), batch in records.items():
            for record in batch:
                assert encode(record)
                if topic is Topic.SPANS:
                    assert partition == partition_of(PARTITIONS, record.tenant, record.trace_id)
                    self.arrivals.append(record)
                elif topic is Topic.CORRELATIONS:
                    outcome = record.outcome
                    assert partition == partition_of(PARTITIONS, outcome.tenant, outcome.source, outcome.event_id)
                    self.outcomes.append(outcome)
                else:
                    assert topic is Topic.DEAD_LETTERS
                    self.letters.append(decode_letter(record.value))
        self.spans = [decode_span(arrival.body) for arrival in self.arrivals]

    @property
    def span(self) -> Span:
        assert len(self.spans) == 1, (self.spans, self.letters)
        return self.spans[0]

    @property
    def outcome(self) -> Outcome:
        assert len(self.outcomes) == 1, self.letters
        return self.outcomes[0]

    @property
    def reasons(self) -> list[str]:
        return [letter.reason for letter in self.letters]

    def total(self, result: str) -> int:
        return sum(n for (counted, _), n in self.counts.items() if counted == result)


def ingest(**options: Any) -> Ingest:
    return Ingest(PARTITIONS, TimeRules(), **options)


def read(value: bytes | None, record_time: int = 0, topic: Topic = Topic.OTLP_SPANS, **options: Any) -> Read:
    step = ingest(**options)
    step.on_record(topic, 0, 7, record_time, None, value)
    return Read(step)


def any_value(value: Any) -> dict[str, Any]:
    """A plain value as the OTLP/JSON object."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {} if value is None else {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def json_span(attributes: dict[str, Any] | None = None, /, **fields: Any) -> dict[str, Any]:
    span = {
        "traceId": TRACE.hex(),
        "spanId": SPAN.hex(),
        "startTimeUnixNano": str(T),
        "endTimeUnixNano": str(T + 5),
        "attributes": pairs(attributes or {}),
    }
    return {name: value for name, value in {**span, **fields}.items() if value is not None}


def json_request(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> bytes:
    held = {"attributes": pairs(resource or {})}
    return json.dumps({"resourceSpans": [{"resource": held, "scopeSpans": [{"spans": list(spans)}]}]}).encode()


def _fill(value: Any, plain: Any) -> None:
    if isinstance(plain, bool):
        value.bool_value = plain
    elif isinstance(plain, int):
        value.int_value = plain
    elif isinstance(plain, float):
        value.double_value = plain
    elif isinstance(plain, list):
        value.array_value.SetInParent()
        for item in plain:
            _fill(value.array_value.values.add(), item)
    elif isinstance(plain, dict):
        value.kvlist_value.SetInParent()
        for key, item in plain.items():
            _fill(value.kvlist_value.values.add(key=key).value, item)
    elif plain is not None:
        value.string_value = plain


def proto_request(
    *attributes: dict[str, Any], resource: dict[str, Any] | None = None, **fields: Any
) -> ExportTraceServiceRequest:
    """A request with one span for each of `attributes`; `fields` go to each span."""
    request = ExportTraceServiceRequest()
    part = request.resource_spans.add()
    for key, value in (resource or {}).items():
        _fill(part.resource.attributes.add(key=key).value, value)
    scope = part.scope_spans.add()
    for number, given in enumerate(attributes):
        held = {"start_time_unix_nano": T, "end_time_unix_nano": T + 5, **fields}
        span = scope.spans.add(trace_id=TRACE, span_id=(number + 1).to_bytes(8, "big"), name="secret name", **held)
        for key, value in given.items():
            _fill(span.attributes.add(key=key).value, value)
    return request


def proto(*attributes: dict[str, Any], **fields: Any) -> bytes:
    return bytes(proto_request(*attributes, **fields).SerializeToString())
