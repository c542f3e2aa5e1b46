"""A partition as its input is applied to it: opened from its checkpoint, and taken back there when its step breaks.

The rule this file keeps: what is applied is exactly the input in order, but for the records that make the step raise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.logs import Log
from pipeline.runners.bad_records import BadRecords, StepBroke
from pipeline.runners.checkpoint import Checkpoint
from pipeline.runners.messages import Incoming, MessageLog
from pipeline.runners.options import RunnerOptions, StageSpec, Statistics
from pipeline.runners.partition import Partition
from pipeline.runners.restoring import restore

log = Log("runners.applying")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One partition of a stage, and what a worker needs to apply its input.

    Args:
        make: a new, empty partition.
        committed: what the group had committed when the worker started; 0 when nothing.
        clock: seconds, monotonic.
    """

    spec: StageSpec
    number: int
    broker: MessageLog
    checkpoint: Checkpoint
    options: RunnerOptions
    statistics: Statistics
    make: Callable[[], Partition]
    committed: int = 0
    clock: Callable[[], float] = time.monotonic


class Applying:
    """One partition of a stage, and what it has applied."""

    def __init__(self, given: Assignment) -> None:
        self.spec, self.number = given.spec, given.number
        self._broker, self._checkpoint = given.broker, given.checkpoint
        self._options, self._statistics = given.options, given.statistics
        self._make, self._committed, self._clock = given.make, given.committed, given.clock
        self.partition: Partition | None = None
        self.ready = False
        self.fenced = False
        self._opened = asyncio.Event()
        self._turn = asyncio.Lock()  # who applies: the engine's delivery, or the healer
        self._flushing = asyncio.Lock()
        self._moved = self._last_records = self._flushed = self._clock()
        self._told_caught_up = True
        self._bad = BadRecords(given.spec.stage, given.number)

    async def open(self) -> None:
        """Take the partition over; what is still held from before is used when nobody else had it meanwhile."""
        self.ready = False
        self._opened.clear()
        async with self._turn, self._flushing:
            if self.partition is not None and not self.fenced and await self._checkpoint.reopen():
                self.partition.step.versions.restores = self._checkpoint.restores
            else:
                self.partition, self.fenced = await self._restore(), False
            self._moved = self._last_records = self._flushed = self._clock()
            self.ready = True
            self._opened.set()

    async def _restore(self) -> Partition:
        partition = await restore(
            self.spec, self.number, self._broker, self._checkpoint, self._make, self._committed, self._options.epoch
        )
        partition.bad = self._bad
        self._told_caught_up = False
        self._statistics.restored += 1
        return partition

    @property
    def _the_partition(self) -> Partition:
        if self.partition is None:
            raise RuntimeError("a partition is used before it is opened")
        return self.partition

    def _apply(self, partition: Partition, message: Incoming) -> int:
        records = partition.take(message, time.monotonic_ns())
        self._moved = self._clock()
        if records:
            self._last_records = self._moved
        if not self._told_caught_up and partition.caught_up:
            self._told_caught_up = True
            log.info(
                "partition caught up",
                stage=self.spec.stage,
                partition=self.number,
                records_read_again=partition.rereads,
                input_seconds=round((partition.reread_to - partition.reread_from) / 1e9, 3),
            )
        return records

    async def _apply_or_go_back(self, message: Incoming) -> int:
        """Apply the next message; where the step breaks at it, all since the checkpoint again, with what is learnt."""
        records = 0
        while (partition := self._the_partition).applied < message.offset:
            try:
                records = self._apply(partition, message)
            except StepBroke:
                await self._go_back(partition.applied)
        return records

    async def _go_back(self, applied: int) -> None:
        """Restore the checkpoint, and apply again what came since, up to and with this offset."""
        self._statistics.broken += 1
        self.ready = False
        async with self._flushing:
            self.partition = await self._restore()
        source = self.spec.source
        while (partition := self._the_partition).applied < applied:
            try:
                async for message in self._broker.read(source, self.number, partition.applied + 1, applied + 1):
                    self._apply(partition, message)
                partition.applied = max(partition.applied, applied)
            except StepBroke:
                async with self._flushing:
                    self.partition = await self._restore()
        self.ready = True
