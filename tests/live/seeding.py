"""Recorded requests of every dialect with a secret in whatever is no structure: the worst that an agent could send.

The rule this file keeps: what may be kept is named here, key by key; everything else, known to us or not, is content.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

GOLDEN = Path(__file__).parents[1] / "golden"
SECRET = "Zq9secretXw7"

STRUCTURE = re.compile(
    "|".join(
        (
            # what a span is
            r"gen_ai\.operation\.name|operation\.name|ai\.operationId|mcp\.method\.name|messaging\.operation",
            r"(openinference|traceloop|langsmith)\.span\.kind|mastra\.span\.type|langfuse\.observation\.type",
            r"llm\.request\.type|logfire\.msg_template|gen_ai\.task\.kind|executor\.type|message\.type",
            # who and what takes part: agents, tools, models, their providers
            r"(gen_ai\.)?agent\.(name|id)|agent_name|(gen_ai\.)?tool\.(name|type|status)|ai\.toolCall\.name|resource\.name",
            r".*\.(lc_agent_name|langgraph_node|toolName)|traceloop\.(entity|workflow)\.name|gen_ai\.workflow\.name",
            r"gen_ai\.handoff\.(from|to)_agent|langgraph\.command\..*_node|graph\.node\..*id|executor\.id",
            r"gen_ai\.(request|response)\.model|ai\.model\..*|ai\.response\.model|(llm|embedding)\.model_name|model_name",
            r".*\.model\.name|.*\.ls_(model_name|provider|integration)|gen_ai\.(system|provider\.name)|llm\.(system|provider)",
            r"mastra\.metadata\.modelMetadata|(sender|recipient)_agent_(class|type)|.*\.(tool_call\.function|tool_calls\.\d+)\.name",
            r"gen_ai\.guardrail\.name|langsmith\.trace\.name|gen_ai\.agent\.tools|ai\.telemetry\.functionId",
            # ids of conversations, calls and answers, but of no person
            r"(gen_ai\.conversation|session|gcp\.vertex\.agent\.session)(\.|_)id|.*\.(sessionId|threadId|session_id|thread_id)",
            r"metadata\.sessionId|.*(tool_call|tool_calls\.\d+|tool\.call|ai\.toolCall)\.id|.*\.(tool_call_id|toolCallId)",
            r"(gen_ai|ai)\.response\.id|langsmith\.trace\.session_name|gcp\.vertex\.agent\.(event|invocation)_id",
            # how it ended
            r".*(evaluation|annotation)\.(score\.)?(name|label|annotator_kind|identifier)|event\.name|.*finish_?[rR]easons?|langfuse\.observation\.level",
        )
    )
)
PARTS = frozenset(
    {"type", "role", "name", "id", "finish_reason", "finishReason", "tool_call_id", "toolCallId", "toolName"}
)
"""Fields of JSON content that are structure wherever they stand."""
NAMED_BY_SPAN = frozenset({"gcp.vertex.agent", "pydantic-ai"})
"""Instrumentations whose spans say what they are by their names alone."""
KINDS = frozenset({"openinference.span.kind", "langfuse.observation.type"})
"""Where an agent or a tool has no name but its span's."""


def logs() -> list[ExportLogsServiceRequest]:
    """The recorded requests of log records."""
    return [ExportLogsServiceRequest.FromString(path.read_bytes()) for path in sorted(GOLDEN.glob("*/logs.otlp.pb"))]


def seeded_logs(request: ExportLogsServiceRequest) -> int:
    """Put the secret into log records, of now. Returns: into how many places."""
    places = 0
    for part in request.resource_logs:
        part.resource.attributes.add(key="host.owner").value.string_value = SECRET
        for record in (record for scope in part.scope_logs for record in scope.log_records):
            places += 2 + sum(_into(pair) for pair in record.attributes if not STRUCTURE.fullmatch(pair.key))
            places += _into_value(record.body)
            record.attributes.add(key="app.customer.email").value.string_value = f"{SECRET}@example.org"
            record.severity_text = SECRET
            record.time_unix_nano = record.observed_time_unix_nano = time.time_ns()
    return places


def fixtures() -> list[Path]:
    return sorted(GOLDEN.glob("*/traces.otlp.pb"))


def requests_of(raw: bytes) -> Iterator[ExportTraceServiceRequest]:
    """One request, or several with their lengths before them."""
    try:
        yield ExportTraceServiceRequest.FromString(raw)
        return
    except DecodeError:
        pass
    place = 0
    while place < len(raw):
        size = shift = 0
        while True:
            byte = raw[place]
            place += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield ExportTraceServiceRequest.FromString(raw[place : place + size])
        place += size


def seeded(request: ExportTraceServiceRequest) -> int:
    """Put the secret into the request, and move it to now. Returns: into how many places."""
    places = 0
    spans = [span for part in request.resource_spans for scope in part.scope_spans for span in scope.spans]
    moved = time.time_ns() - max(span.end_time_unix_nano for span in spans) - 10**9
    for part in request.resource_spans:
        part.resource.attributes.add(key="host.owner").value.string_value = SECRET
        part.schema_url = f"https://{SECRET}.example.org"
        for scope in part.scope_spans:
            scope.scope.attributes.add(key="note").value.string_value = SECRET
            scope.scope.version, scope.schema_url = SECRET, f"https://{SECRET}.example.org"
            for span in scope.spans:
                places += 2 + _into_span(span, scope.scope.name)
                span.start_time_unix_nano += moved
                span.end_time_unix_nano += moved
    return places


def _into_span(span: Span, scope: str) -> int:
    places = sum(_into(pair) for pair in span.attributes if not STRUCTURE.fullmatch(pair.key))
    span.trace_state = f"vendor={SECRET}"
    span.attributes.add(key=f"app.{SECRET}.enabled").value.bool_value = True
    unknown = (
        "app.customer.email",
        "enduser.id",
        "user.id",
        "exception.message",
        "url.full",
        "db.query.text",
        "error.type",
    )
    for key in (
        *unknown,
        "shop.chat_session_id",
        "trueup.subject",
        "trueup.unknown",
        "http.request.header.authorization",
    ):
        span.attributes.add(key=key).value.string_value = f"{SECRET}@example.org"
    kinds = {pair.value.string_value.lower() for pair in span.attributes if pair.key in KINDS}
    if scope not in NAMED_BY_SPAN and not kinds & {"agent", "tool"}:
        span.name = f"{SECRET} {span.name}"
    span.status.message = f"{span.status.message} {SECRET}"
    failed = span.events.add(name="exception")
    failed.attributes.add(key="exception.type").value.string_value = "ValueError"
    for event in span.events:
        places += sum(_into(pair) for pair in event.attributes if not STRUCTURE.fullmatch(pair.key))
        event.attributes.add(key="exception.stacktrace").value.string_value = f"Traceback {SECRET}"
        event.name += f" {SECRET}" if event.name not in ("exception", "gen_ai.choice") else ""
    for link in span.links:
        link.attributes.add(key="why").value.string_value = SECRET
    return places + 14


def _into(pair: KeyValue) -> int:
    return _into_value(pair.value)


def _into_value(value: AnyValue) -> int:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return sum(map(_into_value, value.array_value.values))
    if kind == "kvlist_value":
        return sum(_into_value(pair.value) for pair in value.kvlist_value.values if pair.key not in PARTS)
    if kind != "string_value":
        return 0
    text = value.string_value
    if text[:1] in ("{", "["):
        try:
            value.string_value = json.dumps(_inside(json.loads(text)))
        except ValueError:
            value.string_value = f"{text} {SECRET}"
    else:
        value.string_value = f"{text} {SECRET}"
    return 1


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: held if name in PARTS and isinstance(held, str) else _inside(held) for name, held in value.items()
        }
    if isinstance(value, list):
        return [_inside(held) for held in value]
    return f"{value} {SECRET}" if isinstance(value, str) else value
