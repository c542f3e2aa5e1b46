"""Reads a value at a place in an attribute's JSON, and nothing else of it: what surrounds it is skipped undecoded.

The rule this file keeps: of content only ids, counts and names at places that a dialect's table knows are ever kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pipeline.core.dialects.messages import UNKNOWN
from pipeline.core.dialects.table import Inside, Source, Total
from pipeline.core.otlp.values import MAX_COUNT, read_python, write_value

Path = tuple[str | int, ...]
Meaning = Callable[[bytes], Any]

MAX_NUMBERED = 64  # messages, and tool calls of one: more than models answer with

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_whole = msgspec.json.Decoder().decode


def key_of(source: Source) -> str:
    return source if isinstance(source, str) else source.key


def reader_of(source: Source, meaning: Meaning) -> Meaning:
    """How a source's bytes become a value; None where the place that it names says nothing."""
    if isinstance(source, Inside):
        path = source.path
        return lambda raw: None if (found := value_at(raw, path)) is None else meaning(_written(found))
    if isinstance(source, Total):
        first, *others = source.names
        return lambda raw: _total(raw, first, others)
    return meaning


def value_at(raw: bytes, path: Path) -> Any:
    """The value at the path; text that is no JSON is a value itself, with nothing inside."""
    value = read_python(raw)
    if not isinstance(value, str):
        return _step_into(value, path)
    text: Any = value.encode("utf-8", "replace")
    try:
        for step in path:
            text = _array(text)[step] if isinstance(step, int) else _object(text)[step]
        return _whole(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError):
        return None if path else value


def list_length(raw: bytes, path: Path) -> int | None:
    found = value_at(raw, path)
    return len(found) if isinstance(found, list) else None


def names_in(raw: bytes) -> list[str]:
    """The texts of a list, given as an array or as JSON."""
    found = value_at(raw, ())
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def numbered(keys: frozenset[str], key: str) -> int:
    """How many tool calls are flattened into attributes; `UNKNOWN` where there are none: the answer may be left out."""
    found = 0
    for message in range(MAX_NUMBERED):
        call = 0
        while call < MAX_NUMBERED and key.format(message=message, call=call) in keys:
            call += 1
        if not call and message:
            break
        found += call
    return found or UNKNOWN


def _written(value: Any) -> bytes:
    """As an attribute's value; nothing where it is none, as JSON may hold what attributes do not."""
    try:
        return write_value(value)
    except (ValueError, OverflowError):
        return b""


def _step_into(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _total(raw: bytes, first: str, others: list[str]) -> int | None:
    counts = value_at(raw, ())
    if not isinstance(counts, dict) or not isinstance(counts.get(first), int):
        return None
    parts = (counts.get(name) for name in (first, *others))
    total = sum(part for part in parts if isinstance(part, int) and not isinstance(part, bool) and part > 0)
    return total if total <= MAX_COUNT else 0
