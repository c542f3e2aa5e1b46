"""OTLP over HTTP: `/v1/traces` and `/v1/logs`, protobuf and JSON, as the OTLP specification says.

The rule this file keeps: the bytes that came in go to Kafka as they are; they are looked at only to refuse what no
reader could decode, and to cut what Kafka would not take in one record. The answer is 200 only once all of it is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import orjson
from aiohttp import web
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pipeline.errors import BrokerUnreachable
from pipeline.gateway import cutting
from pipeline.gateway.broker import DELIVERY_SECONDS, MAX_RECORD_BYTES, Produce, RecordTooLarge
from pipeline.gateway.request import Authorize, Refused, Scope, body_of
from pipeline.gateway.tolerant import tolerant
from schemas.topics import Topic

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
RETRY_AFTER_SECONDS = 5
# google.rpc.Code; what is not here is UNKNOWN
CODES = {400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 503: 14}
UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Signal:
    """One of OTLP's signals: its messages, its topic, and what its lists are called."""

    topic: Topic
    request: type[Message]
    response: type[Message]
    rejected: tuple[str, str]
    levels: cutting.Levels


TRACES = Signal(
    Topic.OTLP_SPANS,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
    ("rejected_spans", "rejectedSpans"),
    cutting.Levels(("resource_spans", "scope_spans", "spans"), ("resourceSpans", "scopeSpans", "spans")),
)
LOGS = Signal(
    Topic.OTLP_LOGS,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
    ("rejected_log_records", "rejectedLogRecords"),
    cutting.Levels(("resource_logs", "scope_logs", "log_records"), ("resourceLogs", "scopeLogs", "logRecords")),
)


class OtlpRoute:
    """The handler of one signal."""

    def __init__(self, signal: Signal, produce: Produce, authorize: Authorize, max_request_bytes: int) -> None:
        self._signal, self._produce, self._authorize, self._limit = signal, produce, authorize, max_request_bytes

    async def __call__(self, request: web.Request) -> web.Response:
        as_json = request.content_type == JSON
        try:
            await self._authorize(request, Scope.SPANS)
            if not as_json and request.content_type != PROTOBUF:
                raise Refused(415, f"Content-Type must be {PROTOBUF} or {JSON}")
            body = await body_of(request, self._limit)
            parts, dropped = self._json_parts(body) if as_json else self._protobuf_parts(body)
            await self._deliver(parts)
        except Refused as refused:
            return _error(refused, as_json)
        return self._accepted(dropped, as_json)

    def _protobuf_parts(self, body: bytes) -> tuple[list[bytes], int]:
        try:
            message = tolerant(self._signal.request).FromString(body)
        except DecodeError as error:
            raise self._undecodable() from error
        if body and not getattr(message, self._signal.levels.protobuf[0]):
            raise self._undecodable()
        if len(body) <= MAX_RECORD_BYTES:
            return ([body] if body else []), 0
        return cutting.cut_protobuf(message, self._signal.levels.protobuf, MAX_RECORD_BYTES)

    def _json_parts(self, body: bytes) -> tuple[list[bytes], int]:
        first = self._signal.levels.json[0]
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Refused(400, f"the body is not JSON: {error}") from error
        named = isinstance(message, dict) and (first in message or not message)
        if not named or not cutting.is_nested(message, self._signal.levels.json):
            raise Refused(400, f'the body is not an OTLP request: {{"{first}": [...]}} with lists of objects is needed')
        if len(body) <= MAX_RECORD_BYTES:
            return ([body] if message.get(first) else []), 0
        return cutting.cut_json(message, self._signal.levels.json, MAX_RECORD_BYTES)

    def _undecodable(self) -> Refused:
        return Refused(400, f"the body is not a protobuf {self._signal.request.DESCRIPTOR.name}")

    async def _deliver(self, parts: list[bytes]) -> None:
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                for part in parts:
                    await self._produce(self._signal.topic.value, part)
        except (BrokerUnreachable, TimeoutError) as error:
            raise Refused(503, "Kafka does not take the data now; send it again", RETRY_AFTER_SECONDS) from error
        except RecordTooLarge as error:
            raise Refused(413, "Kafka does not take so large a record; send smaller batches") from error

    def _accepted(self, dropped: int, as_json: bool) -> web.Response:
        why = f"{dropped} items are each above {MAX_RECORD_BYTES} bytes, which Kafka does not take in one record"
        if as_json:
            partial = (
                {"partialSuccess": {self._signal.rejected[1]: str(dropped), "errorMessage": why}} if dropped else {}
            )
            return web.Response(body=orjson.dumps(partial), content_type=JSON)
        answer = self._signal.response()
        if dropped:
            setattr(answer.partial_success, self._signal.rejected[0], dropped)  # type: ignore[attr-defined]
            answer.partial_success.error_message = why  # type: ignore[attr-defined]
        return web.Response(body=answer.SerializeToString(), content_type=PROTOBUF)


def _error(refused: Refused, as_json: bool) -> web.Response:
    """A `google.rpc.Status`, in the form the request came in."""
    code = CODES.get(refused.status, UNKNOWN)
    if as_json:
        body, content_type = orjson.dumps({"code": code, "message": refused.message}), JSON
    else:
        body, content_type = Status(code=code, message=refused.message).SerializeToString(), PROTOBUF
    return web.Response(body=body, content_type=content_type, status=refused.status, headers=refused.headers)
