"""The export requests that a file holds, in the forms in which people keep them.

```
one request, protobuf or JSON                      as an exporter sends it
a bare JSON array of resource spans                as rotel writes it to Kafka
JSON requests, one a line                          the Collector's file exporter
each request after its length, four bytes          the same, protobuf
each request after its length, a varint            protobuf's own delimited streams
```
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.core.otlp import wire

JSON_STARTS = (b"{", b"[")
BOM = b"\xef\xbb\xbf"
LENGTH_BYTES = 4
MAX_VARINT_BYTES = 5


def requests_in(content: bytes) -> list[bytes]:
    """The requests; the content itself, where it is of no such form, so that what reads it says what is wrong."""
    text = content.removeprefix(BOM).strip()
    if text.startswith(JSON_STARTS):
        lines = [line for line in text.splitlines() if line.strip()]
        several = len(lines) > 1 and all(_is_whole(line.strip()) for line in lines)
        return lines if several else [content]
    if not _is_request(content):
        for length in (_fixed_length, _varint_length):
            parts = _cut(content, length)
            if len(parts) > 0 and all(_is_request(part) for part in parts):
                return parts
    return [content]


def _is_whole(line: bytes) -> bool:
    return (line[:1], line[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def _is_request(content: bytes) -> bool:
    try:
        return bool(wire.Nested.FromString(content).resource_spans)
    except wire.DecodeError:
        return False


def _cut(content: bytes, length: Callable[[bytes, int], tuple[int, int]]) -> list[bytes]:
    """The parts, if lengths and parts fill the content to its last byte; none otherwise."""
    parts, at = [], 0
    while at < len(content):
        size, start = length(content, at)
        if size <= 0 or start + size > len(content):
            return []
        parts.append(content[start : start + size])
        at = start + size
    return parts


def _fixed_length(content: bytes, at: int) -> tuple[int, int]:
    return int.from_bytes(content[at : at + LENGTH_BYTES], "big"), at + LENGTH_BYTES


def _varint_length(content: bytes, at: int) -> tuple[int, int]:
    size = 0
    for number, byte in enumerate(content[at : at + MAX_VARINT_BYTES]):
        size |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return size, at + number + 1
    return 0, at
