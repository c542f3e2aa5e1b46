"""The checkpoint of a partition, against a log in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from pipeline.core.effects import Changed
from pipeline.errors import SnapshotFormat, SnapshotLost
from pipeline.runners.checkpoint import Checkpoint, Cut, Fenced
from pipeline.runners.messages import Outgoing
from pipeline.runners.options import Breakpoints
from pipeline.runners.snapshots import FORMAT, MARKER, OPEN, Marker, newest_start, read_back
from schemas.envelope import Mark
from tests.unit.runners.memory_log import MemoryLog

SNAP = "snap"
MARKS = [Mark("ingest", "spans", 0, 7, False)]


def cut(applied: int, states: dict[bytes, bytes], gone: Sequence[bytes] = (), outputs: int = 0) -> Cut:
    sent = [Outgoing("out", 0, None, b"%d" % number) for number in range(outputs)]
    return Cut(
        sent, Changed(list(states.items()), list(gone)), applied, applied * 10, applied * 100, MARKS, 0, Counter()
    )


def checkpoint(
    log: MemoryLog, worker: str = "a", snapshot_bytes: int = 1 << 20, hook: Breakpoints | None = None
) -> Checkpoint:
    return Checkpoint(log, "resolve", SNAP, 0, worker, snapshot_bytes, 3600.0, hook)


def test_state_and_offset_come_back_together() -> None:
    async def run() -> None:
        log = MemoryLog()
        first = checkpoint(log)
        assert (await first.open()).marker is None
        await first.write(cut(4, {b"x": b"1", b"y": b"1"}))
        await first.write(cut(9, {b"x": b"2"}, gone=[b"y"]))
        replay = await checkpoint(log, "b").open()
        assert replay.states == {b"x": b"2"}
        assert replay.marker is not None
        assert (replay.marker.applied, replay.marker.emission, replay.marker.watermark) == (9, 90, 900)
        assert replay.marker.marks == MARKS

    asyncio.run(run())


def test_each_opening_gets_the_next_number() -> None:
    async def run() -> None:
        log = MemoryLog()
        for number in range(1, 5):
            one = checkpoint(log)
            await one.open()
            assert one.restores == number
            if number % 2:
                await one.write(cut(number, {b"x": b"%d" % number}))

    asyncio.run(run())


def test_blocks_without_their_marker_do_not_count() -> None:
    class Killed(Exception):
        pass

    async def run() -> None:
        log = MemoryLog()
        first = checkpoint(log)
        await first.open()
        await first.write(cut(1, {b"x": b"1"}))

        def die(messages: Sequence[Outgoing]) -> None:
            if messages[0].key == MARKER:
                raise Killed
            log.before_append = die

        log.before_append = die
        with pytest.raises(Killed):
            await first.write(cut(2, {b"x": b"2"}))
        replay = await checkpoint(log, "b").open()
        assert replay.states == {b"x": b"1"}
        assert replay.marker is not None
        assert replay.marker.applied == 1

    asyncio.run(run())


def test_outputs_are_there_before_the_state() -> None:
    async def run() -> None:
        log = MemoryLog()
        seen: list[tuple[str, int, int]] = []

        class Looking(Breakpoints):
            def outputs_sent(self, stage: str, partition: int) -> None:
                seen.append(("outputs", len(log.logs["out", 0]), len(log.logs[SNAP, 0])))

            def marker_sent(self, stage: str, partition: int) -> None:
                seen.append(("marker", len(log.logs["out", 0]), len(log.logs[SNAP, 0])))

        one = checkpoint(log, hook=Looking())
        await one.open()
        await one.write(cut(1, {b"x": b"1"}, outputs=3))
        assert seen == [("outputs", 3, 1), ("marker", 3, 3)]

    asyncio.run(run())


def test_a_worker_that_lost_the_partition_is_fenced_and_writes_nothing_that_counts() -> None:
    async def run() -> None:
        log = MemoryLog()
        zombie, owner = checkpoint(log, "zombie"), checkpoint(log, "owner")
        await zombie.open()
        await zombie.write(cut(1, {b"x": b"1"}))
        await owner.open()
        with pytest.raises(Fenced):
            await zombie.write(cut(2, {b"x": b"zombie"}))
        await owner.write(cut(3, {b"x": b"owner"}))
        replay = await checkpoint(log, "next").open()
        assert replay.states == {b"x": b"owner"}

    asyncio.run(run())


@pytest.mark.parametrize("owner_writes", [False, True], ids=["the owner dies at once", "the owner writes"])
@pytest.mark.parametrize("at", ["before the block", "before the marker"])
def test_a_zombies_snapshot_never_misleads(at: str, owner_writes: bool) -> None:
    async def run() -> None:
        log = MemoryLog()
        zombie, owner = checkpoint(log, "zombie", snapshot_bytes=0), checkpoint(log, "owner")
        await zombie.open()
        await zombie.write(cut(1, {b"x": b"1" * 50}))
        await zombie.write(cut(2, {b"x": b"2" * 200, b"y": b"kept"}))  # so much that a full snapshot is due next
        opened = 0

        def taken_over(messages: Sequence[Outgoing]) -> None:
            nonlocal opened
            if (messages[0].key == MARKER) == (at == "before the marker"):
                opened = log.put(SNAP, 0, b"\x91\xa5owner", OPEN)
            else:
                log.before_append = taken_over

        log.before_append = taken_over
        with pytest.raises(Fenced):
            await zombie.write(cut(3, {b"x": b"zombie"}))
        assert opened
        assert zombie.snapshots == (2 if at == "before the marker" else 1)
        wanted = {b"x": b"2" * 200, b"y": b"kept"}
        if owner_writes:
            await owner.open()
            await owner.write(cut(4, {b"z": b"owner"}), may_snapshot=False)
            wanted[b"z"] = b"owner"
        next_one = checkpoint(log, "next")
        replay = await next_one.open()
        assert replay.states == wanted
        assert replay.marker is not None
        assert replay.marker.applied == (4 if owner_writes else 2)
        assert next_one.restores == (4 if owner_writes else 3)

    asyncio.run(run())


def test_a_full_snapshot_makes_the_older_log_needless() -> None:
    async def run() -> None:
        log = MemoryLog()
        one = checkpoint(log, snapshot_bytes=500)
        await one.open()
        for number in range(40):
            await one.write(cut(number, {b"key-%d" % (number % 5): b"%d" % number * 20}, gone=[b"key-4"]))
        assert one.snapshots > 2
        start = await newest_start(log, SNAP, 0, await log.end(SNAP, 0))
        assert start is not None
        log.first[SNAP, 0] = start
        replay = await checkpoint(log, "b").open()
        assert set(replay.states) == {b"key-0", b"key-1", b"key-2", b"key-3"}
        assert replay.states[b"key-3"] == b"38" * 20
        log.first[SNAP, 0] = start + 1
        with pytest.raises(SnapshotLost, match="full snapshot began at"):
            await checkpoint(log, "c").open()

    asyncio.run(run())


def test_no_snapshot_in_a_hurry() -> None:
    async def run() -> None:
        log = MemoryLog()
        one = checkpoint(log, snapshot_bytes=0)
        await one.open()
        for number in range(5):
            await one.write(cut(number, {b"x": b"%d" % number * 30}), may_snapshot=False)
        assert one.snapshots == 1  # the first: markers need one to name

    asyncio.run(run())


def test_the_newest_marker_is_found_from_the_end_without_reading_all() -> None:
    async def run() -> None:
        log = MemoryLog()
        one = checkpoint(log, snapshot_bytes=10_000)
        await one.open()
        for number in range(2000):
            await one.write(cut(number, {b"k": b"%d" % number}))
        log.reads.clear()
        replay = await read_back(log, SNAP, 0, await log.end(SNAP, 0))
        assert replay.states == {b"k": b"1999"}
        assert sum(stop - start for _, _, start, stop in log.reads) < 2000

    asyncio.run(run())


def test_a_log_whose_beginning_is_gone_without_a_marker_is_an_error() -> None:
    async def run() -> None:
        log = MemoryLog()
        for _ in range(5):
            await checkpoint(log).open()
        log.first[SNAP, 0] = 2
        with pytest.raises(SnapshotLost, match="holds no marker"):
            await checkpoint(log).open()

    asyncio.run(run())


def test_what_is_held_is_used_again_only_when_nobody_else_had_it() -> None:
    async def run() -> None:
        log = MemoryLog()
        one, other = checkpoint(log, "one"), checkpoint(log, "other")
        await one.open()
        await one.write(cut(1, {b"x": b"1"}))
        assert await one.reopen()
        await one.write(cut(2, {b"x": b"2"}))
        assert (await other.open()).states == {b"x": b"2"}
        assert not await one.reopen()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        pytest.param(FORMAT + 1, "run the version of trueup that wrote it", id="newer"),
        pytest.param(FORMAT - 1, "delete the -snap topics of all stages", id="older"),
    ],
)
def test_a_checkpoint_of_another_format_is_refused_and_says_what_to_do(found: int, remedy: str) -> None:
    async def run() -> None:
        log = MemoryLog()
        one = checkpoint(log)
        await one.open()
        await one.write(cut(0, {b"k": b"v"}))
        marker = Marker(one.restores, 1, 1, 1, [], 1, found)
        await log.append([Outgoing(SNAP, 0, MARKER, msgspec.msgpack.encode(marker))])
        with pytest.raises(SnapshotFormat, match=f"has format {found}, .* reads format {FORMAT}: .*{remedy}"):
            await checkpoint(log, "b").open()

    asyncio.run(run())


def test_a_checkpoint_that_does_not_say_its_format_is_of_the_first() -> None:
    async def run() -> None:
        log = MemoryLog()
        one = checkpoint(log)
        await one.open()
        await log.append([Outgoing(SNAP, 0, MARKER, msgspec.msgpack.encode((one.restores, 0, 0, 0, [], 1)))])
        with pytest.raises(SnapshotFormat, match="has format 1"):
            await checkpoint(log, "b").open()

    asyncio.run(run())
