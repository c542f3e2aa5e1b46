"""What lies on a `-snap` topic, and how state is read back from it.

A partition of it holds, in log order: an *open* record from each worker that took the partition over; *blocks* of keys
with their encoded state; a *marker* after the blocks of a cut, with the input offset up to which they hold; and now and
then all keys as a *full snapshot*, whose first block's offset every later marker names.

The rules this file keeps: blocks count only when their marker follows; what carries another number than that of the
last open record was written by a worker that had lost the partition, and does not count. The number of an open record
is one more than that of the one before, so that all who read the log give it the same number.
"""

from __future__ import annotations

import msgspec

from pipeline.errors import SnapshotFormat, SnapshotLost
from pipeline.runners.messages import MAX_BYTES, Incoming, MessageLog
from schemas.envelope import Mark

OPEN, BLOCK, MARKER = b"o", b"b", b"c"
FORMAT = 4
"""Of the states that are written; only this one is read. 2: what has settled is packed. 4: a trace's id is a key
without a name."""
FIRST_REACH = 64  # messages looked at first when the newest marker is searched from the end


class Opened(msgspec.Struct, array_like=True, frozen=True):
    """Who took the partition over; for people, the number follows from the log."""

    worker: str


class Block(msgspec.Struct, array_like=True, frozen=True):
    """Some keys of a cut.

    Args:
        restores: the number of the writer's open record.
    """

    restores: int
    states: list[tuple[bytes, bytes]]
    gone: list[bytes]


class Marker(msgspec.Struct, array_like=True, frozen=True):
    """The end of a cut.

    Args:
        applied: the input offset up to which (inclusive) the state holds.
        emission: the last version number given out.
        watermark, marks: what had been heard of event time.
        start: offset of the first block of the last full snapshot.
        format: of the states in the blocks before it; 1 where none is written. What a later format adds comes after
            it, so that every version reads at least the number.
    """

    restores: int
    applied: int
    emission: int
    watermark: int
    marks: list[Mark]
    start: int
    format: int = 1


decode_block = msgspec.msgpack.Decoder(Block).decode
_decode_marker = msgspec.msgpack.Decoder(Marker).decode


def decode_marker(message: Incoming) -> Marker:
    """The marker that a message carries.

    Raises:
        SnapshotFormat: its blocks are of a format that this version does not read.
    """
    marker = _decode_marker(message.value or b"")
    if marker.format != FORMAT:
        raise SnapshotFormat(message.topic, message.partition, message.offset, marker.format, FORMAT)
    return marker


class Replay:
    """The state that a stretch of the log leaves; the stretch starts at a full snapshot or at the log's beginning.

    Args:
        restores: the number that holds at the start; `None` takes it from the first block.
    """

    __slots__ = ("_pending", "gone", "grown", "marker", "restores", "states", "touched")

    def __init__(self, restores: int | None = None) -> None:
        self.restores = restores
        self.states: dict[bytes, bytes] = {}
        self.marker: Marker | None = None
        self.grown = 0  # bytes of blocks since the full snapshot began
        self.touched: set[bytes] = set()  # keys written since a reader last emptied this
        self.gone: set[bytes] = set()
        self._pending: list[Block] = []

    def take(self, message: Incoming) -> None:
        """One message of the log, in order."""
        value = message.value or b""
        if message.key == OPEN:
            self.restores = (self.restores or 0) + 1
            self._pending.clear()
        elif message.key == BLOCK:
            block = decode_block(value)
            if self.restores is None:
                self.restores = block.restores
            if block.restores == self.restores:
                self._pending.append(block)
                self.grown += len(value)
        elif message.key == MARKER:
            marker = decode_marker(message)
            if marker.restores == self.restores:
                self._commit(marker)

    def _commit(self, marker: Marker) -> None:
        if self.marker is not None and marker.start != self.marker.start:
            self.gone.update(self.states)
            self.states.clear()
            self.grown = 0
        for block in self._pending:
            for key, state in block.states:
                self.states[key] = state
                self.touched.add(key)
                self.gone.discard(key)
            for key in block.gone:
                if self.states.pop(key, None) is not None:
                    self.gone.add(key)
                self.touched.discard(key)
        self._pending.clear()
        self.marker = marker


async def read_back(log: MessageLog, topic: str, partition: int, stop: int) -> Replay:
    """The state at offset `stop` of a partition of a `-snap` topic.

    A snapshot that the newest marker names may be that of a worker who lost the partition between its last block and
    its marker. Then no marker of it counts, or one that counts names an older snapshot: it is read from there again.

    Raises:
        SnapshotLost: retention deleted the start of what would be needed.
    """
    start = await newest_start(log, topic, partition, stop)
    while True:
        replay = Replay(0) if start is None else Replay()
        async for message in log.read(topic, partition, start or 0, stop):
            replay.take(message)
        if start is None:
            return replay
        if replay.marker is None:
            start = await newest_start(log, topic, partition, start)
        elif replay.marker.start < start:
            start = replay.marker.start
        else:
            return replay


async def newest_start(log: MessageLog, topic: str, partition: int, stop: int) -> int | None:
    """Where the newest full snapshot that a marker before `stop` names starts; `None` when there never was one.

    Looks back from the end, each time four times as far.
    """
    first = await log.begin(topic, partition)
    upper, reach = stop, FIRST_REACH
    while upper > first:
        lower = max(first, upper - reach)
        starts = [
            decode_marker(message).start
            async for message in log.read(topic, partition, lower, upper)
            if message.key == MARKER
        ]
        if starts:
            if max(starts) < first:
                raise SnapshotLost(
                    f"{topic}[{partition}]: the newest full snapshot began at offset {max(starts)}, but the log now "
                    f"starts at {first}: the stage stood still for longer than the topic's retention"
                )
            return max(starts)
        upper, reach = lower, reach * 4
    if first > 0:
        raise SnapshotLost(f"{topic}[{partition}]: the log starts at {first} and holds no marker")
    return None


def blocks(restores: int, states: list[tuple[bytes, bytes]], gone: list[bytes]) -> list[bytes]:
    """Encoded blocks of about `MAX_BYTES` each; none when nothing changed."""
    encode = msgspec.msgpack.encode
    made: list[bytes] = []
    chunk: list[tuple[bytes, bytes]] = []
    size = 0
    for key, state in states:
        if chunk and size + len(key) + len(state) > MAX_BYTES:
            made.append(encode(Block(restores, chunk, [])))
            chunk, size = [], 0
        chunk.append((key, state))
        size += len(key) + len(state) + 10
    for start in range(0, len(gone), 10_000):
        made.append(encode(Block(restores, [], gone[start : start + 10_000])))
    if chunk:
        made.append(encode(Block(restores, chunk, [])))
    return made
