from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import aiohttp
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from pipeline.errors import BrokerUnreachable
from pipeline.gateway import cutting
from pipeline.gateway.broker import MAX_RECORD_BYTES, RecordTooLarge
from pipeline.gateway.request import Refused
from pipeline.gateway.signals import TRACES
from pipeline.tokens import Scope, Token
from tests.unit.gateway.conftest import MAX_REQUEST_BYTES, FakeBroker, Gateway

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


def request_of(*names: str, bulk: int = 0) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number, name in enumerate(names):
        span = scope.spans.add(name=name, trace_id=b"t" * 16, span_id=(number + 1).to_bytes(8, "big"))
        if bulk:
            span.attributes.add(key="k").value.string_value = "x" * bulk
    return request


def names_in(broker: FakeBroker) -> list[str]:
    found = []
    for value in broker.values("otlp_spans"):
        for resource in ExportTraceServiceRequest.FromString(value).resource_spans:
            found += [span.name for scope in resource.scope_spans for span in scope.spans]
    return found


def test_protobuf_goes_to_kafka_as_it_came_and_is_answered_in_protobuf(gateway: Gateway, broker: FakeBroker) -> None:
    body = request_of("a", "b").SerializeToString()

    status, answer, headers = gateway.post("/v1/traces", body, content_type=PROTOBUF)

    assert (status, headers["content-type"]) == (200, PROTOBUF)
    assert ExportTraceServiceResponse.FromString(answer) == ExportTraceServiceResponse()
    assert broker.taken == [("otlp_spans", body, None)]


def test_json_goes_to_kafka_as_it_came_and_is_answered_in_json(gateway: Gateway, broker: FakeBroker) -> None:
    span = b'{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}'
    body = b'{"resourceSpans": [{"scopeSpans": [{"spans": [' + span + b"]}]}]}"

    status, answer, headers = gateway.post("/v1/traces", body, content_type="application/json; charset=utf-8")

    assert (status, headers["content-type"].split(";")[0], json.loads(answer)) == (200, JSON, {})
    assert broker.taken == [("otlp_spans", body, None)]


def test_logs_have_a_topic_of_their_own(gateway: Gateway, broker: FakeBroker) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "x"

    status, _, _ = gateway.post("/v1/logs", request.SerializeToString(), content_type=PROTOBUF)

    assert (status, [topic for topic, _, _ in broker.taken]) == (200, ["otlp_logs"])


def test_the_real_sdk_is_served_gzip_and_plain(gateway: Gateway, broker: FakeBroker) -> None:
    async def export(_session: aiohttp.ClientSession, url: str) -> None:
        def with_sdk() -> None:
            for compression in (Compression.Gzip, Compression.NoCompression):
                exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", compression=compression)
                provider = TracerProvider()
                provider.add_span_processor(SimpleSpanProcessor(exporter))
                provider.get_tracer("t").start_span(f"sdk {compression.value}").end()
                provider.shutdown()

        await asyncio.to_thread(with_sdk)

    gateway.run(export)

    assert sorted(names_in(broker)) == ["sdk gzip", "sdk none"]


def test_an_empty_request_is_well_and_writes_nothing(gateway: Gateway, broker: FakeBroker) -> None:
    bodies = {b"": PROTOBUF, b"{}": JSON, b'{"resourceSpans": []}': JSON}
    answers = [gateway.post("/v1/traces", body, content_type=kind)[0] for body, kind in bodies.items()]

    assert (answers, broker.taken) == ([200, 200, 200], [])


def test_one_bad_utf8_attribute_does_not_cost_the_request(gateway: Gateway, broker: FakeBroker) -> None:
    body = request_of("good", "b@d").SerializeToString().replace(b"b@d", b"b\xffd")

    status, _, _ = gateway.post("/v1/traces", body, content_type=PROTOBUF)

    assert (status, broker.values("otlp_spans")) == (200, [body])


GARBAGE = {
    "no protobuf": (b"\xff\xff\xffgarbage", PROTOBUF),
    "protobuf of something else": (Status(code=5, message="x").SerializeToString(), PROTOBUF),
    "a protobuf that was cut off": (request_of("a", "b").SerializeToString()[:-3], PROTOBUF),
    "no JSON": (b'{"resourceSpans": [', JSON),
    "JSON of something else": (b'{"resourceLogs": []}', JSON),
    "a list": (b"[]", JSON),
    "a number for a list": (b'{"resourceSpans": 5}', JSON),
    "a text among the objects": (b'{"resourceSpans": [{"scopeSpans": [{"spans": ["x"]}]}]}', JSON),
    "bad UTF-8 in JSON": (b'{"resourceSpans": [{"x": "\xff"}]}', JSON),
}


@pytest.mark.parametrize(("body", "kind"), GARBAGE.values(), ids=list(GARBAGE))
def test_what_cannot_be_decoded_is_refused_with_a_status(
    gateway: Gateway, broker: FakeBroker, body: bytes, kind: str
) -> None:
    status, answer, headers = gateway.post("/v1/traces", body, content_type=kind)

    assert (status, headers["content-type"].split(";")[0]) == (400, kind)
    told = Status.FromString(answer) if kind == PROTOBUF else Status(**json.loads(answer))
    assert told.code == 3
    assert told.message
    assert broker.taken == []


REFUSED: dict[str, tuple[bytes, dict[str, str], int]] = {
    "another content type": (b"x", {"content_type": "text/plain"}, 415),
    "another encoding": (b"x", {"content_type": PROTOBUF, "content_encoding": "br"}, 415),
    "no gzip": (b"no gzip", {"content_type": PROTOBUF, "content_encoding": "gzip"}, 400),
    "half a gzip": (gzip.compress(b"x" * 100)[:-9], {"content_type": PROTOBUF, "content_encoding": "gzip"}, 400),
    "too large": (b"x" * (MAX_REQUEST_BYTES + 1), {"content_type": PROTOBUF}, 413),
    "a bomb": (gzip.compress(bytes(500_000_000), 1), {"content_type": JSON, "content_encoding": "gzip"}, 413),
}


@pytest.mark.parametrize(("body", "headers", "expected"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_read_is_refused(
    gateway: Gateway, broker: FakeBroker, body: bytes, headers: dict[str, str], expected: int
) -> None:
    status, answer, _ = gateway.post("/v1/traces", body, **headers)

    assert (status, broker.taken) == (expected, [])
    assert b"Traceback" not in answer


def test_the_answer_waits_for_delivery(gateway: Gateway, broker: FakeBroker) -> None:
    body = request_of("a").SerializeToString()

    async def early(session: aiohttp.ClientSession, url: str) -> tuple[bool, int]:
        broker.delivered = asyncio.Event()
        post = asyncio.create_task(session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": PROTOBUF}))
        done, _ = await asyncio.wait([post], timeout=0.3)
        broker.delivered.set()
        return bool(done), (await post).status

    assert gateway.run(early) == (False, 200)


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_broker_that_is_away_means_send_again(gateway: Gateway, broker: FakeBroker, kind: str) -> None:
    broker.fails = BrokerUnreachable("away")
    body = request_of("a").SerializeToString() if kind == PROTOBUF else b'{"resourceSpans": [{}]}'

    status, answer, headers = gateway.post("/v1/traces", body, content_type=kind)

    assert (status, int(headers["retry-after"]) > 0) == (503, True)
    assert (Status.FromString(answer).code if kind == PROTOBUF else json.loads(answer)["code"]) == 14


def test_what_kafka_never_takes_is_not_to_be_sent_again(gateway: Gateway, broker: FakeBroker) -> None:
    broker.fails = RecordTooLarge("large")

    status, _, headers = gateway.post("/v1/traces", request_of("a").SerializeToString(), content_type=PROTOBUF)

    assert (status, "retry-after" in headers) == (413, False)


def test_a_large_request_is_cut_and_only_a_giant_is_left_out(gateway: Gateway, broker: FakeBroker) -> None:
    request = request_of(*(f"s{n}" for n in range(40)), bulk=50_000)
    request.resource_spans[0].resource.attributes.add(key="service.name").value.string_value = "shop"
    giant = request.resource_spans[0].scope_spans[0].spans.add(name="giant")
    giant.attributes.add(key="k").value.string_value = "x" * MAX_RECORD_BYTES

    status, answer, _ = gateway.post("/v1/traces", request.SerializeToString(), content_type=PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (status, partial.rejected_spans) == (200, 1)
    assert names_in(broker) == [f"s{n}" for n in range(40)]
    parts = broker.values("otlp_spans")
    assert all(len(part) <= MAX_RECORD_BYTES for part in parts)
    assert all(b"shop" in part for part in parts)


@given(st.lists(st.lists(st.lists(st.integers(0, 400), max_size=5), max_size=4), max_size=4), st.integers(60, 900))
@settings(max_examples=200, deadline=None)
def test_every_item_is_in_exactly_one_part_or_left_out(shape: list[list[list[int]]], limit: int) -> None:
    request = ExportTraceServiceRequest()
    as_json: dict[str, Any] = {"resourceSpans": []}
    number = 0
    for scopes in shape:
        resource = request.resource_spans.add()
        as_json["resourceSpans"].append({"scopeSpans": []})
        for sizes in scopes:
            scope = resource.scope_spans.add()
            as_json["resourceSpans"][-1]["scopeSpans"].append({"spans": []})
            for size in sizes:
                name = f"{number}:" + "x" * size
                scope.spans.append(Span(name=name))
                as_json["resourceSpans"][-1]["scopeSpans"][-1]["spans"].append({"name": name})
                number += 1

    parts, left_out = cutting.cut_protobuf(request, TRACES.levels.protobuf, limit)
    kept = []
    for part in parts:
        assert len(part) <= limit
        for resource in ExportTraceServiceRequest.FromString(part).resource_spans:
            kept += [int(s.name.split(":")[0]) for scope in resource.scope_spans for s in scope.spans]
    assert kept == sorted(set(kept))
    assert sorted([*kept, *(int(one.name.split(":")[0]) for one in left_out)]) == list(range(number))

    json_parts, json_left_out = cutting.cut_json(as_json, TRACES.levels.json, limit)
    json_kept = [
        int(s["name"].split(":")[0])
        for part in json_parts
        for resource in json.loads(part)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for s in scope["spans"]
    ]
    assert all(len(part) <= limit for part in json_parts)
    assert json_kept == sorted(set(json_kept))
    assert len(json_kept) + len(json_left_out) == number


def test_who_may_not_send_is_refused_before_anything_is_read(broker: FakeBroker) -> None:
    asked: list[Scope] = []

    async def nobody(_request: object, scope: Scope) -> Token:
        asked.append(scope)
        raise Refused(403, "this token may not send spans")

    gateway = Gateway(broker, authorize=nobody)
    status, answer, _ = gateway.post("/v1/traces", request_of("a").SerializeToString(), content_type=PROTOBUF)
    outcomes, _, _ = gateway.post("/v1/outcomes", b"{}", content_type=JSON)

    assert (status, Status.FromString(answer).code, outcomes) == (403, 7, 403)
    assert (asked, broker.taken) == ([Scope.SPANS, Scope.OUTCOMES], [])
