"""A follower shows what markers have made valid, no more and no less."""

from __future__ import annotations

import asyncio
from collections import Counter

from pipeline.core.effects import Changed
from pipeline.runners.checkpoint import Checkpoint, Cut
from pipeline.runners.follower import FollowedPartition
from pipeline.runners.messages import Incoming
from tests.unit.runners.memory_log import MemoryLog
from tests.unit.runners.toy import Counting

SNAP = "snap"


def cut(applied: int, states: dict[bytes, bytes], gone: tuple[bytes, ...] = ()) -> Cut:
    return Cut([], Changed(list(states.items()), list(gone)), applied, 0, applied * 100, [], 0, Counter())


def test_a_follower_shows_each_cut_once_it_is_whole() -> None:
    async def run() -> None:
        log = MemoryLog()
        owner = Checkpoint(log, "measure", SNAP, 0, "owner", snapshot_bytes=200)
        await owner.open()
        await owner.write(cut(1, {b"x": b"1", b"y": b"5"}))
        followed = FollowedPartition(log, SNAP, 0, Counting)
        position = await log.end(SNAP, 0)
        step = followed.step
        await followed.open(position)

        def shown() -> dict[str, int]:
            assert isinstance(followed.step, Counting)
            return followed.step.totals

        def news() -> list[Incoming]:
            nonlocal position
            fresh = log.logs[SNAP, 0][position:]
            position += len(fresh)
            return fresh

        assert shown() == {"x": 1, "y": 5}
        assert followed.watermark == 100
        await owner.write(cut(2, {b"x": b"2"}))
        *blocks, marker = news()
        followed.take(blocks)
        assert shown() == {"x": 1, "y": 5}
        followed.take([marker])
        assert shown() == {"x": 2, "y": 5}
        await owner.write(cut(3, {}, gone=(b"y",)))
        followed.take(news())
        assert shown() == {"x": 2}
        assert followed.watermark == 300
        for number in range(4, 40):  # over several full snapshots
            await owner.write(cut(number, {b"x": b"%d" % number}))
            followed.take(news())
            assert shown() == {"x": number}
        assert owner.snapshots > 1
        assert followed.step is step  # what is gone is taken out of it: to load all anew would take ever longer

    asyncio.run(run())


def test_a_partition_without_a_marker_shows_nothing() -> None:
    async def run() -> None:
        log = MemoryLog()
        await Checkpoint(log, "measure", SNAP, 0, "owner").open()
        followed = FollowedPartition(log, SNAP, 0, Counting)
        await followed.open(await log.end(SNAP, 0))
        assert isinstance(followed.step, Counting)
        assert followed.step.totals == {}
        assert followed.watermark == 0

    asyncio.run(run())
