"""OTLP export requests in JSON, in the shapes in which they are really sent, turned into the trimmed wire messages.

The rule this file keeps: ids in any known encoding, 64-bit numbers as text or as numbers, enums by name or number; a
bad attribute fails alone; and no id, time or count passes through a double.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.core.otlp import wire
from pipeline.core.otlp.parsing import parse
from pipeline.core.otlp.reading import Batch, NotOtlp, Reading, Trouble, key_in_words
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES, from_text
from pipeline.core.otlp.values import write_value
from schemas.span import SpanFlag

ROOTS = ("resourceSpans", "resource_spans", "batches")  # `batches`: as Tempo's API gives traces out
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
BESIDE_SCOPES = frozenset({"resource", "schemaUrl", "schema_url"})
STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
MAX_NAMED = 3
MAX_NUMBER = 40  # characters: more than any 64-bit integer needs, and no exponent that fills the memory
MAX_UINT64 = 2**64 - 1


def read_json(value: bytes) -> Reading:
    """Raises: NotOtlp, if it is no export request of spans; ValueError or RecursionError, if it is no JSON at all."""
    reading = Reading()
    for part in parts(parse(value), ROOTS, SCOPES, "resource spans"):
        encoded, flags = read_resource(part, reading)
        for scope in items_in(first_of(part, SCOPES)):
            name = scope_name(scope)
            for span in items_in(scope.get("spans") if isinstance(scope, dict) else None):
                if not isinstance(span, dict):
                    reading.troubles.append(Trouble("span", "not_otlp", "a span is no JSON object"))
                    continue
                message, own_flags = _span(span, reading)
                reading.batches.append(Batch(encoded, (message,), flags | own_flags, name))
    return reading


def parts(document: Any, roots: tuple[str, ...], scopes: tuple[str, ...], what: str) -> Iterator[dict[str, Any]]:
    """What an export request holds, each of one resource. Raises: NotOtlp, at the first that is not `what`."""
    if isinstance(document, dict):
        root = first_of(document, roots)
        if root is None:
            if not document:
                return
            named = ", ".join(key_in_words(key) for key in list(document)[:MAX_NAMED])
            raise NotOtlp(f"a JSON object without {roots[0]}; it has {named}")
        document = root
    if not isinstance(document, list):
        raise NotOtlp(f"JSON, but no list of {what}")
    for part in document:
        if not isinstance(part, dict):
            raise NotOtlp(f"JSON, but its {what} are no objects")
        _require_scopes(part, scopes)
        yield part


def read_resource(part: dict[str, Any], reading: Reading) -> tuple[bytes, int]:
    """The resource of a part in its wire form, and the flags of its attributes."""
    resource, given = wire.Resource(), part.get("resource")
    held = items_in(given.get("attributes")) if isinstance(given, dict) else []
    flags = read_attributes(held, resource.attributes, "resource attribute", "", reading)
    return bytes(resource.SerializeToString(deterministic=True)), flags


def _require_scopes(part: dict[str, Any], names: tuple[str, ...]) -> None:
    """A bare array names no signal: what it holds must."""
    others = [key for key in part if key not in BESIDE_SCOPES]
    if others and part.keys().isdisjoint(names):
        raise NotOtlp(f"JSON without {names[0]}; it has {', '.join(key_in_words(key) for key in others[:MAX_NAMED])}")


def scope_name(scope: Any) -> str:
    """The name of an instrumentation; empty where there is none."""
    held = first_of(scope, ("scope", "instrumentationLibrary")) if isinstance(scope, dict) else None
    name = held.get("name") if isinstance(held, dict) else None
    return name if isinstance(name, str) else ""


def first_of(document: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((document[name] for name in names if document.get(name) is not None), None)


def items_in(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _span(span: dict[str, Any], reading: Reading) -> tuple[Any, int]:
    message = wire.Span(
        trace_id=read_id(span, ("traceId", "trace_id"), TRACE_BYTES, reading),
        span_id=read_id(span, ("spanId", "span_id"), SPAN_BYTES, reading),
        parent_span_id=read_id(span, ("parentSpanId", "parent_span_id"), SPAN_BYTES, reading),
        start_time_unix_nano=read_time(first_of(span, ("startTimeUnixNano", "start_time_unix_nano")), reading),
        end_time_unix_nano=read_time(first_of(span, ("endTimeUnixNano", "end_time_unix_nano")), reading),
    )
    state = first_of(span, ("traceState", "trace_state"))
    if isinstance(state, str):
        message.trace_state = state.encode("utf-8", "replace")
    trace = message.trace_id.hex()
    flags = read_attributes(items_in(span.get("attributes")), message.attributes, "attribute", trace, reading)
    name = span.get("name")
    flags |= _text(name, "the span's name", trace, reading)
    message.name = name.encode("utf-8", "replace") if isinstance(name, str) else b""
    status = span.get("status")
    if isinstance(status, dict):
        text = status.get("message")
        flags |= _text(text, "the status message", trace, reading)
        code = status.get("code")
        number = STATUS.get(code) if isinstance(code, str) and code in STATUS else _whole(code)
        encoded = text.encode("utf-8", "replace") if isinstance(text, str) else b""
        message.status = wire.Status(
            code=number if number in STATUS.values() else 0, message=encoded
        ).SerializeToString()
    for event in items_in(span.get("events")):
        if isinstance(event, dict):
            called = event.get("name")
            held = wire.Event(
                name=called.encode("utf-8", "replace") if isinstance(called, str) else b"",
                time_unix_nano=read_time(first_of(event, ("timeUnixNano", "time_unix_nano")), reading),
            )
            flags |= read_attributes(
                items_in(event.get("attributes")), held.attributes, "event attribute", trace, reading
            )
            message.events.append(held.SerializeToString())
    for link in items_in(span.get("links")):
        if isinstance(link, dict):
            linked = wire.Link(trace_id=read_id(link, ("traceId", "trace_id"), TRACE_BYTES, reading))
            message.links.append(linked.SerializeToString())
    return message, flags


def read_id(document: dict[str, Any], names: tuple[str, ...], size: int, reading: Reading) -> bytes:
    """The id, or one byte where there is something that is none, so that it is not taken for a missing one."""
    raw, encoding = from_text(first_of(document, names), size)
    if encoding == "bad":
        return b"\0"
    if encoding:
        reading.notes[f"id_{encoding}"] += 1
    return raw


def _whole(value: Any) -> int | None:
    """A whole number that was written as a number or as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and 0 < len(value) <= MAX_NUMBER:
        try:
            number = Decimal(value)
        except InvalidOperation:
            return None
        if number.is_finite() and number.adjusted() < MAX_NUMBER and number == number.to_integral_value():
            return int(number)
    return None


def read_time(value: Any, reading: Reading) -> int:
    number = 0 if value is None else _whole(value)
    if number is None or not 0 <= number <= MAX_UINT64:
        reading.notes["bad_time"] += 1
        return 0
    return number


def read_attributes(pairs: list[Any], into: Any, what: str, trace: str, reading: Reading) -> int:
    flags = 0
    for pair in pairs:
        key = pair.get("key") if isinstance(pair, dict) else None
        if not isinstance(key, str):
            reading.troubles.append(Trouble("attribute", "bad_attribute", f"{what} without a key", trace))
            continue
        try:
            value = any_value(pair.get("value"), reading)
            raw = write_value(value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            detail = f"{what} {key_in_words(key)}: its value cannot be read"
            reading.troubles.append(Trouble("attribute", "bad_attribute", detail, trace))
            continue
        if _is_bad(key) or _is_bad(value):
            flags |= SpanFlag.BAD_UTF8
            detail = f"{what} {key_in_words(key)} is not valid UTF-8; read with replacement characters"
            reading.troubles.append(Trouble("attribute", "bad_utf8", detail, trace))
            key = key.encode("utf-8", "replace").decode()
        into[key] = raw
    return flags


def any_value(value: Any, reading: Reading) -> Any:
    """An `AnyValue` object. Of several value fields the first of this order holds, counted."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError("no value object")
    given = {name.replace("_", "").lower(): held for name, held in value.items() if held is not None}
    if len(given) > 1:
        reading.notes["several_values"] += 1
    for name, read in _READERS.items():
        if name in given:
            return read(given[name], reading)
    if given:
        raise ValueError("no known value field")
    return None


def _string(value: Any, _: Reading) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return str(value)


def _bool(value: Any, _: Reading) -> bool:
    known = {True: True, False: False, "true": True, "false": False}
    return known[value] if isinstance(value, bool | str) and value in known else _raise()


def _int(value: Any, _: Reading) -> int:
    number = _whole(value)
    return _raise() if number is None else number


def _double(value: Any, _: Reading) -> float:
    return float(value) if isinstance(value, int | str) and not isinstance(value, bool) else _raise()


def _array(value: Any, reading: Reading) -> list[Any]:
    return [any_value(item, reading) for item in items_in(value.get("values"))] if isinstance(value, dict) else _raise()


def _kvlist(value: Any, reading: Reading) -> dict[str, Any]:
    pairs = items_in(value.get("values")) if isinstance(value, dict) else []
    return {
        str(pair["key"]): any_value(pair.get("value"), reading)
        for pair in pairs
        if isinstance(pair, dict) and "key" in pair
    }


def _bytes(value: Any, _: Reading) -> str:
    b64decode(_string(value, _), validate=True)
    return str(value)


def _raise() -> Any:
    raise ValueError("bad value")


_READERS = {
    "stringvalue": _string,
    "boolvalue": _bool,
    "intvalue": _int,
    "doublevalue": _double,
    "arrayvalue": _array,
    "kvlistvalue": _kvlist,
    "bytesvalue": _bytes,
}


def _is_bad(value: Any) -> bool:
    """Whether text in it came from bytes that were no UTF-8."""
    if isinstance(value, str):
        return not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, list):
        return any(_is_bad(item) for item in value)
    return isinstance(value, dict) and any(_is_bad(key) or _is_bad(item) for key, item in value.items())


def _text(value: Any, what: str, trace: str, reading: Reading) -> int:
    if isinstance(value, str) and _is_bad(value):
        reading.troubles.append(Trouble("attribute", "bad_utf8", f"{what} is not valid UTF-8", trace))
        return SpanFlag.BAD_UTF8
    return 0
