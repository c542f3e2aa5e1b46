"""What one would write by hand: an aiokafka consumer, the official protobuf classes, and dicts.

It groups spans to traces and traces to sessions, counts each span and token once, and adds up what the agents claimed,
escalations and reopenings by family. No contract, no store, no checkpoint: when it dies, it begins anew.

A process of its own (`python -m tests.bench.baseline <brokers>`); the last line that it prints is its result as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from schemas.topics import Topic
from tests.bench.families import Counts
from tests.bench.report import BaselineResult

WANTED = frozenset(
    {
        "gen_ai.conversation.id",
        "gen_ai.tool.name",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "trueup.task.family",
        "trueup.task.outcome",
    }
)
_UNKNOWN = {"family": "", "claim": "", "escalated": False}


class Loop:
    """The state of the loop."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.traces: dict[bytes, str] = {}
        self.waiting: dict[bytes, list[tuple[bytes, dict[str, Any]]]] = {}
        self.outcomes: dict[str, set[str]] = {}

    def take_spans(self, value: bytes) -> None:
        if value.startswith(b"{"):
            return  # no spans: the line's sign that the input is over
        for resource_spans in ExportTraceServiceRequest.FromString(value).resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    found: dict[str, Any] = {}
                    for pair in span.attributes:
                        if pair.key in WANTED:
                            found[pair.key] = getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
                    self._take(span.trace_id, span.span_id, found)

    def _take(self, trace_id: bytes, span_id: bytes, found: dict[str, Any]) -> None:
        session = found.get("gen_ai.conversation.id") or self.traces.get(trace_id)
        if session is None:
            self.waiting.setdefault(trace_id, []).append((span_id, found))
            return
        if trace_id not in self.traces:
            self.traces[trace_id] = session
            for early in self.waiting.pop(trace_id, []):
                self._count(session, *early)
        self._count(session, span_id, found)

    def _count(self, session: str, span_id: bytes, found: dict[str, Any]) -> None:
        state = self.sessions.get(session)
        if state is None:
            state = self.sessions[session] = {
                "spans": set(),
                "tokens": 0,
                "family": "",
                "claim": "",
                "escalated": False,
            }
        if span_id in state["spans"]:
            return
        state["spans"].add(span_id)
        state["tokens"] += found.get("gen_ai.usage.input_tokens", 0) + found.get("gen_ai.usage.output_tokens", 0)
        if "trueup.task.family" in found:
            state["family"] = found["trueup.task.family"]
            state["claim"] = found.get("trueup.task.outcome") or state["claim"]
        elif found.get("gen_ai.tool.name") == "escalate_to_human":
            state["escalated"] = True

    def take_outcome(self, value: bytes) -> None:
        event = json.loads(value)
        if "session_id" in event:
            self.outcomes.setdefault(event["session_id"], set()).add(event["kind"])

    def counts(self) -> dict[str, Counts]:
        found: dict[str, Counts] = {}
        for name, state in self.sessions.items():
            outcomes = self.outcomes.get(name, set())
            found.setdefault(state["family"], Counts()).add(
                claimed=state["claim"] == "completed",
                completed=False,
                escalated=state["escalated"] or "escalation" in outcomes,
                reopened="reopen" in outcomes,
            )
        return found


async def run(brokers: str) -> BaselineResult:
    """Read the source topics from their beginning to their present end."""
    topics = (Topic.OTLP_SPANS.value, Topic.OUTCOMES.value)
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=brokers, auto_offset_reset="earliest", max_partition_fetch_bytes=8 << 20
    )
    await consumer.start()
    places = consumer.assignment()  # without a group it gets all partitions
    ends = await consumer.end_offsets(places)
    loop, reached = Loop(), dict.fromkeys(places, 0)
    ready = time.process_time()
    while any(reached[place] < ends[place] for place in places):
        batches = await consumer.getmany(timeout_ms=200)
        for place, records in batches.items():
            for record in records:
                if place.topic == Topic.OTLP_SPANS:
                    loop.take_spans(record.value)
                else:
                    loop.take_outcome(record.value)
            reached[place] = records[-1].offset + 1
    counts = loop.counts()
    seconds = time.process_time() - ready
    await consumer.stop()
    return BaselineResult(counts, sum(len(state["spans"]) for state in loop.sessions.values()), ready, seconds)


def main() -> None:
    print(msgspec.json.encode(asyncio.run(run(sys.argv[1]))).decode())


if __name__ == "__main__":
    main()
