"""Trace and span ids in the encodings in which they are really sent, as raw bytes.

The rule this file keeps: the same trace has the same id by every path; what cannot be an id never becomes one.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable

TRACE_BYTES = 16
SPAN_BYTES = 8

_HEX = re.compile(r"[0-9a-fA-F]+")


def from_text(text: object, size: int) -> tuple[bytes, str]:
    """The id of `size` bytes in JSON text, and how it was encoded: empty for hex, as the specification asks.

    Known besides: base64; base64 of the hex text; and hex of ids that were hex once and were read as base64 on the way,
    half as long again. `b""` with the encoding `""` is a missing id; with `bad`, one that nothing explains.
    """
    if not isinstance(text, str):
        return b"", "" if text is None else "bad"
    text = text.strip()
    if not text:
        return b"", ""
    if len(text) == 2 * size and _HEX.fullmatch(text):
        return bytes.fromhex(text), ""
    if len(text) == 3 * size and _HEX.fullmatch(text):
        inverted = _from_hex_read_as_base64(bytes.fromhex(text), size)
        if inverted:
            return inverted, "hex_as_base64"
    bare = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        raw = b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b"", "bad"
    if len(raw) == size:
        return raw, "base64"
    return from_bytes(raw, size)


def from_bytes(raw: bytes, size: int) -> tuple[bytes, str]:
    """The same for ids in protobuf, where they should be `size` bytes."""
    if len(raw) == size or not raw:
        return raw, ""
    if len(raw) == 2 * size and raw.isascii() and _HEX.fullmatch(raw.decode()):
        return bytes.fromhex(raw.decode()), "hex_text"
    inverted = _from_hex_read_as_base64(raw, size)
    return (inverted, "hex_as_base64") if inverted else (b"", "bad")


def _from_hex_read_as_base64(raw: bytes, size: int) -> bytes:
    text = b64encode(raw).decode()
    return bytes.fromhex(text) if len(text) == 2 * size and _HEX.fullmatch(text) else b""


def repaired(
    trace_id: bytes, span_id: bytes, parent_id: bytes, notes: Callable[[str], None]
) -> tuple[bytes, bytes, bytes, str]:
    """The three ids of a span where one of them is not as it should be, and why the span is unusable (else empty).

    A parent id that is none leaves the span without a parent, which is counted.
    """
    trace_id, trace_encoding = from_bytes(trace_id, TRACE_BYTES)
    span_id, span_encoding = from_bytes(span_id, SPAN_BYTES)
    parent_id, parent_encoding = from_bytes(parent_id, SPAN_BYTES)
    for what, raw, encoding in (("trace", trace_id, trace_encoding), ("span", span_id, span_encoding)):
        if encoding == "bad":
            return trace_id, span_id, parent_id, f"the {what} id is no id of the right length in any known encoding"
        if not any(raw):
            return trace_id, span_id, parent_id, f"the {what} id is {'all zeros' if raw else 'missing'}"
    for encoding in (trace_encoding, span_encoding):
        if encoding:
            notes(f"id_{encoding}")
    if parent_encoding == "bad":
        notes("bad_parent_id")
    return trace_id, span_id, parent_id if any(parent_id) else b"", ""
