"""A plain consumer group: what the stateless ends of the flow share.

The rule this file keeps: offsets are committed only after what was read up to them has been delivered, and a partition
is given up only between two batches, so that a commit never passes unsent data.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from pipeline.errors import GroupRefused, NoProgress, StageCrashed, TrueupError
from pipeline.logs import Log
from pipeline.runners.kafka_log import KafkaLog, consumer, message_of
from pipeline.runners.messages import Incoming
from pipeline.runners.options import RunnerOptions, Statistics, heartbeat_seconds
from pipeline.runners.topics_admin import check_session_timeout
from schemas.topics import Stage

log = Log("runners.group")

Place = tuple[str, int]
FETCH_SECONDS = 0.2
LOOK_SECONDS = 1.0


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    def __init__(self, runner: GroupRunner) -> None:
        self._runner = runner

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._runner.on_revoked()

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._runner.on_assigned({(at.topic, at.partition) for at in assigned})


class GroupRunner(ABC):
    """Reads topics as one member of a group. A subclass says what becomes of a batch, in `step`.

    Args:
        max_records: most messages of one batch.
    """

    def __init__(self, stage: Stage, topics: Sequence[str], options: RunnerOptions, max_records: int = 500) -> None:
        self.stage, self.topics, self.options, self.statistics = stage, tuple(topics), options, Statistics()
        self.failed: asyncio.Future[TrueupError] = asyncio.get_running_loop().create_future()
        self.owned: set[Place] = set()
        self.next: dict[Place, int] = {}  # offset after the last message that was delivered on
        self.ends: dict[Place, int] = {}
        self.looked = 0.0  # when their reading began
        self.interrupted = asyncio.Event()  # a rebalance or a stop waits for the batch in hand
        self.broker = KafkaLog(options.brokers, options.dev_broker)
        self._max_records = max_records
        self._busy = asyncio.Lock()
        self._assigned = asyncio.Event()
        self._stopping = False
        self._consumer: Any = None
        self._loop: asyncio.Task[None] | None = None
        self._moved = time.monotonic()

    @abstractmethod
    async def step(self, messages: list[Incoming]) -> None:
        """Deal with a batch, which may be empty; called again and again, alone."""

    async def finish(self) -> None:  # noqa: B027 - most owe nothing
        """The last moment in which what was delivered can be committed: a rebalance or a stop follows."""

    def given_up(self) -> None:  # noqa: B027 - most keep nothing
        """The partitions are gone: forget what was read and not committed."""

    @property
    def waits(self) -> bool:
        """Standing still is right now: what we deliver to is away."""
        return False

    # --- life

    async def start(self) -> None:
        """Returns when the group has given its first assignment.

        Raises:
            TrueupError: whatever keeps it from starting, after all of it is stopped again.
        """
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        options = self.options
        await self.broker.start()
        if not options.dev_broker:
            await check_session_timeout(options.brokers, options.session_timeout)
        self._consumer = consumer(
            options.brokers,
            options.dev_broker,
            group_id=f"{options.group_prefix}-{self.stage}",
            session_timeout_ms=int(options.session_timeout * 1000),
            heartbeat_interval_ms=int(heartbeat_seconds(options) * 1000),
            max_poll_interval_ms=86_400_000,  # the sink may wait for its store; our own watchdog looks for stalls
        )
        self._consumer.subscribe(list(self.topics), listener=_Listener(self))
        await self._consumer.start()
        self._loop = asyncio.create_task(self._run(), name=f"{self.stage} loop")
        self._loop.add_done_callback(self._ended)
        first = asyncio.ensure_future(self._assigned.wait())
        either: set[asyncio.Future[Any]] = {first, self.failed}
        await asyncio.wait(either, timeout=options.join_timeout, return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if self.failed.done():
            raise self.failed.result()
        if not self._assigned.is_set():
            raise GroupRefused(
                f"group {options.group_prefix}-{self.stage} gave no assignment in {options.join_timeout:g} s"
            )

    async def stop(self) -> bool:
        """Finish the batch in hand and leave; `False` when something did not end within `stop_timeout`."""
        self._stopping = True
        self.interrupted.set()
        deadline = time.monotonic() + self.options.stop_timeout
        clean = True
        if self._loop is not None:
            await asyncio.wait({self._loop}, timeout=self.options.stop_timeout)
            clean = self._loop.done()
            self._loop.cancel()
        closing = [asyncio.ensure_future(self.broker.stop())]
        if self._consumer is not None:
            closing.append(asyncio.ensure_future(self._consumer.stop()))
        _, left = await asyncio.wait(closing, timeout=max(2.0, deadline - time.monotonic()))
        return clean and not left

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None or self.failed.done():
            return
        if not isinstance(error, TrueupError):
            crashed = StageCrashed(f"stage {self.stage} crashed: {error!r}")
            crashed.__cause__ = error
            error = crashed
        log.error("stage failed", error, stage=self.stage)
        self.failed.set_result(error)

    # --- the group

    def on_assigned(self, places: set[Place]) -> None:
        self.owned = set(places)
        self._moved = time.monotonic()
        self.interrupted.clear()
        if self._stopping:
            self.interrupted.set()
        self._assigned.set()

    async def on_revoked(self) -> None:
        """Waits until the batch in hand is delivered and committed, or given up."""
        self.interrupted.set()
        async with self._busy:
            await self.finish()
            self.given_up()
            self.owned, self.next, self.ends = set(), {}, {}

    async def commit(self, places: Mapping[Place, int]) -> None:
        """Commit these offsets: all before them is delivered."""
        if not places:
            return
        offsets = {TopicPartition(*place): offset for place, offset in places.items()}
        try:
            await self._consumer.commit(offsets)
        except (CommitFailedError, IllegalStateError) as error:
            # Lost to another member: it reads the same again, and receivers know records by their identity.
            log.warning("offsets not committed", stage=self.stage, error=repr(error))
            return
        self.next.update(places)
        self._moved = time.monotonic()

    # --- the loop

    async def _run(self) -> None:
        looked = 0.0
        while not self._stopping:
            async with self._busy:
                fetched = await self._consumer.getmany(
                    timeout_ms=int(FETCH_SECONDS * 1000), max_records=self._max_records
                )
                messages = [message_of(record) for records in fetched.values() for record in records]
                # What was fetched before a rebalance is the next owner's.
                await self.step([one for one in messages if (one.topic, one.partition) in self.owned])
            await asyncio.sleep(0)  # whoever gives partitions up gets the lock
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                await self._look()
        async with self._busy:
            await self.finish()

    async def _look(self) -> None:
        """Where the logs end; lag that does not shrink is a stall, and only a new process cures it."""
        ends: dict[Place, int] = {}
        self.looked = time.monotonic()
        for topic in self.topics:
            numbers = [number for name, number in self.owned if name == topic]
            ends.update({(topic, number): end for number, end in (await self.broker.ends(topic, numbers)).items()})
        self.ends = ends
        for place in self.owned - self.next.keys():
            self.next[place] = await self._consumer.position(TopicPartition(*place))
        if self.waits or not any(self.lag(place) for place in self.owned):
            self._moved = time.monotonic()
        elif (still := time.monotonic() - self._moved) > self.options.watchdog_after:
            behind = {place: self.lag(place) for place in self.owned if self.lag(place)}
            raise NoProgress(f"stage {self.stage}: nothing moved for {still:.0f} s though there is lag: {behind}")

    def commit_ages(self) -> dict[Place, float]:
        """For how many seconds nothing was committed though something waits; 0 where nothing waits."""
        still = time.monotonic() - self._moved
        return {place: still if self.lag(place) else 0.0 for place in self.owned}

    def lag(self, place: Place) -> int:
        """Messages known to wait there."""
        return max(0, self.ends.get(place, 0) - self.next.get(place, 0))
