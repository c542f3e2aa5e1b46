"""A partition of a topic in memory, for the local runner: what was read and cut is forgotten."""

from __future__ import annotations

from pipeline.runners.messages import Incoming, Outgoing


class LocalLog:
    """One partition of a topic; what lies before `trim`med offsets is forgotten."""

    __slots__ = ("_first", "_messages")

    def __init__(self) -> None:
        self._first = 0
        self._messages: list[Incoming] = []

    @property
    def end(self) -> int:
        return self._first + len(self._messages)

    def append(self, message: Outgoing, record_time: int) -> None:
        at = message.topic, message.partition, self.end
        self._messages.append(Incoming(*at, record_time, message.key, message.value))

    def at(self, offset: int) -> Incoming:
        return self._messages[offset - self._first]

    def trim(self, before: int) -> None:
        del self._messages[: before - self._first]
        self._first = max(self._first, before)

    def kept(self) -> list[Incoming]:
        """What was not trimmed."""
        return self._messages
