"""OTLP export requests in protobuf.

The rule this file keeps: a request is read as a whole at full speed; only if it is not valid as OTLP is it read again
span by span and attribute by attribute, so that bad UTF-8 or a broken span costs only itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from pipeline.core.otlp import wire
from pipeline.core.otlp.reading import Batch, NotOtlp, Reading, Trouble, key_in_words
from pipeline.core.otlp.values import to_python, write_value
from pipeline.core.otlp.wire import DecodeError
from schemas.span import SpanFlag

_valid: Callable[[bytes], Any] = ExportTraceServiceRequest.FromString
_valid_value: Callable[[bytes], Any] = AnyValue.FromString


def read_protobuf(value: bytes) -> Reading:
    """Raises: NotOtlp, if it is no export request of spans at all."""
    try:
        _valid(value)  # all text of a request is checked here, in C; it is 1 us a span
        request = wire.Request.FromString(value)
    except DecodeError:
        return _read_tolerantly(value)
    batches = [
        Batch(part.resource, scope.spans, scope=scope.scope.name.decode("utf-8", "replace"))
        for part in request.resource_spans
        for scope in part.scope_spans
    ]
    if value and not request.resource_spans:
        raise NotOtlp("the message has no resource spans")
    return Reading(batches)


def _read_tolerantly(value: bytes) -> Reading:
    try:
        nested = wire.Nested.FromString(value)
    except DecodeError as error:
        raise NotOtlp(f"protobuf cannot be decoded ({cause_of(error)})") from None
    if not nested.resource_spans:
        raise NotOtlp("the message has no resource spans")
    reading = Reading()
    for part in nested.resource_spans:
        resource, bad_utf8 = read_resource(part.resource, reading)
        for scope in part.scope_spans:
            name = scope_name(scope.scope)
            for raw in scope.spans:
                try:
                    loose = wire.LooseSpan.FromString(raw)
                except DecodeError as error:
                    reading.troubles.append(
                        Trouble("span", "not_otlp", f"a span cannot be decoded ({cause_of(error)})")
                    )
                    continue
                span, flags = _span(loose, reading)
                reading.batches.append(Batch(resource, (span,), flags | bad_utf8, name))
    return reading


def scope_name(raw: bytes) -> str:
    """The name of an instrumentation; empty where it cannot be read, as it is a hint and no more."""
    try:
        return str(wire.Scope.FromString(raw).name.decode("utf-8", "replace"))
    except DecodeError:
        return ""


def cause_of(error: Exception) -> str:
    return str(error).split(": ")[-1][:100]


def read_resource(raw: bytes, reading: Reading) -> tuple[bytes, int]:
    try:
        loose = wire.LooseAttributes.FromString(raw)
    except DecodeError:
        reading.troubles.append(Trouble("attribute", "bad_attribute", "a resource cannot be decoded"))
        return b"", 0
    resource = wire.Resource()
    flags = read_attributes(loose.attributes, resource.attributes, "resource attribute", "", reading)
    return resource.SerializeToString(deterministic=True), flags


def _span(loose: Any, reading: Reading) -> tuple[Any, int]:
    trace = loose.trace_id.hex()
    span = wire.Span(
        trace_id=loose.trace_id,
        span_id=loose.span_id,
        trace_state=loose.trace_state,
        parent_span_id=loose.parent_span_id,
        name=loose.name,
        start_time_unix_nano=loose.start_time_unix_nano,
        end_time_unix_nano=loose.end_time_unix_nano,
        status=loose.status,
    )
    flags = read_attributes(loose.attributes, span.attributes, "attribute", trace, reading)
    flags |= _text(loose.name, "the span's name", trace, reading)
    for raw in loose.links:
        try:
            wire.Link.FromString(raw)
        except DecodeError:
            reading.troubles.append(Trouble("attribute", "bad_attribute", "a link cannot be decoded", trace))
            continue
        span.links.append(raw)
    for raw in loose.events:
        event = wire.Event()
        try:
            loose_event = wire.LooseEvent.FromString(raw)
        except DecodeError:
            reading.troubles.append(Trouble("attribute", "bad_attribute", "an event cannot be decoded", trace))
            continue
        event.name, event.time_unix_nano = loose_event.name, loose_event.time_unix_nano
        flags |= _text(loose_event.name, "an event's name", trace, reading)
        flags |= read_attributes(loose_event.attributes, event.attributes, "event attribute", trace, reading)
        span.events.append(event.SerializeToString())
    try:
        flags |= _text(wire.Status.FromString(loose.status).message, "the status message", trace, reading)
    except DecodeError:
        reading.troubles.append(Trouble("attribute", "bad_attribute", "the status cannot be decoded", trace))
        span.status = b""
    return span, flags


def read_attributes(pairs: Any, into: Any, what: str, trace: str, reading: Reading) -> int:
    """Fill the map `into`; repaired where the text is bad, left out where the value is unreadable."""
    flags = 0
    for pair in pairs:
        key, raw = pair.key, pair.value
        try:
            name = key.decode()
            _valid_value(raw)
        except (UnicodeDecodeError, DecodeError):
            try:
                raw = write_value(to_python(wire.LooseAny.FromString(raw)))
            except (DecodeError, ValueError):
                detail = f"{what} {key_in_words(key)}: its value cannot be decoded"
                reading.troubles.append(Trouble("attribute", "bad_attribute", detail, trace))
                continue
            flags |= SpanFlag.BAD_UTF8
            name = key.decode("utf-8", "replace")
            detail = f"{what} {key_in_words(key)} is not valid UTF-8; read with replacement characters"
            reading.troubles.append(Trouble("attribute", "bad_utf8", detail, trace))
        into[name] = raw
    return flags


def _text(raw: bytes, what: str, trace: str, reading: Reading) -> int:
    try:
        raw.decode()
    except UnicodeDecodeError:
        reading.troubles.append(Trouble("attribute", "bad_utf8", f"{what} is not valid UTF-8", trace))
        return SpanFlag.BAD_UTF8
    return 0
