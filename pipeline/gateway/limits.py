"""How much a sender may ask of the gateway: bytes and items of a request, levels of nesting, bytes in flight.

The rule this file keeps: memory is bounded whatever is sent. What is over a limit is refused before it is decoded, and
all that wait for Kafka together hold no more than the room that there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

TEXT = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL
)  # to the end where it is not closed: never read twice
AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Args:
    request_bytes: of a body, unpacked.
    bytes_in_flight: of all bodies that are read or wait for Kafka.
    items: spans, log records, resources, scopes or events of a request.
    values: of a JSON body, counted at every level; each takes far more memory than it has bytes.
    depth: levels of arrays and objects in JSON; protobuf has a limit of its own, 100 messages.
    read_seconds: that a sender may take for its body.
    """

    request_bytes: int = 16 * 1024 * 1024
    bytes_in_flight: int = 64 * 1024 * 1024
    items: int = 65_536
    values: int = 1_000_000
    depth: int = 100
    read_seconds: float = 30.0


class NoRoom(Exception):
    """All that may be in flight is."""


class Held:
    """What one request holds of the room."""

    def __init__(self, room: Room) -> None:
        self._room, self.size = room, 0

    def grow(self, size: int) -> None:
        """
        Raises:
            NoRoom: there is not so much left.
        """
        if size > self._room.left:
            raise NoRoom
        self._room.left -= size
        self.size += size


class Room:
    """The bytes that may be in flight."""

    def __init__(self, size: int) -> None:
        self.left = size

    @contextmanager
    def hold(self) -> Iterator[Held]:
        """What is held is free again at the end."""
        held = Held(self)
        try:
            yield held
        finally:
            self.left += held.size


def has_many_values(body: bytes, most: int) -> bool:
    """Whether JSON has more values than that, found without decoding it; texts are left out where it matters."""
    if _commas_and_brackets(body) < most:
        return False
    return _commas_and_brackets(TEXT.sub(b"", body)) >= most


def is_deep(body: bytes, depth: int) -> bool:
    """Whether JSON that can be decoded has more levels than that.

    Brackets in texts may hide levels from the first look. That is no harm: decoders have limits of their own, and who
    reads the topic buries what is too deep for it.
    """
    return _is_deep(body, depth) and _is_deep(TEXT.sub(b"", body), depth)


def _commas_and_brackets(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _is_deep(body: bytes, depth: int) -> bool:
    brackets = body.translate(AS_BRACKETS, NO_BRACKETS)
    for _ in range(depth):
        left = brackets.replace(b"[]", b"")  # the innermost level
        if len(left) == len(brackets):
            break
        brackets = left
    return bool(brackets)


def depth_of(value: Any, limit: int) -> int:
    """How many levels of arrays and objects a decoded value has; counting ends above the limit."""
    depth, level = 0, [value]
    while depth <= limit:
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            break
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
        depth += 1
    return depth
