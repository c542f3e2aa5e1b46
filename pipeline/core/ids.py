"""Ids as people write them, made comparable: conversations, business keys, subjects, tenants, in spans and outcomes.

The rule this file keeps: numeric and text ids are one, ids that say nothing are missing (RULES.md 2, 4 and 34).
"""

from __future__ import annotations

import math
import re
from hashlib import sha256

MISSING = frozenset({"", "null", "None", "undefined"})
MAX_BYTES = 256
KEPT_BYTES = 200
DIGEST_DIGITS = 16

_TRACE = re.compile(r"trace:([0-9a-fA-F]{32})")


def normalise_id(value: object) -> str:
    """The id as text, trimmed and of bounded length; empty where it is missing.

    `123`, `123.0` and `"123"` are one. A boolean, an array and a number that is not finite are no ids.
    """
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool):
        return ""
    elif isinstance(value, int):
        text = str(value)
    elif isinstance(value, float) and math.isfinite(value):
        text = str(int(value)) if value.is_integer() else repr(value)
    else:
        return ""
    if text in MISSING:
        return ""
    if len(text) * 4 <= MAX_BYTES:
        return text
    whole = text.encode()
    if len(whole) <= MAX_BYTES:
        return text
    return f"{whole[:KEPT_BYTES].decode(errors='ignore')}~{sha256(whole).hexdigest()[:DIGEST_DIGITS]}"


def trace_address(text: str) -> bytes | None:
    """The trace that an id of the form `trace:<32 hex>` names; None for any other id."""
    match = _TRACE.fullmatch(text)
    return bytes.fromhex(match[1]) if match else None


def is_ours(text: str) -> bool:
    """What begins with a zero character is a mark of our own, such as that of what is erased, and nobody's id."""
    return text.startswith("\0")


def conversation_id(value: object) -> str:
    """A conversation id found on a span. `trace:<32 hex>` is our name for a conversation without one: it is missing."""
    text = normalise_id(value)
    return "" if is_ours(text) or (text.startswith("trace:") and trace_address(text)) else text
