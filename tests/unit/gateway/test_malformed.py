"""Who sends spans or log records with ids that are none is told so, and told what becomes of them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pipeline.core.ingest import Ingest
from pipeline.core.timeline import TimeRules
from pipeline.gateway.broker import MAX_RECORD_BYTES
from pipeline.gateway.limits import Limits
from pipeline.gateway.signals import LOGS, TRACES, Signal
from pipeline.gateway.taking import Taken, take_json, take_protobuf
from schemas.topics import Topic
from tests.unit.gateway.conftest import FakeBroker, Gateway

PROTOBUF, JSON = "application/x-protobuf", "application/json"
TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
T = 1_760_000_000 * 10**9
EVENT = "gen_ai.client.inference.operation.details"

BAD = {
    "no hex": {"traceId": "zz" * 16, "spanId": SPAN},
    "too short": {"traceId": TRACE[:-2], "spanId": SPAN},
    "a number": {"traceId": TRACE, "spanId": 5},
    "a list": {"traceId": [TRACE], "spanId": SPAN},
    "the older name": {"trace_id": "zz", "span_id": SPAN},
}
BAD_FOR_SPANS = {
    "all zeros": {"traceId": "0" * 32, "spanId": SPAN},
    "a span of zeros": {"traceId": TRACE, "spanId": "0" * 16},
    "null": {"traceId": None, "spanId": SPAN},
    "missing": {"spanId": SPAN},
}
GOOD = {"traceId": TRACE, "spanId": SPAN}


def body_of(signal: Signal, items: list[dict[str, Any]]) -> bytes:
    """As JSON; each is else what ingest uses."""
    kind = {"startTimeUnixNano": str(T), "endTimeUnixNano": str(T)} if signal is TRACES else {"timeUnixNano": str(T)}
    told = {"name": "chat"} if signal is TRACES else {"eventName": EVENT}
    outer, inner, last = signal.levels.json
    return json.dumps({outer: [{inner: [{last: [kind | told | one for one in items]}]}]}).encode()


def buried(parts: list[bytes], topic: Topic) -> tuple[int, int]:
    """How many of the records' items ingest receives, and buries for their ids; the others it must use or drop."""
    step = Ingest(2, TimeRules())
    for offset, part in enumerate(parts):
        step.on_record(topic, 0, offset, T, None, part)
    _, counts = step.outbox.take()
    what = "span" if topic is Topic.OTLP_SPANS else "log"
    by_result = {
        result: sum(n for (of, why), n in counts.items() if of == result and (result != "received" or why == what))
        for result in ("received", "used", "dropped", "dead_lettered")
    }
    assert by_result["received"] == by_result["used"] + by_result["dropped"] + by_result["dead_lettered"]
    return by_result["received"], sum(n for (of, why), n in counts.items() if (of, why) == ("dead_lettered", "bad_id"))


@pytest.mark.parametrize("bad", [*BAD.values(), *BAD_FOR_SPANS.values()], ids=[*BAD, *BAD_FOR_SPANS])
def test_a_span_with_a_bad_id_is_told_and_goes_on(gateway: Gateway, broker: FakeBroker, bad: dict[str, Any]) -> None:
    body = body_of(TRACES, [GOOD, bad, GOOD | {"spanId": SPAN[::-1]}])

    status, answer, _ = gateway.post("/v1/traces", body, content_type=JSON)

    partial = json.loads(answer)["partialSuccess"]
    assert (status, partial["rejectedSpans"]) == (200, "1")
    assert "1 item: the " in partial["errorMessage"]
    assert broker.values("otlp_spans") == [body]
    assert buried([body], Topic.OTLP_SPANS) == (3, 1)


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
def test_so_is_a_log_record(gateway: Gateway, broker: FakeBroker, bad: dict[str, Any]) -> None:
    body = body_of(LOGS, [GOOD, bad])

    status, answer, _ = gateway.post("/v1/logs", body, content_type=JSON)

    partial = json.loads(answer)["partialSuccess"]
    assert (status, partial["rejectedLogRecords"]) == (200, "1")
    assert buried(broker.values("otlp_logs"), Topic.OTLP_LOGS) == (2, 1)


@pytest.mark.parametrize("ids", [{}, *BAD_FOR_SPANS.values()], ids=["none", *BAD_FOR_SPANS])
def test_a_log_record_needs_no_ids(gateway: Gateway, ids: dict[str, Any]) -> None:
    assert gateway.post("/v1/logs", body_of(LOGS, [ids]), content_type=JSON)[1] == b"{}"


def test_protobuf_is_answered_in_protobuf_and_names_one_of_each_kind(gateway: Gateway, broker: FakeBroker) -> None:
    spans, logs = ExportTraceServiceRequest(), ExportLogsServiceRequest()
    spans_in, logs_in = spans.resource_spans.add().scope_spans.add(), logs.resource_logs.add().scope_logs.add()
    for trace_id, span_id in ((b"t" * 16, b"s" * 8), (b"t" * 16, bytes(8)), (b"t" * 16, b""), (b"u" * 7, b"s" * 8)):
        spans_in.spans.add(trace_id=trace_id, span_id=span_id, start_time_unix_nano=T, end_time_unix_nano=T)
        logs_in.log_records.add(trace_id=trace_id, span_id=span_id, event_name=EVENT, time_unix_nano=T)

    _, answer, _ = gateway.post("/v1/traces", spans.SerializeToString(), content_type=PROTOBUF)
    _, answer_logs, _ = gateway.post("/v1/logs", logs.SerializeToString(), content_type=PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert partial.rejected_spans == 3
    assert partial.error_message == (
        f"1 item: the span id is all zeros (it has trace id {(b't' * 16).hex()}); "
        f"1 item: the span id is missing (it has trace id {(b't' * 16).hex()}); "
        "1 item: the trace id is no id of the right length in any known encoding "
        f"(it has span id {(b's' * 8).hex()})"
    )
    assert ExportLogsServiceResponse.FromString(answer_logs).partial_success.rejected_log_records == 1
    assert buried(broker.values("otlp_spans"), Topic.OTLP_SPANS) == (4, 3)
    assert buried(broker.values("otlp_logs"), Topic.OTLP_LOGS) == (4, 1)


IDS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, "", "0" * 32, "0" * 16, TRACE, SPAN, TRACE.upper(), 5, 0, [], {}, " ", f" {SPAN} "]),
    st.sampled_from([b64encode(bytes.fromhex(TRACE)).decode(), b64encode(SPAN.encode()).decode(), "é" * 16]),
    st.text(alphabet="0123456789abcdef", min_size=14, max_size=18),
    st.text(alphabet="0123456789abcdefg", min_size=31, max_size=33),
)
NAMES = st.sampled_from([("traceId", "spanId"), ("trace_id", "span_id")])


def taken_as(kind: str, body: bytes, signal: Signal) -> Taken:
    return (take_json if kind == JSON else take_protobuf)(body, signal, Limits(), None)


@given(st.lists(st.tuples(NAMES, IDS, IDS), max_size=4), st.sampled_from([TRACES, LOGS]))
@settings(max_examples=300, deadline=None)
def test_what_is_told_of_json_is_what_ingest_buries(items: list[Any], signal: Signal) -> None:
    body = body_of(signal, [dict(zip(names, ids, strict=True)) for names, *ids in items])
    taken = taken_as(JSON, body, signal)
    assert buried(taken.parts, signal.topic) == (len(items), taken.rejected)


RAW = st.one_of(
    st.binary(max_size=33), st.sampled_from([bytes(16), bytes(8), TRACE.encode(), SPAN.encode(), b"x" * 16, b"x" * 8])
)


@given(st.lists(st.tuples(RAW, RAW), max_size=4), st.sampled_from([TRACES, LOGS]))
@settings(max_examples=300, deadline=None)
def test_what_is_told_of_protobuf_is_what_ingest_buries(items: list[tuple[bytes, bytes]], signal: Signal) -> None:
    request: Any = signal.request()
    outer, inner, last = signal.levels.protobuf
    held = getattr(getattr(getattr(request, outer).add(), inner).add(), last)
    for trace_id, span_id in items:
        one = held.add(trace_id=trace_id, span_id=span_id)
        if signal is TRACES:
            one.end_time_unix_nano = T
        else:
            one.time_unix_nano, one.event_name = T, EVENT
    taken = taken_as(PROTOBUF, request.SerializeToString(), signal)
    assert buried(taken.parts, signal.topic) == (len(items), taken.rejected)


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_an_item_that_is_too_large_as_well_is_told_once(kind: str) -> None:
    big = "x" * MAX_RECORD_BYTES
    if kind == JSON:
        body = body_of(TRACES, [GOOD, {"spanId": "bad"}, {"spanId": "bad", "name": big}])
    else:
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        scope.spans.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN))
        scope.spans.add(trace_id=b"bad")
        scope.spans.add(trace_id=b"bad", name=big)
        body = request.SerializeToString()

    taken = taken_as(kind, body, TRACES)

    assert (taken.rejected, taken.refused.total(), taken.malformed.total()) == (2, 1, 1)
