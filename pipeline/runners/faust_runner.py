"""A keyed stage, live: the partitions that the engine assigns, each driven by the offsets of its log.

The rule this file keeps: fail-stop. Whatever a stage cannot cure ends the process with its reason (`failed`), and the
checkpoints make the restart exact; nothing is caught to go on without it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from pipeline.core.effects import PartitionStep
from pipeline.errors import GroupRefused, NoProgress, StageCrashed, TopicMismatch, TrueupError
from pipeline.logs import Log
from pipeline.runners.applying import Assignment
from pipeline.runners.checkpoint import Checkpoint
from pipeline.runners.delivery import Delivered, LivePartition
from pipeline.runners.engine import Engine
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Incoming, heartbeats
from pipeline.runners.options import Breakpoints, RunnerOptions, StageSpec, Statistics
from pipeline.runners.partition import Partition
from pipeline.runners.topics_admin import check_session_timeout
from schemas.envelope import decoder
from schemas.topics import Topic

log = Log("runners.faust")

TICK_SECONDS = 0.05
LOOK_AFTER_SECONDS = 1.0
FAILED_STOP_SECONDS = 3.0


class FaustRunner:
    """One stage in this process. Several may run in one loop.

    Args:
        setup: handed to `spec.make`.
        read_gaps: see `LivePartition`.
    """

    def __init__(
        self,
        spec: StageSpec,
        setup: Any,
        options: RunnerOptions,
        breakpoints: Breakpoints | None = None,
        read_gaps: bool = True,
    ) -> None:
        self.spec, self.options, self.statistics = spec, options, Statistics()
        self.failed: asyncio.Future[TrueupError] = asyncio.get_running_loop().create_future()
        self._make_step: Callable[[int], PartitionStep] = spec.make(setup)
        self._breakpoints, self._read_gaps = breakpoints or Breakpoints(), read_gaps
        self._decoder = decoder(spec.record)
        self._group = f"{options.group_prefix}-{spec.stage}"
        self._broker = KafkaLog(options.brokers, options.dev_broker)
        self._live: dict[int, LivePartition] = {}
        self._owned: set[int] = set()
        self._assigned = asyncio.Event()
        self._unassigned_since = 0.0
        self._stopping = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._counts: dict[Topic, int] = {}
        self._committed: dict[int, int] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._engine: Engine | None = None

    async def start(self) -> None:
        """Returns when the group has given its first assignment, which may be empty.

        Raises:
            TrueupError: whatever keeps the stage from starting, after all of it is stopped again.
        """
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        options, source = self.options, self.spec.source
        await self._broker.start()
        if not options.dev_broker:  # the embedded one answers neither, and forgets topics and offsets together
            await check_session_timeout(options.brokers, options.session_timeout)
            self._committed = await self._broker.committed(self._group, source)
        self._counts = await self._broker.partition_counts(Topic)
        for topic in (source, self.spec.snap):
            if self._counts[topic] != options.partitions:
                raise TopicMismatch([f"{topic}: {self._counts[topic]} partitions, wanted {options.partitions}"])
        options.data_dir.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self._group}-{options.name}-", dir=options.data_dir)
        self._engine = Engine(
            self._group, source, Path(self._folder.name), options, self._on_message, self._on_assigned, self._on_revoked
        )
        self._spawn("drive", self._drive(self._engine))
        self._spawn("engine", self._engine.start())
        first = asyncio.ensure_future(self._assigned.wait())
        either: set[asyncio.Future[Any]] = {first, self.failed}
        await asyncio.wait(either, timeout=options.join_timeout, return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if self.failed.done():
            raise self.failed.result()
        if not self._assigned.is_set():
            raise GroupRefused(f"group {self._group} gave no assignment within {options.join_timeout:g} s")

    async def stop(self) -> bool:
        """Stop, with everything applied made durable; never longer than about `stop_timeout`.

        Returns:
            `False` when something did not end in time; then only the end of the process ends it.
        """
        self._stopping = True
        # After a failure nothing is flushed, so the engine would wait for its acknowledgements in vain.
        patience = FAILED_STOP_SECONDS if self.failed.done() else self.options.stop_timeout
        clean, deadline = True, time.monotonic() + patience
        if self._engine is not None:
            clean = await self._bounded(self._engine.stop(), deadline)  # the flushes of `_drive` go on meanwhile
        if not self.failed.done():
            flushes = [live.flush(hurry=True) for live in self._live.values()]
            clean = await self._bounded(asyncio.gather(*flushes), deadline) and clean
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=1.0)
        clean = await self._bounded(self._broker.stop(), max(deadline, time.monotonic() + 2.0)) and clean
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        return clean

    async def _bounded(self, work: Coroutine[Any, Any, Any] | asyncio.Future[Any], deadline: float) -> bool:
        """`wait_for` would not bound it: Faust's shielded children swallow the cancellation."""
        task = asyncio.ensure_future(work)
        await asyncio.wait({task}, timeout=max(0.1, deadline - time.monotonic()))
        if not task.done():
            return False
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("stopping failed", error, stage=self.spec.stage)
            return False
        return True

    def _fail(self, error: BaseException) -> None:
        if self.failed.done() or (self._stopping and not isinstance(error, TrueupError)):
            return
        if not isinstance(error, TrueupError):
            crashed = StageCrashed(f"stage {self.spec.stage} crashed: {error!r}")
            crashed.__cause__ = error
            error = crashed
        log.error("stage failed", error, stage=self.spec.stage)
        self.failed.set_result(error)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run on the side; an error is the stage's. One at a time under a name."""
        running = self._tasks.get(name)
        if running is not None and not running.done():
            work.close()
            return

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(error)

        task = self._tasks[name] = asyncio.create_task(work, name=f"{self._group} {name}")
        task.add_done_callback(ended)

    # --- what the engine calls

    async def _on_message(self, message: Incoming, ack: Callable[[], None]) -> None:
        live = self._live.get(message.partition)
        if live is None:
            ack()  # left over from before a rebalance: the owner reads it by its offset
            return
        await live.queue.put(Delivered(message, ack))

    def _on_revoked(self, _: set[int]) -> None:
        """Eager protocol: all are revoked; what comes back is used as it is, if nobody else had it meanwhile."""
        self._owned = set()
        self._assigned.clear()
        self._unassigned_since = time.monotonic()

    def _on_assigned(self, partitions: set[int]) -> None:
        for number in self._live.keys() - partitions:
            self._live.pop(number)
            for name in (f"run {number}", f"open {number}"):
                if (task := self._tasks.pop(name, None)) is not None:
                    task.cancel()
        self._owned = set(partitions)
        for number in partitions:
            if number not in self._live:
                self._live[number] = self._new(number)
                self._spawn(f"run {number}", self._live[number].run())
            self._spawn(f"open {number}", self._live[number].open())
        self._assigned.set()

    def _new(self, number: int) -> LivePartition:
        spec, options = self.spec, self.options
        checkpoint = Checkpoint(
            self._broker,
            spec.stage,
            spec.snap,
            number,
            options.name,
            options.snapshot_bytes,
            options.snapshot_age,
            self._breakpoints,
        )

        def make() -> Partition:
            return Partition(spec, number, self._make_step(number), list(spec.sources(self._counts)), self._decoder)

        committed = self._committed.get(number, 0)
        given = Assignment(spec, number, self._broker, checkpoint, options, self.statistics, make, committed)
        return LivePartition(given, self._read_gaps)

    # --- the loop

    async def _drive(self, engine: Engine) -> None:
        """Goes on while the engine stops: it waits for the acknowledgements that follow our flushes."""
        options = self.options
        due = dict.fromkeys(("flush", "advance", "heartbeat", "look after"), time.monotonic())

        def is_due(what: str, interval: float) -> bool:
            now = time.monotonic()
            if now < due[what]:
                return False
            due[what] = now + interval
            return True

        while True:
            await asyncio.sleep(TICK_SECONDS)
            hurry = engine.hurries or self._stopping
            if not hurry and is_due("advance", options.advance_interval):
                for live in self._ours():
                    live.advance()
            if hurry or is_due("flush", options.checkpoint_interval):
                self._flush(hurry)
            if not hurry and is_due("heartbeat", options.heartbeat_interval):
                self._spawn("heartbeats", self._send_heartbeats())
            if is_due("look after", LOOK_AFTER_SECONDS) and not self._stopping:
                self._check(engine)
                self._spawn("look after", self._look_after())

    def _check(self, engine: Engine) -> None:
        if (crash := engine.crash) is not None:
            raise crash
        without = time.monotonic() - self._unassigned_since
        if self._unassigned_since and not self._assigned.is_set() and without > self.options.join_timeout:
            raise NoProgress(f"group {self._group} took the partitions away and gave none for {without:.0f} s")

    def _ours(self) -> list[LivePartition]:
        return [self._live[number] for number in self._owned if self._live[number].ready]

    def _flush(self, hurry: bool) -> None:
        for number, live in self._live.items():
            if live.may_reopen and number in self._owned and not hurry:
                self._spawn(f"open {number}", live.open())
            elif live.holds or (number in self._owned and not hurry):
                self._spawn(f"flush {number}", live.flush(hurry))

    async def _send_heartbeats(self) -> None:
        for live in self._ours():
            if live.partition is not None:
                marks = live.partition.heartbeat(live.all_applied)
                await self._broker.append(heartbeats(marks, self.options.partitions))

    async def _look_after(self) -> None:
        applied = self.applied()
        for number, end in (await self._broker.ends(self.spec.source, applied)).items():
            if number in self._owned:
                await self._live[number].look_after(end, applied[number])

    def _restored(self) -> dict[int, Partition]:
        return {live.number: live.partition for live in self._ours() if live.partition is not None}

    def steps(self) -> dict[int, PartitionStep]:
        """The owned and restored partitions."""
        return {number: partition.step for number, partition in self._restored().items()}

    def watermarks(self) -> dict[int, int]:
        """Their event time, ns."""
        return {number: partition.watermarks.watermark for number, partition in self._restored().items()}

    def applied(self) -> dict[int, int]:
        """The applied offset of the same partitions."""
        return {number: partition.applied for number, partition in self._restored().items()}

    def commit_ages(self) -> dict[int, float]:
        """For how many seconds something applied has waited to become durable; 0 when nothing waits."""
        return {live.number: live.commit_age for live in self._ours()}

    @property
    def owned(self) -> frozenset[int]:
        """The partitions the group has given to this worker, restored or not."""
        return frozenset(self._owned)
