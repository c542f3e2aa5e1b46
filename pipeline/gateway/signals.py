"""The signals of OTLP that are taken: their messages, their topics, and what their lists are called."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pipeline.gateway.cutting import Levels
from schemas.topics import Topic


@dataclass(frozen=True, slots=True)
class Signal:
    """One of them.

    Args:
        rejected: how many items were not taken, as the answer calls it: protobuf, JSON.
        may_lack_ids: an item is well without a trace and a span id.
    """

    topic: Topic
    request: type[Message]
    item: type[Message]
    response: type[Message]
    rejected: tuple[str, str]
    levels: Levels
    may_lack_ids: bool


TRACES = Signal(
    Topic.OTLP_SPANS,
    ExportTraceServiceRequest,
    Span,
    ExportTraceServiceResponse,
    ("rejected_spans", "rejectedSpans"),
    Levels(("resource_spans", "scope_spans", "spans"), ("resourceSpans", "scopeSpans", "spans")),
    may_lack_ids=False,
)
LOGS = Signal(
    Topic.OTLP_LOGS,
    ExportLogsServiceRequest,
    LogRecord,
    ExportLogsServiceResponse,
    ("rejected_log_records", "rejectedLogRecords"),
    Levels(("resource_logs", "scope_logs", "log_records"), ("resourceLogs", "scopeLogs", "logRecords")),
    may_lack_ids=True,
)
