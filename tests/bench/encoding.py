"""OTLP wire bytes written by hand: several times faster than filling messages, and free of the reader under test.

The rule this file keeps: field numbers are those of opentelemetry-proto; `test_workload.py` parses what is written here
with the official classes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

Value = str | bool | int | float | tuple[str, ...]

STATUS_UNSET = b"\x7a\x00"
FLAGS = b"\x85\x01" + struct.pack("<I", 0x101)
INTERNAL, CLIENT = b"\x30\x01", b"\x30\x03"

_fixed64 = struct.Struct("<Q").pack
_double = struct.Struct("<d").pack


def varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(tag: bytes, content: bytes) -> bytes:
    """A length-delimited field."""
    return tag + varint(len(content)) + content


def any_value(value: Value) -> bytes:
    if isinstance(value, str):
        return field(b"\x0a", value.encode())
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + varint(value)
    if isinstance(value, float):
        return b"\x21" + _double(value)
    return field(b"\x2a", b"".join(field(b"\x0a", any_value(one)) for one in value))


def key_value(key: str, value: Value) -> bytes:
    return field(b"\x0a", key.encode()) + field(b"\x12", any_value(value))


def attribute(key: str, value: Value) -> bytes:
    """An attribute of a span."""
    return field(b"\x4a", key_value(key, value))


class Repeated:
    """Attributes that come again and again, written once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, type, Value], bytes] = {}

    def __call__(self, key: str, value: Value) -> bytes:
        at = key, type(value), value
        written = self._known.get(at)
        if written is None:
            written = self._known[at] = attribute(key, value)
        return written


def span(
    trace_id: bytes, span_id: bytes, parent_id: bytes, name: str, kind: bytes, start: int, end: int, attributes: bytes
) -> bytes:
    """A span without events, links and error; times in ns."""
    return b"".join(
        (
            b"\x0a\x10", trace_id, b"\x12\x08", span_id, field(b"\x22", parent_id) if parent_id else b"",
            field(b"\x2a", name.encode()), kind, b"\x39", _fixed64(start), b"\x41", _fixed64(end),
            attributes, STATUS_UNSET, FLAGS,
        )
    )  # fmt: skip


def origin(attributes: Iterable[tuple[str, Value]], scope: str, version: str) -> tuple[bytes, bytes]:
    """The resource of an instance and the scope of its spans, written."""
    resource = b"".join(field(b"\x0a", key_value(key, value)) for key, value in attributes)
    return field(b"\x0a", resource), field(b"\x0a", field(b"\x0a", scope.encode()) + field(b"\x12", version.encode()))


def request(groups: Iterable[tuple[tuple[bytes, bytes], list[bytes]]]) -> bytes:
    """An export request: (origin, its spans) each."""
    return b"".join(
        field(b"\x0a", resource + field(b"\x12", scope + b"".join(field(b"\x12", one) for one in spans)))
        for (resource, scope), spans in groups
    )
