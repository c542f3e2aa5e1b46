"""Limits: of one request, of all that are in flight, and what a single bad item costs."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pipeline.errors import BrokerUnreachable
from pipeline.gateway.limits import Limits, NoRoom, Room, depth_of, has_many_values, is_deep
from tests.unit.gateway.conftest import FakeBroker, Gateway

PROTOBUF, JSON = "application/x-protobuf", "application/json"
EVENT = {
    "event_id": "1",
    "event_time": "2026-04-02T10:00:00Z",
    "source": "billing",
    "kind": "evidence",
    "session_id": "s",
}


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


documents = st.recursive(
    st.integers() | st.booleans() | st.text('[]{}",:\\ax', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\,', max_size=4), inner, max_size=3),
    max_leaves=30,
)


def levels(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


def values(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(map(values, inner))


@given(documents)
@settings(max_examples=300, deadline=None)
def test_levels_and_values_are_counted_without_decoding(document: Any) -> None:
    body = json.dumps(document).encode()
    depth = levels(document)

    assert depth_of(document, 100) == depth
    assert depth_of(document, 2) <= 3
    assert not is_deep(body, depth)
    assert not has_many_values(body, 2 * values(document))
    assert has_many_values(body, max(1, values(document) // 2)) or values(document) <= 2


@pytest.mark.parametrize("depth", [1, 2, 7, 100])
def test_one_level_too_many_is_deep(depth: int) -> None:
    body = json.dumps(nested(depth + 1)).encode()

    assert is_deep(body, depth)
    assert not is_deep(body, depth + 1)


def test_text_that_looks_nested_is_not() -> None:
    assert not is_deep(json.dumps({"a": "[" * 500 + '"\\'}).encode(), 2)
    assert not has_many_values(json.dumps({"a": "," * 500 + '"\\'}).encode(), 10)


@pytest.mark.parametrize("body", [b'"' + b'\\"' * 400_000, b'"' + b"\\" * 800_001, b'"' * 800_000, b"[" * 800_000])
def test_hostile_text_is_looked_at_once(body: bytes) -> None:
    async def look() -> None:
        async with asyncio.timeout(20):  # twice over, each look would be 10^11 steps
            await asyncio.to_thread(lambda: (is_deep(body, 100), has_many_values(body, 10)))

    asyncio.run(look())


# --- one request


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_too_many_items_are_refused(broker: FakeBroker, kind: str) -> None:
    gateway = Gateway(broker, limits=Limits(items=100))

    def body(spans: int) -> bytes:
        if kind == JSON:
            return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{}] * spans}]}]}).encode()
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for _ in range(spans):
            scope.spans.add()
        return request.SerializeToString()

    assert gateway.post("/v1/traces", body(99), content_type=kind)[0] == 200
    assert gateway.post("/v1/traces", body(100), content_type=kind)[0] == 413
    assert len(broker.taken) == 1


def test_too_many_empty_resources_are_refused(broker: FakeBroker) -> None:
    gateway = Gateway(broker, limits=Limits(items=100))

    assert gateway.post("/v1/traces", b"\x0a\x00" * 101, content_type=PROTOBUF)[0] == 413
    assert gateway.post("/v1/traces", b"\x0a\x02\x12\x00" * 101, content_type=PROTOBUF)[0] == 413


def test_json_of_many_small_values_is_refused_before_it_fills_the_memory(broker: FakeBroker) -> None:
    gateway = Gateway(broker, limits=Limits(values=1000))
    body = json.dumps({"resourceSpans": [{"x": [[]] * 1000}]}).encode()

    assert gateway.post("/v1/traces", body, content_type=JSON)[0] == 413
    assert gateway.post("/v1/outcomes", json.dumps([EVENT] * 300).encode(), content_type=JSON)[0] == 413
    assert broker.taken == []


def test_events_are_limited_in_number_and_depth(broker: FakeBroker) -> None:
    gateway = Gateway(broker, limits=Limits(items=3))

    assert gateway.post("/v1/outcomes", json.dumps([EVENT] * 4).encode(), content_type=JSON)[0] == 413
    deep = json.dumps(EVENT | {"data": {"a": nested(100)}}).encode()
    assert gateway.post("/v1/outcomes", deep, content_type=JSON)[0] == 400
    assert gateway.post("/v1/outcomes", json.dumps([EVENT] * 3).encode(), content_type=JSON)[0] == 200


def test_every_member_of_a_gzip_is_read(gateway: Gateway, broker: FakeBroker) -> None:
    text = json.dumps({"resourceSpans": [{"x": "y" * 200_000}]}).encode()
    packed = gzip.compress(text[:70_000]) + gzip.compress(b"") + gzip.compress(text[70_000:])

    assert gateway.post("/v1/traces", packed, content_type=JSON, content_encoding="gzip")[0] == 200
    assert broker.values("otlp_spans") == [text]


def test_a_slow_sender_is_not_waited_for(broker: FakeBroker) -> None:
    gateway = Gateway(broker, limits=Limits(read_seconds=0.2))

    async def slowly(session: aiohttp.ClientSession, url: str) -> int:
        async def drops() -> Any:
            yield b'{"resourceSpans":'
            await asyncio.sleep(5)
            yield b" []}"

        async with session.post(f"{url}/v1/traces", data=drops(), headers={"Content-Type": JSON}) as answer:
            return answer.status

    assert gateway.run(slowly) == 408


# --- one bad item among good ones


IDS = {"trace_id": b"t" * 16, "span_id": b"s" * 8}


def named(*names: str) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for name in names:
        scope.spans.add(name=name, **IDS)
    return request


def deep(request: ExportTraceServiceRequest, name: str, depth: int) -> None:
    value = request.resource_spans[0].scope_spans[0].spans.add(name=name, **IDS).attributes.add(key="k").value
    for _ in range(depth):
        value = value.array_value.values.add()
    value.string_value = "x"


def test_a_broken_or_deep_span_is_left_out_alone(gateway: Gateway, broker: FakeBroker) -> None:
    request = named("first", "BROKEN")
    deep(request, "as deep as may be", 47)
    deep(request, "too deep in its request, and not by itself", 48)
    deep(request, "much too deep", 60)
    request.resource_spans[0].scope_spans[0].spans.add(name="last", **IDS)
    # field 5, the name, is said to be a number that never ends
    body = request.SerializeToString().replace(b"\x2a\x06BROKEN", b"\x28" + b"\xff" * 7)

    status, answer, _ = gateway.post("/v1/traces", body, content_type=PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    written = ExportTraceServiceRequest.FromString(broker.values("otlp_spans")[0])
    names = [span.name for span in written.resource_spans[0].scope_spans[0].spans]
    assert (status, names) == (200, ["first", "as deep as may be", "last"])
    assert partial.rejected_spans == 3
    assert partial.error_message.startswith("3 items: cannot be decoded")


def test_a_bad_span_in_json_is_left_out_alone(gateway: Gateway, broker: FakeBroker) -> None:
    ids = {name: raw.hex() for name, raw in zip(("traceId", "spanId"), IDS.values(), strict=True)}
    spans = [ids, "x", None, {"name": "deep", "attributes": nested(120)} | ids, ids | {"name": "last"}]
    body = json.dumps({"resourceSpans": [{"resource": {"x": 1}, "scopeSpans": [{"spans": spans}]}]}).encode()

    status, answer, _ = gateway.post("/v1/traces", body, content_type=JSON)

    partial = json.loads(answer)["partialSuccess"]
    (written,) = broker.values("otlp_spans")
    assert status == 200
    assert json.loads(written)["resourceSpans"] == [
        {"resource": {"x": 1}, "scopeSpans": [{"spans": [spans[0], spans[4]]}]}
    ]
    assert partial["rejectedSpans"] == "3"
    assert "2 items: no JSON objects" in partial["errorMessage"]
    assert "1 item: nested" in partial["errorMessage"]


def test_where_all_are_bad_the_request_is(gateway: Gateway, broker: FakeBroker) -> None:
    request = named("BROKEN", "BROKEN").SerializeToString().replace(b"\x2a\x06BROKEN", b"\x28" + b"\xff" * 7)

    assert gateway.post("/v1/traces", request, content_type=PROTOBUF)[0] == 400
    assert broker.taken == []


# --- all that are in flight


def test_what_is_held_is_free_again() -> None:
    room = Room(10)
    with room.hold() as first, room.hold() as second:
        first.grow(6)
        second.grow(4)
        with pytest.raises(NoRoom):
            first.grow(1)
    assert room.left == 10


def test_while_kafka_is_slow_only_so_much_waits_and_the_rest_is_told_to_come_again(broker: FakeBroker) -> None:
    body = json.dumps({"resourceSpans": [{"x": "y" * 10_000}]}).encode()
    gateway = Gateway(broker, limits=Limits(bytes_in_flight=3 * len(body)))

    async def whole(session: aiohttp.ClientSession, url: str) -> tuple[list[int], list[str], list[int]]:
        async def post() -> tuple[int, str]:
            async with session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": JSON}) as answer:
                return answer.status, answer.headers.get("Retry-After", "")

        broker.delivered = asyncio.Event()
        posts = [asyncio.create_task(post()) for _ in range(8)]
        done, _ = await asyncio.wait(posts, timeout=5, return_when=asyncio.ALL_COMPLETED)
        refused = [post.result() for post in done]
        broker.delivered.set()
        statuses = sorted(status for status, _ in await asyncio.gather(*posts))
        return statuses, [after for _, after in refused], [(await post())[0]]

    statuses, retry_after, afterwards = gateway.run(whole)

    assert statuses == [200] * 3 + [429] * 5
    assert retry_after == ["1"] * 5
    assert afterwards == [200]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/outcomes"])
def test_nothing_stays_held_when_a_request_fails(broker: FakeBroker, path: str) -> None:
    body = json.dumps({"resourceSpans": [{}]} if path == "/v1/traces" else EVENT).encode()
    gateway = Gateway(broker, limits=Limits(bytes_in_flight=len(body)))

    async def whole(session: aiohttp.ClientSession, url: str) -> list[int]:
        statuses = []
        for fails in (BrokerUnreachable("away"), None):
            broker.fails = fails
            for data in (b"{", body):
                async with session.post(url + path, data=data, headers={"Content-Type": JSON}) as answer:
                    statuses.append(answer.status)
        return statuses

    assert gateway.run(whole) == [400, 503, 400, 200]
