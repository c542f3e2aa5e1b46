"""Garbage, and one bad attribute among good spans of a request: the good ones count, the bad are dead-lettered."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pipeline.cli.common import EMBEDDED_PARTITIONS
from pipeline.embedded.ports import free_port
from schemas.topics import Topic
from tests.started import Start

PATIENCE = 60.0
GARBAGE = b"\xff\xfenothing that OTLP knows"
BROKEN = b"broken \xe4\xbd"
MARK = b"broken MARK"


def request() -> bytes:
    """Three good spans of one trace; one of them has an attribute that is cut in the middle of a character."""
    now = time.time_ns()
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    spans = resource.scope_spans.add().spans
    for number, operation in enumerate(("invoke_agent", "chat", "execute_tool"), 1):
        span = Span(trace_id=b"t" * 16, span_id=bytes([number]) * 8, start_time_unix_nano=now - 10**9, name="x")
        span.parent_span_id = b"" if number == 1 else b"\x01" * 8
        span.end_time_unix_nano = now
        for key, value in {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": "garbage-1",
            "gen_ai.agent.name": "shop_agent",
            "gen_ai.tool.name": "look_up" if operation == "execute_tool" else "",
        }.items():
            if value:
                span.attributes.add(key=key).value.string_value = value
        if number == 2:
            span.attributes.add(key="app.note").value.string_value = MARK.decode()
        spans.append(span)
    return made.SerializeToString().replace(MARK, BROKEN + b" " * (len(MARK) - len(BROKEN)))


def post(url: str, body: bytes) -> int:
    asked = urllib.request.Request(url, body, {"Content-Type": "application/x-protobuf"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        status: int = answer.status
        return status


def spans_of(url: str) -> list[dict[str, Any]]:
    """The spans of the conversation's sessions, as the read API tells them."""
    try:
        with urllib.request.urlopen(f"{url}/api/sessions/default/garbage-1", timeout=10) as answer:
            return [span for session in json.load(answer)["sessions"] for span in session["spans"]]
    except urllib.error.HTTPError:
        return []


async def write(brokers: str, value: bytes) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    try:
        await producer.send_and_wait(Topic.OTLP_SPANS, value)
    finally:
        await producer.stop()


async def dead_letters(brokers: str) -> list[dict[str, Any]]:
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [TopicPartition(Topic.DEAD_LETTERS, number) for number in range(EMBEDDED_PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        found = []
        while batch := await consumer.getmany(timeout_ms=1500):
            found += [json.loads(message.value) for messages in batch.values() for message in messages]
        return found
    finally:
        await consumer.stop()


def test_the_good_count_and_the_bad_are_dead_lettered_with_reasons(trueup: Start) -> None:
    worker, gateway = free_port(), free_port()
    process = trueup("up", TRUEUP_WORKER_PORT=str(worker), TRUEUP_GATEWAY_PORT=str(gateway))
    assert process.stdout is not None
    brokers = next(line.split()[-1] for line in process.stdout if line.startswith("brokers"))

    asyncio.run(write(brokers, GARBAGE))
    assert post(f"http://127.0.0.1:{gateway}/v1/traces", request()) == 200
    deadline = time.monotonic() + PATIENCE
    url = f"http://127.0.0.1:{worker}"
    while len(spans := spans_of(url)) < 3:
        assert time.monotonic() < deadline, spans
        time.sleep(0.3)

    assert sorted(span["kind"] for span in spans) == ["agent", "inference", "tool"]
    letters = asyncio.run(dead_letters(brokers))
    reasons = {letter["reason"]: letter for letter in letters}
    assert set(reasons) == {"not_otlp", "bad_utf8"}
    assert reasons["not_otlp"]["topic"] == Topic.OTLP_SPANS
    assert reasons["not_otlp"]["size"] == len(GARBAGE)
    assert "app.note" in reasons["bad_utf8"]["detail"]
    assert "broken" not in json.dumps(letters)
