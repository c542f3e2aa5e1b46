"""An OTLP request as several smaller ones, where Kafka would not take it as one record.

The rule this file keeps: each item is in exactly one part, with its resource and its scope. An item that is too large
by itself is left out and counted; it never takes others along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from google.protobuf.message import Message

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class Levels:
    """The names of the three nested lists: resources, scopes, items."""

    protobuf: tuple[str, str, str]
    json: tuple[str, str, str]


def is_nested(message: Mapping[str, Any], levels: Sequence[str]) -> bool:
    """Whether each list that is there is a list of objects; the ones that are missing or null count as empty."""
    if not levels:
        return True
    inner = message.get(levels[0])
    if inner is None:
        return True
    return isinstance(inner, list) and all(isinstance(item, dict) and is_nested(item, levels[1:]) for item in inner)


def cut_protobuf(message: Message, levels: Sequence[str], limit: int) -> tuple[list[bytes], list[Any]]:
    """The parts, encoded, and the items that were left out."""

    def halves(request: Message, path: Sequence[str]) -> tuple[Message, Message]:
        pair = []
        for keep_first in (True, False):
            half = type(request)()
            half.CopyFrom(request)
            inner: Any = half
            for name in path[:-1]:
                inner = getattr(inner, name)[0]
            items = getattr(inner, path[-1])
            middle = len(items) // 2
            del items[slice(middle, None) if keep_first else slice(0, middle)]
            pair.append(half)
        return pair[0], pair[1]

    return _cut(message, levels, limit, lambda m: m.SerializeToString(), getattr, halves)


def cut_json(message: dict[str, Any], levels: Sequence[str], limit: int) -> tuple[list[bytes], list[Any]]:
    """The parts, encoded, and the items that were left out."""

    def halves(request: dict[str, Any], path: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        name, *deeper = path
        items = request[name]
        if deeper:
            first, second = halves(items[0], deeper)
            return {**request, name: [first]}, {**request, name: [second]}
        middle = len(items) // 2
        return {**request, name: items[:middle]}, {**request, name: items[middle:]}

    return _cut(message, levels, limit, orjson.dumps, lambda m, name: m.get(name) or [], halves)


def _cut(
    request: Request,
    levels: Sequence[str],
    limit: int,
    encode: Callable[[Request], bytes],
    items_of: Callable[[Any, str], Sequence[Any]],
    halves: Callable[[Request, Sequence[str]], tuple[Request, Request]],
) -> tuple[list[bytes], list[Any]]:
    """Halve at the outermost list that has more than one element, until each part is small enough."""
    parts: list[bytes] = []
    left_out: list[Any] = []
    waiting = [request]
    while waiting:
        part = waiting.pop()
        encoded = encode(part)
        if len(encoded) <= limit:
            parts.append(encoded)
            continue
        inner: Any = part
        for depth, name in enumerate(levels):
            items = items_of(inner, name)
            if len(items) > 1:
                first, second = halves(part, levels[: depth + 1])
                waiting += [second, first]
                break
            if not items:
                break
            inner = items[0]
        else:
            left_out.append(inner)
    return parts, left_out
