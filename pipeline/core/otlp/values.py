"""Attribute values: undecoded OTLP `AnyValue` bytes to plain values, and back.

The rule this file keeps: a value is never lost for its shape. Arrays of scalars stay arrays, anything nested becomes
canonical JSON text, bytes become base64, bad UTF-8 becomes U+FFFD, and no integer passes through a double.
"""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any, Generic, TypeVar

import rfc8785

from pipeline.core.otlp.wire import DecodeError, LooseAny
from schemas.span import DOLLAR, Scalar, Value

T = TypeVar("T")

SAFE_INTEGER = 2**53 - 1
MEMO_BYTES = 4096
MAX_DEPTH = 30  # levels of arrays and maps: what protobuf's own limit of 100 messages leaves room for
MAX_DOLLARS = 10_000  # of one call
MAX_COUNT = 2**40  # of the tokens of one call: what millions of calls sum up to goes into 64 bits
INT64 = range(-(2**63), 2**63)


class Memo(dict[bytes, T], Generic[T]):
    """What was read from the same bytes before. Bounded: long ones are not kept; full, it starts afresh."""

    __slots__ = ("limit", "read")

    def __init__(self, read: Any, limit: int) -> None:
        super().__init__()
        self.read, self.limit = read, limit

    def __missing__(self, raw: bytes) -> T:
        value: T = self.read(raw)
        if len(raw) <= MEMO_BYTES:
            if len(self) >= self.limit:
                self.clear()
            self[raw] = value
        return value


def read_text(raw: bytes) -> str:
    """The text of a string value; a number as text; empty for anything else."""
    if len(raw) > 1 and raw[0] == 0x0A and raw[1] == len(raw) - 2:  # field 1, one length byte, nothing after it
        return raw[2:].decode("utf-8", "replace")
    value = read_value(raw)
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, bool | list) else str(value)


def read_value(raw: bytes) -> Value:
    """Any value, flat; None for null and for what is no value at all."""
    return flat(read_python(raw))


def read_int(raw: bytes) -> int:
    """A count: zero where it is missing, negative, no whole number, or beyond all sense; numbers as text count."""
    value = read_python(raw)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= MAX_COUNT else 0


def read_cost(raw: bytes) -> int:
    """Dollars in billionths; zero where they are no positive number."""
    value = read_python(raw)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_DOLLARS:
        return 0
    return round(value * DOLLAR)


def read_python(raw: bytes) -> Any:
    try:
        return to_python(LooseAny.FromString(raw))
    except DecodeError:
        return None


def to_python(message: Any) -> Any:
    """A decoded `LooseAny` as str, int, float, bool, list, dict or None."""
    field = message.WhichOneof("value")
    if field is None:
        return None
    value = getattr(message, field)
    if field == "string_value":
        return value.decode("utf-8", "replace")
    if field == "array_value":
        return [to_python(item) for item in value.values]
    if field == "kvlist_value":
        return {entry.key.decode("utf-8", "replace"): to_python(entry.value) for entry in value.values}
    if field == "bytes_value":
        return b64encode(value).decode()
    return value


def write_value(value: Any) -> bytes:
    """The inverse of `read_python`.

    Raises: ValueError, for an integer beyond 64 bits, nesting beyond `MAX_DEPTH` and a value of a foreign type.
    """
    message = LooseAny()
    _fill(message, value, 0)
    return bytes(message.SerializeToString())


def _fill(message: Any, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        message.string_value = value.encode("utf-8", "replace")
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int_value = value
    elif isinstance(value, float):
        message.double_value = value
    elif isinstance(value, list):
        message.array_value.SetInParent()
        for item in value:
            _fill(message.array_value.values.add(), item, depth + 1)
    elif isinstance(value, dict):
        message.kvlist_value.SetInParent()
        for key, item in value.items():
            entry = message.kvlist_value.values.add(key=key.encode("utf-8", "replace"))
            _fill(entry.value, item, depth + 1)
    elif value is not None:
        raise ValueError(type(value).__name__)


def is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool | float) or (isinstance(value, int) and value in INT64)


def flat(value: Any) -> Value:
    """The value as records carry it: a scalar, a list of scalars, or canonical JSON text.

    A whole number that 64 bits do not hold is its digits.
    """
    if value is None or is_scalar(value):
        scalar: Scalar | None = value
        return scalar
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list) and all(is_scalar(item) for item in value):
        return list(value)
    return canonical_json(value).decode()


def argument_text(value: Any) -> str:
    """An argument's value in one spelling, numbers and text being one: `5`, `"5"` and `5.0` are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value.strip() if isinstance(value, str) else canonical_json(value).decode()
    return text.encode("utf-8", "replace").decode()


def canonical_json(value: Any) -> bytes:
    """RFC 8785. What it has no form for (integers beyond 2**53, NaN, infinities) becomes text, losing nothing."""
    return rfc8785.dumps(_representable(value))


def _representable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_representable(str(key)): _representable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_representable(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return str(value).encode("utf-8", "replace").decode()
