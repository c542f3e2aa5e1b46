"""Content goes nowhere: secrets in every place that an agent's spans have for it are found in no topic of ours, no
table, no file, no log, no metric and no answer; structure beside them is found in most, so the search does search.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
import urllib.request
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from google.protobuf.json_format import MessageToJson

from pipeline.cli.common import EMBEDDED_PARTITIONS
from pipeline.core.ingest import end_of_input
from pipeline.embedded.ports import free_port
from pipeline.sinks.clickhouse import Store
from schemas.rows import TABLES
from schemas.topics import TOPICS, Topic
from tests.live.seeding import SECRET, fixtures, logs, requests_of, seeded, seeded_logs
from tests.started import Start

PATIENCE = 120.0
STILL_SECONDS = 5.0
READ_SECONDS = 10.0
KEPT = "Yk3keptVu8"
"""In the name of an agent, which is structure."""
OURS = sorted(topic for topic, spec in TOPICS.items() if not spec.users_own)
REASONS = {"not_otlp", "bad_id", "bad_attribute", "bad_outcome"}
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def forms(text: str) -> list[bytes]:
    """As it would look in the encodings that might hide it."""
    raw = text.encode()
    return [raw, raw.lower(), raw.hex().encode(), *(_base64_core(raw, shift) for shift in range(3))]


def _base64_core(raw: bytes, shift: int) -> bytes:
    """What base64 makes of it whatever stands around it."""
    encoded = b64encode(bytes(shift) + raw + bytes(3))
    return encoded[-(-shift * 8 // 6) + (1 if shift else 0) : (shift + len(raw)) * 8 // 6]


def holds(haystack: bytes, text: str) -> bool:
    return any(form in haystack for form in forms(text))


@pytest.mark.parametrize("before", [b"", b"x", b"xy"])
def test_the_search_finds_what_is_encoded(before: bytes) -> None:
    hidden = before + SECRET.encode() + b"after"
    assert holds(b64encode(hidden), SECRET)
    assert holds(hidden.hex().encode(), SECRET)
    assert not holds(b64encode(before + KEPT.encode()), SECRET)


def post(url: str, body: bytes, kind: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": kind}), timeout=20) as answer:
        assert answer.status == 200


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        body: bytes = answer.read()
        return body


def send_all(gateway: str) -> int:
    """Every recording, as protobuf and as JSON, with a secret in all content. Returns: in how many places."""
    places = 0
    for file in fixtures():
        for request in requests_of(file.read_bytes()):
            places += seeded(request)
            post(f"{gateway}/v1/traces", request.SerializeToString(), PROTOBUF)
            for part in request.resource_spans:
                for span in (span for scope in part.scope_spans for span in scope.spans):
                    span.trace_id = bytes([span.trace_id[0] ^ 1]) + span.trace_id[1:]
            post(f"{gateway}/v1/traces", MessageToJson(request).encode(), JSON)
    for records in logs():
        places += seeded_logs(records)
        post(f"{gateway}/v1/logs", records.SerializeToString(), PROTOBUF)
        post(f"{gateway}/v1/logs", MessageToJson(records).encode(), JSON)
    return places


def control() -> bytes:
    """A span whose agent has a name that is kept."""
    now = time.time_ns()
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": KEPT, "gen_ai.conversation.id": "control"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    span = {"traceId": "c" * 32, "spanId": "c" * 16, "startTimeUnixNano": now - 10**9, "endTimeUnixNano": now}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | {"attributes": attributes}]}]}]}).encode()


def bad_records() -> list[tuple[Topic, bytes]]:
    """What the gateway would refuse, written to Kafka past it."""
    event: dict[str, Any] = {"event_id": "1", "event_time": datetime.now(UTC).isoformat(), "source": "s"}
    event |= {"kind": "evidence", "session_id": "s"}
    bad_span = {"traceId": SECRET, "spanId": SECRET, "name": SECRET, "startTimeUnixNano": SECRET}
    bad_pairs = [{"value": {"stringValue": SECRET}}, {"key": "k", "value": {"intValue": SECRET}}]
    return [
        (Topic.OTLP_SPANS, f"garbage of {SECRET}".encode()),
        (Topic.OTLP_SPANS, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [bad_span]}]}]}).encode()),
        (
            Topic.OTLP_SPANS,
            json.dumps({"resourceSpans": [{"resource": {"attributes": bad_pairs}, "scopeSpans": []}]}).encode(),
        ),
        (Topic.OTLP_LOGS, json.dumps({"resourceLogs": [{"body": SECRET}]}).encode()),
        (Topic.OUTCOMES, f"[{SECRET}]".encode()),
        (Topic.OUTCOMES, json.dumps(event | {"kind": SECRET, "event_time": SECRET, "ordinal": SECRET}).encode()),
        (Topic.OUTCOMES, json.dumps(event | {"trace_id": SECRET, "data": SECRET}).encode()),
    ]


async def write(brokers: str, records: Sequence[tuple[Topic, bytes]]) -> None:
    """The records, and then to every partition that it is much later now: all sessions are judged."""
    later = end_of_input(datetime.now(UTC) + timedelta(hours=6))
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    try:
        for topic, value in records:
            await producer.send_and_wait(topic, value)
        for topic in (Topic.OTLP_SPANS, Topic.OTLP_LOGS, Topic.OUTCOMES):
            for partition in range(EMBEDDED_PARTITIONS):
                await producer.send_and_wait(topic, later, partition=partition)
    finally:
        await producer.stop()


async def contents(brokers: str) -> dict[str, bytes]:
    """All that lies on each topic of ours."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for topic in OURS for number in range(EMBEDDED_PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        parts: dict[str, list[bytes]] = {topic: [] for topic in OURS}
        until = time.monotonic() + READ_SECONDS  # heartbeats never end
        while time.monotonic() < until:
            for place, messages in (await consumer.getmany(timeout_ms=500)).items():
                parts[place.topic] += [part or b"" for message in messages for part in (message.key, message.value)]
        return {topic: b"\n".join(found) for topic, found in parts.items()}
    finally:
        await consumer.stop()


def wait_until_still(worker: str, sent: int) -> None:
    """Until as many sessions are in the store as there were recordings, the bad is buried, and no more comes."""
    deadline, seen, since = time.monotonic() + PATIENCE, (-1, b""), time.monotonic()
    while seen[0] < sent or time.monotonic() - since < STILL_SECONDS:
        assert time.monotonic() < deadline, f"{seen[0]} sessions of {sent}"
        counts = b"".join(line for line in get(f"{worker}/metrics").splitlines() if b"trueup_records_total" in line)
        now = json.loads(get(f"{worker}/api/sessions"))["total"], counts
        if now != seen or not all(reason.encode() in counts for reason in REASONS):
            seen, since = now, time.monotonic()
        time.sleep(0.5)


def test_secrets_are_found_nowhere(trueup: Start, tmp_path: Path) -> None:
    chosen = {"TRUEUP_WORKER_PORT": str(free_port()), "TRUEUP_GATEWAY_PORT": str(free_port())}
    process = trueup("up", **chosen)
    assert process.stdout is not None
    brokers = next(line.split()[-1] for line in process.stdout if line.startswith("brokers"))
    worker, gateway = (f"http://127.0.0.1:{port}" for port in chosen.values())

    places = send_all(gateway)
    post(f"{gateway}/v1/traces", control(), JSON)
    asyncio.run(write(brokers, bad_records()))
    wait_until_still(worker, len(fixtures()))

    found = asyncio.run(contents(brokers))
    found["/metrics"] = get(f"{worker}/metrics")
    listed = get(f"{worker}/api/sessions?limit=500")
    found["/api/sessions"] = listed
    for one in json.loads(listed)["sessions"]:
        found[f"/api/sessions of {one['conversation']}"] = get(f"{worker}/api/sessions/default/{one['conversation']}")
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=PATIENCE)
    found["stdout"], found["stderr"] = said.encode(), complained.encode()

    for file in (tmp_path / "data").rglob("*"):
        if file.is_file():
            found[str(file.relative_to(tmp_path))] = file.read_bytes()
    store = Store.open(f"chdb://{tmp_path / 'data' / 'clickhouse'}")
    try:
        for table in TABLES:
            found[f"table {table}"] = repr(store.query(f"SELECT * FROM {table}")).encode()
    finally:
        store.close()

    assert [name for name, content in found.items() if holds(content, SECRET)] == []
    assert places > 20_000
    holders = {name for name, content in found.items() if holds(content, KEPT)}
    assert {Topic.SPANS, Topic.SESSION_EVENTS, Topic.ROWS, Topic.JUDGE_SNAP} <= holders
    assert {"table verdicts", "table agent_steps", "/api/sessions of control"} <= holders
    assert all(b"control" in found[name] for name in ("table verdicts", "table revisions", Topic.VERDICTS))
    letters = [json.loads(line) for line in found[Topic.DEAD_LETTERS].splitlines() if line.startswith(b"{")]
    assert {letter["reason"] for letter in letters} >= REASONS
