"""The checkpoint of one partition: taking it over, and writing cuts to it.

The order this file keeps: outputs, then blocks, then the marker, each awaited before the next; whoever acknowledges
input does so after that. So state and applied offset move together, outputs are sent at least once, and a crash
anywhere is a return to the last marker. A writer that finds another's open record behind its own last message has lost
the partition and stops (`Fenced`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import msgspec

from pipeline.core.effects import Changed
from pipeline.errors import TrueupError
from pipeline.runners.messages import MessageLog, Outgoing
from pipeline.runners.options import Breakpoints
from pipeline.runners.snapshots import BLOCK, FORMAT, MARKER, OPEN, Marker, Opened, Replay, blocks, read_back
from schemas.envelope import Mark


class Fenced(TrueupError):
    """Another worker has taken the partition over; only runners see this."""


@dataclass(frozen=True, slots=True)
class Cut:
    """All that one synchronous moment of a partition wants done.

    Args:
        applied, emission, watermark, marks: as in `Marker`.
        passes_on: the watermark that the next stages may hear once the outputs are durable.
        counts: what became of the records, by (result, reason).
    """

    outputs: list[Outgoing]
    changed: Changed
    applied: int
    emission: int
    watermark: int
    marks: list[Mark]
    passes_on: int
    counts: Counter[tuple[str, str]]


class Checkpoint:
    """One partition of a stage's `-snap` topic, as its owner uses it.

    Args:
        snapshot_bytes, snapshot_age: when a full snapshot is due, see `RunnerOptions`.
    """

    def __init__(
        self,
        log: MessageLog,
        stage: str,
        topic: str,
        partition: int,
        worker: str,
        snapshot_bytes: int = 16 << 20,
        snapshot_age: float = 6 * 3600.0,
        breakpoints: Breakpoints | None = None,
    ) -> None:
        self._log, self.stage, self.topic, self.partition, self.worker = log, stage, topic, partition, worker
        self._snapshot_bytes, self._snapshot_age = snapshot_bytes, snapshot_age
        self._breakpoints = breakpoints or Breakpoints()
        self.restores = 0
        self.snapshots = 0
        self._end = -1  # offset of the last message that is known to be ours
        self._start: int | None = None  # of the last full snapshot
        self._grown = 0
        self._snapshot_size = 0
        self._snapshot_time = 0.0

    async def open(self) -> Replay:
        """Take the partition over and read its state."""
        barrier = await self._send_open()
        replay = await read_back(self._log, self.topic, self.partition, barrier + 1)
        self.restores = replay.restores or 0
        self._start = replay.marker.start if replay.marker else None
        self._snapshot_size = sum(map(len, replay.states.values()))
        self._grown = max(0, replay.grown - self._snapshot_size)
        self._snapshot_time = time.monotonic() - self._snapshot_age / 2  # its age is not known: half is a fair guess
        return replay

    async def reopen(self) -> bool:
        """Take the partition over again; `False` when another had it meanwhile: then what we hold is stale."""
        before = self._end
        barrier = await self._send_open()
        if barrier != before + 1:
            return False
        self.restores += 1
        return True

    async def _send_open(self) -> int:
        opened = msgspec.msgpack.encode(Opened(self.worker))
        [self._end] = await self._log.append([Outgoing(self.topic, self.partition, OPEN, opened)])
        return self._end

    async def write(self, cut: Cut, may_snapshot: bool = True) -> None:
        """Make a cut durable.

        Args:
            may_snapshot: `False` in a hurry: a rebalance or a stop waits for us.

        Raises:
            Fenced: another worker has taken the partition over; nothing of the cut counts.
        """
        if cut.outputs:
            await self._log.append(cut.outputs)
        self._breakpoints.outputs_sent(self.stage, self.partition)
        if self._start is None or (may_snapshot and self._is_due()):
            await self._write_snapshot(cut.changed)
        else:
            await self._write_blocks(blocks(self.restores, cut.changed.states, cut.changed.gone))
        assert self._start is not None
        marker = Marker(self.restores, cut.applied, cut.emission, cut.watermark, cut.marks, self._start, FORMAT)
        await self._send([Outgoing(self.topic, self.partition, MARKER, msgspec.msgpack.encode(marker))])
        self._breakpoints.marker_sent(self.stage, self.partition)

    @property
    def is_new(self) -> bool:
        """No marker was ever written."""
        return self._start is None

    def _is_due(self) -> bool:
        due = self._grown > max(self._snapshot_bytes, 2 * self._snapshot_size)
        return due or time.monotonic() - self._snapshot_time > self._snapshot_age

    async def _write_blocks(self, encoded: list[bytes]) -> list[int]:
        self._grown += sum(map(len, encoded))
        return await self._send([Outgoing(self.topic, self.partition, BLOCK, value) for value in encoded])

    async def _write_snapshot(self, changed: Changed) -> None:
        """All keys again, read back from the log, since a step keeps no encoded copy; the cut's changes on top."""
        states: dict[bytes, bytes] = {}
        if self._start is not None:
            replay = Replay()
            async for message in self._log.read(self.topic, self.partition, self._start, self._end + 1):
                replay.take(message)
            if replay.restores != self.restores:
                raise Fenced(f"{self.topic}[{self.partition}]")
            states = replay.states
        states.update(changed.states)
        for key in changed.gone:
            states.pop(key, None)
        empty = msgspec.msgpack.encode((self.restores, [], []))
        written = await self._write_blocks(blocks(self.restores, list(states.items()), []) or [empty])
        self._start, self._grown = written[0], 0
        self._snapshot_size, self._snapshot_time = sum(map(len, states.values())), time.monotonic()
        self.snapshots += 1

    async def _send(self, messages: list[Outgoing]) -> list[int]:
        """Append, and look whether an open record that is not ours came between."""
        if not messages:
            return []
        offsets = await self._log.append(messages)
        last = max(offsets)
        if last != self._end + len(messages):
            async for message in self._log.read(self.topic, self.partition, self._end + 1, last):
                if message.key == OPEN:
                    raise Fenced(f"{self.topic}[{self.partition}]: opened again at offset {message.offset}")
        self._end = last
        return offsets
