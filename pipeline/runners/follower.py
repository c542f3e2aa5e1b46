"""Read-only copies of a stage's state, all partitions, without a group: so that any worker answers for all of them.

The rule this file keeps: it shows only what a marker has made valid, and what it shows is never sent on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiokafka import TopicPartition

from pipeline.core.effects import FollowedStep, PartitionStep
from pipeline.errors import StageCrashed, TrueupError
from pipeline.runners.kafka_log import KafkaLog, consumer, message_of
from pipeline.runners.messages import Incoming, MessageLog
from pipeline.runners.options import RunnerOptions, StageSpec
from pipeline.runners.snapshots import Replay, read_back


class FollowedPartition:
    """One partition of a `-snap` topic, followed."""

    def __init__(self, log: MessageLog, topic: str, number: int, make: Callable[[int], PartitionStep]) -> None:
        self._log, self._topic, self.number = log, topic, number
        self._replay = Replay()
        step = make(number)
        if not isinstance(step, FollowedStep):
            raise TypeError(f"{type(step).__name__} cannot be followed: it has no unload")
        self.step: FollowedStep = step
        self._opened = False

    async def open(self, end: int) -> None:
        """Show what lies before `end`."""
        self._replay = await read_back(self._log, self._topic, self.number, end)
        self._show(self._replay)

    def take(self, messages: Sequence[Incoming]) -> None:
        """Show what comes next, once its marker is there."""
        for message in messages:
            self._replay.take(message)
        self._show(self._replay)

    def _show(self, replay: Replay) -> None:
        marker = replay.marker
        if marker is None:
            return
        for key in replay.gone:
            self.step.unload(key)
        for key in replay.touched & replay.states.keys():
            self.step.load(key, replay.states[key])
        if not self._opened:
            self._opened = True
            self.step.opened(marker.watermark)
            self.step.outbox.take()
        replay.touched, replay.gone = set(), set()

    @property
    def watermark(self) -> int:
        """Event time of what is shown, ns; 0 before the first marker."""
        marker = self._replay.marker
        return marker.watermark if marker else 0


class SnapFollower:
    """Follows every partition of a stage's `-snap` topic; its step is a `FollowedStep`."""

    def __init__(self, spec: StageSpec, setup: Any, options: RunnerOptions) -> None:
        self.spec, self._options = spec, options
        self.failed: asyncio.Future[TrueupError] = asyncio.get_running_loop().create_future()
        self._broker = KafkaLog(options.brokers, options.dev_broker)
        make = spec.make(setup)
        self._followed = [
            FollowedPartition(self._broker, spec.snap, number, make) for number in range(options.partitions)
        ]
        self._reader: Any = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when everything that is there now is shown."""
        try:
            await self._broker.start()
            ends = await self._broker.ends(self.spec.snap, range(len(self._followed)))
            for followed in self._followed:
                await followed.open(ends.get(followed.number, 0))
            self._reader = consumer(self._options.brokers, self._options.dev_broker)
            await self._reader.start()
        except BaseException:
            await self.stop()
            raise
        self._reader.assign([TopicPartition(self.spec.snap, number) for number in ends])
        for number, end in ends.items():
            self._reader.seek(TopicPartition(self.spec.snap, number), end)
        self._task = asyncio.create_task(self._follow(), name=f"follow {self.spec.snap}")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._reader is not None:
            await self._reader.stop()
        await self._broker.stop()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            if not isinstance(error, TrueupError):
                crashed = StageCrashed(f"following {self.spec.snap} crashed: {error!r}")
                crashed.__cause__ = error
                error = crashed
            self.failed.set_result(error)

    async def _follow(self) -> None:
        while True:
            for at, records in (await self._reader.getmany(timeout_ms=500)).items():
                self._followed[at.partition].take([message_of(record) for record in records])

    def steps(self) -> dict[int, PartitionStep]:
        """Every partition; read-only."""
        return {followed.number: followed.step for followed in self._followed}

    def watermarks(self) -> dict[int, int]:
        """Event time of what each shows, ns."""
        return {followed.number: followed.watermark for followed in self._followed}
