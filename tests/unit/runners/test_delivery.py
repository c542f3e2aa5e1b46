"""Offsets decide: what the engine repeats is skipped, what it leaves out is read directly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pipeline.errors import InputLost, InputRemade, NoProgress, SnapshotLost
from pipeline.runners.applying import Assignment
from pipeline.runners.checkpoint import Checkpoint
from pipeline.runners.delivery import Delivered, LivePartition
from pipeline.runners.options import RunnerOptions, Statistics
from pipeline.runners.partition import Partition
from pipeline.runners.snapshots import OPEN
from schemas.envelope import decoder
from schemas.topics import Topic
from tests.unit.runners.memory_log import MemoryLog
from tests.unit.runners.toy import Counting, Item, Spec, message

OPTIONS = RunnerOptions(("nowhere:1",), 1, Path("unused"), heal_after=3.0, watchdog_after=60.0)


class Bench:
    """One live partition over a log in memory, with a clock that is moved by hand."""

    def __init__(self, log: MemoryLog, committed: int = 0, read_gaps: bool = True) -> None:
        self.log, self.now, self.acked, self.statistics = log, 0.0, list[int](), Statistics()
        spec = Spec()
        checkpoint = Checkpoint(log, spec.stage, spec.snap, 0, "worker")
        given = Assignment(
            spec,
            0,
            log,
            checkpoint,
            OPTIONS,
            self.statistics,
            lambda: Partition(spec, 0, Counting(0), [], decoder(Item)),
            committed,
            lambda: self.now,
        )
        self.live = LivePartition(given, read_gaps)

    async def deliver(self, *offsets: int) -> None:
        """As the engine does."""
        task = asyncio.create_task(self.live.run())
        for offset in offsets:
            one = self.log.logs[Topic.SPANS, 0][offset]
            await self.live.queue.put(Delivered(one, lambda offset=offset: self.acked.append(offset)))  # type: ignore[misc]
        while not self.live.queue.empty():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.wait({task}, timeout=0.01)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    @property
    def step(self) -> Counting:
        assert self.live.partition is not None
        step = self.live.partition.step
        assert isinstance(step, Counting)
        return step


def filled(messages: int) -> MemoryLog:
    log = MemoryLog()
    for _ in range(messages):
        log.put(Topic.SPANS, 0, message(Item("k")))
    return log


def on(log: MemoryLog, story: Callable[[Bench], Awaitable[None]], committed: int = 0, read_gaps: bool = True) -> None:
    async def run() -> None:
        await story(Bench(log, committed, read_gaps))

    asyncio.run(run())


def test_what_was_applied_is_skipped_and_acknowledged() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1, 2, 1, 2, 3)
        assert bench.step.totals == {"k": 4}
        assert bench.statistics.redelivered == 2
        await bench.live.flush()
        assert bench.acked == [0, 1, 2, 1, 2, 3]

    on(filled(4), story)


def test_a_gap_is_read_before_anything_later_is_applied() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 5)
        assert bench.step.totals == {"k": 6}
        assert (bench.statistics.holes, bench.statistics.caught_up_records) == (1, 4)

    on(filled(6), story)


def test_a_gap_is_lost_when_the_engine_is_trusted() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 5)
        assert bench.step.totals == {"k": 2}

    on(filled(6), story, read_gaps=False)


def test_a_lost_tail_is_read_after_a_while_and_not_before() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        end = await bench.log.end(Topic.SPANS, 0)
        await bench.live.look_after(end, -1)
        assert bench.step.totals == {}
        bench.now += OPTIONS.heal_after
        await bench.live.look_after(end, -1)
        assert bench.step.totals == {"k": 6}
        assert bench.step.calls == ["opened", "caught up"]
        assert bench.statistics.holes == 1

    on(filled(6), story)


def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1)
        assert bench.acked == []

        def fail(_: object) -> None:
            raise ConnectionError

        bench.log.before_append = fail
        with pytest.raises(ConnectionError):
            await bench.live.flush()
        assert bench.acked == []

    on(filled(2), story)


def test_a_restart_goes_on_after_the_last_marker() -> None:
    log = filled(6)

    async def first(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1, 2)
        await bench.live.flush()
        await bench.deliver(3)  # applied, never made durable

    async def second(bench: Bench) -> None:
        await bench.live.open()
        assert bench.live.partition is not None
        assert bench.live.partition.applied == 2
        await bench.deliver(5)
        assert bench.step.totals == {"k": 6}

    on(log, first)
    on(log, second)


def test_a_partition_that_another_worker_took_is_read_anew() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1)
        await bench.live.flush()
        await bench.deliver(2)
        bench.log.put(Topic.RESOLVE_SNAP, 0, b"\x91\xa5other", OPEN)
        await bench.live.flush()
        assert bench.statistics.fenced == 1
        assert bench.acked == [0, 1, 2]
        await bench.deliver(3)
        assert bench.step.totals == {"k": 3}
        before, bench.now = bench.live.may_reopen, bench.now + OPTIONS.session_timeout
        assert (before, bench.live.may_reopen) == (False, True)
        await bench.live.open()
        assert not bench.live.fenced
        assert bench.step.totals == {"k": 2}
        await bench.deliver(3)
        assert bench.step.totals == {"k": 4}

    on(filled(4), story)


def test_state_that_nobody_else_had_is_used_again() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1)
        before = bench.step
        await bench.live.open()
        assert bench.step is before
        await bench.deliver(2)
        await bench.live.flush()
        assert bench.acked == [0, 1, 2]
        assert bench.statistics.restored == 1

    on(filled(3), story)


def test_input_deleted_before_it_was_read_is_an_error_with_a_name() -> None:
    log = filled(6)

    async def first(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0)
        await bench.live.flush()

    async def second(bench: Bench) -> None:
        with pytest.raises(InputLost, match="3 messages were deleted"):
            await bench.live.open()

    on(log, first)
    log.first[Topic.SPANS, 0] = 4
    on(log, second)


def test_a_stage_that_starts_late_begins_where_the_log_does() -> None:
    log = filled(6)
    log.first[Topic.SPANS, 0] = 4

    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(4, 5)
        assert bench.step.totals == {"k": 2}
        assert bench.statistics.holes == 0

    on(log, story)


def test_an_input_topic_made_anew_is_an_error_with_a_name() -> None:
    log = filled(6)

    async def first(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1, 2, 3, 4, 5)
        await bench.live.flush()
        for _ in range(2):
            await bench.live.look_after(5, 5)
        await bench.live.look_after(6, 5)  # a new leader that was late
        await bench.live.look_after(5, 4)  # the end was asked for before more was applied
        for _ in range(2):
            await bench.live.look_after(5, 5)
        with pytest.raises(InputRemade):
            await bench.live.look_after(5, 5)

    async def second(bench: Bench) -> None:
        with pytest.raises(InputRemade):
            await bench.live.open()

    on(log, first)
    log.logs[Topic.SPANS, 0].clear()
    on(log, second)


def test_a_checkpoint_topic_made_anew_is_an_error_with_a_name() -> None:
    async def story(bench: Bench) -> None:
        with pytest.raises(SnapshotLost, match="made anew"):
            await bench.live.open()

    on(filled(6), story, committed=3)


def test_an_engine_that_delivers_nothing_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await bench.live.open()

        async def look_for_a_while() -> None:
            for _ in range(100):
                bench.now += OPTIONS.heal_after
                bench.log.put(Topic.SPANS, 0, message(Item("k")))
                await bench.live.look_after(await bench.log.end(Topic.SPANS, 0), -1)

        with pytest.raises(NoProgress, match="delivered nothing"):
            await look_for_a_while()

    on(filled(1), story)


def test_a_message_that_cannot_be_read_goes_to_the_dead_letters_and_the_rest_goes_on() -> None:
    log = filled(1)
    log.put(Topic.SPANS, 0, b"\xc1")
    log.put(Topic.SPANS, 0, b"\x93\x02\x90\x90")
    log.put(Topic.SPANS, 0, message(Item("k")))

    async def story(bench: Bench) -> None:
        await bench.live.open()
        await bench.deliver(0, 1, 2, 3)
        await bench.live.flush()
        assert bench.step.totals == {"k": 2}
        letters = [value or b"" for value in bench.log.values(Topic.DEAD_LETTERS, 0)]
        assert [b"undecodable" in one for one in letters] == [True, False]
        assert b"unknown_format" in letters[1]
        assert b'"offset":1' in letters[0]
        assert b'"size":1' in letters[0]
        assert sum(n for (result, _), n in bench.statistics.records.items() if result == "dead_lettered") == 2

    on(log, story)
