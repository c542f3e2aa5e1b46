"""From the plain values of a row to what ClickHouse takes, column by column.

The rule this file keeps: times are integers from end to end. No datetime is made, so no time zone of a machine can
shift one, and what is written is exact to the column's milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

MILLISECOND = 1_000_000
LATEST = 10_413_792_000_000  # 2300-01-01, where DateTime64 ends

Convert = Callable[[Any], Any]


class BadValue(ValueError):
    """A value that its column cannot hold; the text names no content."""


def converter(column_type: str) -> Convert:
    """How a value becomes one of `column_type`, as `system.columns` spells it.

    Raises:
        KeyError: no table of ours has such a type.
    """
    name, _, inner = column_type.partition("(")
    inner = inner.removesuffix(")")
    if name == "LowCardinality":
        return converter(inner)
    if name == "Nullable":
        convert = converter(inner)
        return lambda value: None if value is None else convert(value)
    if name == "Array":
        return _array(converter(inner))
    if name.startswith("UInt"):
        return _whole(0, 2 ** int(name[4:]) - 1)
    if name.startswith("Int"):
        bits = int(name[3:]) - 1
        return _whole(-(2**bits), 2**bits - 1)
    return PLAIN[name]


def _array(convert: Convert) -> Convert:
    def to_array(value: Any) -> list[Any]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set | frozenset):
            raise BadValue(f"{type(value).__name__} is no list")
        return [convert(item) for item in value]

    return to_array


def _whole(lowest: int, highest: int) -> Convert:
    def to_whole(value: Any) -> int:
        if not isinstance(value, int):
            raise BadValue(f"{type(value).__name__} is no whole number")
        if not lowest <= value <= highest:
            raise BadValue(f"a number outside {lowest} to {highest}")
        return int(value)

    return to_whole


def _to_text(value: Any) -> str:
    """Ids come as bytes and are kept as hex; half a surrogate pair cannot be written and is replaced."""
    if isinstance(value, bytes):
        return value.hex()
    if not isinstance(value, str):
        raise BadValue(f"{type(value).__name__} is no text")
    return value.encode("utf-8", "replace").decode() if not value.isascii() else str(value)


def _to_bool(value: Any) -> bool:
    if value in (0, 1) and isinstance(value, int):
        return bool(value)
    raise BadValue(f"{type(value).__name__} is neither true nor false")


def _to_number(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    raise BadValue(f"{type(value).__name__} is no number")


def _to_milliseconds(value: Any) -> int:
    if not isinstance(value, int):
        raise BadValue(f"{type(value).__name__} is no time in nanoseconds")
    ticks = value // MILLISECOND
    if not 0 <= ticks < LATEST:
        raise BadValue("a time outside 1970 to 2299")
    return ticks


def _to_map(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else value
    try:
        return {_to_text(name): _to_text(text) for name, text in pairs}
    except (TypeError, ValueError) as error:
        raise BadValue("no map of texts") from error


PLAIN: dict[str, Convert] = {
    "String": _to_text,
    "Bool": _to_bool,
    "Float64": _to_number,
    "DateTime64": _to_milliseconds,
    "Map": _to_map,
}
