"""A broker in memory, with what real ones do to us: retention, and others who write in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence

from pipeline.runners.messages import Incoming, Outgoing


class MemoryLog:
    """`MessageLog`; `before_append` is called with each batch before it is written, and may write or raise."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], list[Incoming]] = defaultdict(list)
        self.first: dict[tuple[str, int], int] = defaultdict(int)
        self.before_append: Callable[[Sequence[Outgoing]], None] | None = None
        self.reads: list[tuple[str, int, int, int]] = []

    async def append(self, messages: Sequence[Outgoing]) -> list[int]:
        hook, self.before_append = self.before_append, None
        if hook is not None:
            hook(messages)
        return [self.put(one.topic, one.partition, one.value, one.key) for one in messages]

    def put(self, topic: str, partition: int, value: bytes | None, key: bytes | None = None) -> int:
        log = self.logs[topic, partition]
        offset = len(log)
        log.append(Incoming(topic, partition, offset, (offset + 1) * 1_000_000_000, key, value))
        return offset

    async def read(self, topic: str, partition: int, start: int, stop: int) -> AsyncIterator[Incoming]:
        self.reads.append((topic, partition, start, stop))
        for one in self.logs[topic, partition][max(start, self.first[topic, partition]) : stop]:
            yield one

    async def begin(self, topic: str, partition: int) -> int:
        return self.first[topic, partition]

    async def end(self, topic: str, partition: int) -> int:
        return len(self.logs[topic, partition])

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        return [one.value for one in self.logs[topic, partition]]
