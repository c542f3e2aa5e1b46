"""OTLP export requests of log records, protobuf and JSON, turned into the trimmed wire messages.

The rule this file keeps: only events of the kind that is asked for are decoded, as most log records are none; what
cannot be read is told, alone, and what is of another kind is counted.
"""

from __future__ import annotations

from typing import Any

from pipeline.core.otlp import wire
from pipeline.core.otlp.parsing import parse
from pipeline.core.otlp.read_json import (
    any_value,
    first_of,
    items_in,
    parts,
    read_attributes,
    read_id,
    read_time,
    scope_name,
)
from pipeline.core.otlp.read_json import read_resource as resource_of_json
from pipeline.core.otlp.read_protobuf import cause_of, read_resource
from pipeline.core.otlp.read_protobuf import read_attributes as read_pairs
from pipeline.core.otlp.read_protobuf import scope_name as name_of_scope
from pipeline.core.otlp.reading import Batch, NotOtlp, Reading, Trouble
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES
from pipeline.core.otlp.values import read_text, write_value
from pipeline.core.otlp.wire import DecodeError

ROOTS = ("resourceLogs", "resource_logs")
SCOPES = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs")
EVENT_NAME = "event.name"
"""The attribute that named events before log records had a field for it."""
TRACE_ID_TAG = b"\x0a"  # of field 1 with a length: every span begins so, and no log record does
SPAN_BEGINS = TRACE_ID_TAG + bytes([TRACE_BYTES])


def read_logs(value: bytes, prefix: str) -> Reading:
    """The log records whose event's name begins with `prefix`; protobuf or JSON, told apart by the content.

    Raises: NotOtlp, if it is no export request of log records at all.
    """
    if value.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return _read_json(value, prefix)
        except (ValueError, RecursionError):
            pass  # a protobuf message may begin so, too
    return _read_protobuf(value, prefix)


def event_name(log: Any) -> str:
    """The name of the event that a log record in its wire form is; empty if it is none."""
    if log.event_name:
        return str(log.event_name.decode("utf-8", "replace"))
    return read_text(log.attributes.get(EVENT_NAME) or b"")


def _read_protobuf(value: bytes, prefix: str) -> Reading:
    try:
        frame = wire.Nested.FromString(value)
    except DecodeError as error:
        raise NotOtlp(f"protobuf cannot be decoded ({cause_of(error)})") from None
    if value and not frame.resource_spans:
        raise NotOtlp("the message has no resource logs")
    reading, wanted = Reading(), prefix.encode()
    for part in frame.resource_spans:
        resource: bytes | None = None
        for scope in part.scope_spans:
            logs = []
            for raw in scope.spans:
                if raw.startswith(SPAN_BEGINS):
                    raise NotOtlp("the message holds spans")
                log = _decoded(raw, reading) if wanted in raw else None
                if log is not None and event_name(log).startswith(prefix):
                    logs.append(log)
                elif log is not None or wanted not in raw:
                    reading.others += 1
            if logs:
                resource = read_resource(part.resource, reading)[0] if resource is None else resource
                reading.batches.append(Batch(resource, logs, scope=name_of_scope(scope.scope)))
    return reading


def _decoded(raw: bytes, reading: Reading) -> Any:
    """The log record; one with bad UTF-8 among its keys is repaired; None, and a trouble, for a broken one."""
    try:
        return wire.Log.FromString(raw)
    except DecodeError:
        pass
    try:
        loose = wire.LooseLog.FromString(raw)
    except DecodeError as error:
        reading.troubles.append(Trouble("log", "not_otlp", f"a log record cannot be decoded ({cause_of(error)})"))
        return None
    log = wire.Log(
        time_unix_nano=loose.time_unix_nano,
        observed_time_unix_nano=loose.observed_time_unix_nano,
        body=loose.body,
        trace_id=loose.trace_id,
        span_id=loose.span_id,
        event_name=loose.event_name,
    )
    read_pairs(loose.attributes, log.attributes, "log attribute", log.trace_id.hex(), reading)
    return log


def _read_json(value: bytes, prefix: str) -> Reading:
    reading = Reading()
    for part in parts(parse(value), ROOTS, SCOPES, "resource logs"):
        resource: bytes | None = None
        for scope in items_in(first_of(part, SCOPES)):
            logs = []
            for record in items_in(first_of(scope, ("logRecords", "log_records")) if isinstance(scope, dict) else None):
                if not isinstance(record, dict):
                    reading.troubles.append(Trouble("log", "not_otlp", "a log record is no JSON object"))
                elif _name(record).startswith(prefix):
                    logs.append(_log(record, reading))
                else:
                    reading.others += 1
            if logs:
                resource = resource_of_json(part, reading)[0] if resource is None else resource
                reading.batches.append(Batch(resource, logs, scope=scope_name(scope)))
    return reading


def _name(record: dict[str, Any]) -> str:
    named = first_of(record, ("eventName", "event_name"))
    if isinstance(named, str) and named:
        return named
    for pair in items_in(record.get("attributes")):
        if isinstance(pair, dict) and pair.get("key") == EVENT_NAME:
            value = pair.get("value")
            text = first_of(value, ("stringValue", "string_value")) if isinstance(value, dict) else None
            return text if isinstance(text, str) else ""
    return ""


def _log(record: dict[str, Any], reading: Reading) -> Any:
    log = wire.Log(
        time_unix_nano=read_time(first_of(record, ("timeUnixNano", "time_unix_nano")), reading),
        observed_time_unix_nano=read_time(
            first_of(record, ("observedTimeUnixNano", "observed_time_unix_nano")), reading
        ),
        trace_id=read_id(record, ("traceId", "trace_id"), TRACE_BYTES, reading),
        span_id=read_id(record, ("spanId", "span_id"), SPAN_BYTES, reading),
        event_name=_name(record).encode("utf-8", "replace"),
    )
    trace = log.trace_id.hex()
    read_attributes(items_in(record.get("attributes")), log.attributes, "log attribute", trace, reading)
    try:
        log.body = write_value(any_value(record.get("body"), reading))
    except (ValueError, TypeError, OverflowError, RecursionError):
        reading.troubles.append(Trouble("attribute", "bad_attribute", "a log's body cannot be read", trace))
    return log


def holds_logs(value: bytes) -> bool:
    """Whether it looks like a request of log records rather than one of spans."""
    if value.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            document = parse(value)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(document, dict):
                return first_of(document, ROOTS) is not None
            first = document[0] if isinstance(document, list) and document else None
            return isinstance(first, dict) and first_of(first, SCOPES) is not None
    try:
        frame = wire.Nested.FromString(value)
    except DecodeError:
        return False
    items = [raw for part in frame.resource_spans for scope in part.scope_spans for raw in scope.spans]
    return bool(items) and not any(raw.startswith(TRACE_ID_TAG) for raw in items)
