"""A stage over the real engine and the embedded broker: exact, also when the worker dies where it hurts most."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.effects import Changed
from pipeline.embedded import Broker
from pipeline.errors import StageCrashed
from pipeline.runners.faust_runner import FaustRunner
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from pipeline.runners.options import RunnerOptions
from pipeline.runners.sink_runner import SinkRunner
from pipeline.runners.topics_admin import ensure_topics
from schemas.topics import Topic
from tests.unit.runners.test_group_runners import Store, Story, rows
from tests.unit.runners.test_local_runner import LettersOnly
from tests.unit.runners.toy import TOPICS, Counting, Item, Spec, message, newest

PARTITIONS = 2
MESSAGES = 40
KEYS = 10
WANTED = {f"key-{number}-{partition}": MESSAGES for number in range(KEYS) for partition in range(PARTITIONS)}
PATIENCE = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with Broker() as running:
        yield running.address


@pytest.fixture
def topics_of_a_new_broker() -> Iterator[str]:
    with Broker() as running:
        yield running.address


async def feed(log: KafkaLog, first: int, last: int) -> None:
    await log.append(
        [
            Outgoing(Topic.SPANS, partition, None, message(*(Item(f"key-{one}-{partition}") for one in range(KEYS))))
            for _ in range(first, last)
            for partition in range(PARTITIONS)
        ]
    )


async def totals(log: KafkaLog) -> dict[str, int]:
    values: list[bytes | None] = []
    for partition in range(PARTITIONS):
        end = await log.end(Topic.SESSION_EVENTS, partition)
        values += [one.value async for one in log.read(Topic.SESSION_EVENTS, partition, 0, end)]
    return newest(values)


async def totals_in_the_end(log: KafkaLog) -> dict[str, int]:
    """Waits until the totals are as wanted, and a little longer for what would be too much."""
    deadline = time.monotonic() + PATIENCE
    while await totals(log) != WANTED and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    await asyncio.sleep(0.5)
    return await totals(log)


def worker(address: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.unit.runners.toy", address, str(folder), "--dev", "--session-timeout=2"]
    with (folder / "log").open("ab") as out:
        return subprocess.Popen([*command, *more], stdout=out, stderr=out)


def test_totals_are_exact_after_kills_where_it_hurts_most(topics_of_a_new_broker: str, tmp_path: Path) -> None:
    async def run() -> None:
        address = topics_of_a_new_broker
        await ensure_topics([address], PARTITIONS, topics=TOPICS, dev_broker=True)
        log = KafkaLog([address], dev_broker=True)
        await log.start()
        running: list[subprocess.Popen[bytes]] = []
        try:
            await feed(log, 0, MESSAGES // 2)
            feeding = asyncio.create_task(feed_slowly(log))
            for point in ("outputs_sent", "marker_sent"):
                running.append(worker(address, tmp_path, f"--kill-at={point}", "--nth=4"))
                assert await asyncio.to_thread(running[-1].wait, PATIENCE) == -signal.SIGKILL
            running.append(worker(address, tmp_path))
            await feeding
            assert await totals_in_the_end(log) == WANTED
            running[-1].terminate()
            assert await asyncio.to_thread(running[-1].wait, PATIENCE) == 0
        finally:
            for process in running:
                process.kill()
                process.wait()
            await log.stop()

    asyncio.run(run())


async def feed_slowly(log: KafkaLog) -> None:
    """The second half, over several workers' lives, from when the first is at work."""
    deadline = time.monotonic() + PATIENCE
    while not await totals(log) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    for number in range(MESSAGES // 2, MESSAGES):
        await feed(log, number, number + 1)
        await asyncio.sleep(0.5)


def test_a_stage_runs_inside_the_loop_and_stops(broker: str, tmp_path: Path) -> None:
    async def run() -> None:
        await ensure_topics([broker], PARTITIONS, topics=TOPICS, dev_broker=True)
        log = KafkaLog([broker], dev_broker=True)
        await log.start()
        options = RunnerOptions(
            (broker,), PARTITIONS, tmp_path, dev_broker=True, checkpoint_interval=0.2, session_timeout=1.0
        )
        runner = FaustRunner(Spec(), None, options)
        try:
            await feed(log, 0, MESSAGES)
            await log.append([Outgoing(Topic.SPANS, 1, None, b"\xc1 not an envelope")])
            await runner.start()
            assert await totals_in_the_end(log) == WANTED
            letters = [
                one.value or b""
                async for one in log.read(Topic.DEAD_LETTERS, 1, 0, await log.end(Topic.DEAD_LETTERS, 1))
            ]
            assert len(letters) == 1
            assert b"undecodable" in letters[0]
            assert f'"offset":{MESSAGES}'.encode() in letters[0]
            assert set(runner.steps()) == set(range(PARTITIONS))
            assert all(step.calls == ["opened", "caught up"] for step in runner.steps().values())  # type: ignore[attr-defined]
        finally:
            began = time.monotonic()
            clean = await runner.stop()
            await log.stop()
        assert clean
        assert not runner.failed.done()
        assert time.monotonic() - began < options.stop_timeout

    asyncio.run(run())


def test_ingest_a_stage_and_the_sink_share_a_loop(topics_of_a_new_broker: str, tmp_path: Path) -> None:
    letters = [chr(ord("a") + number % 26) for number in range(520)]
    spread = RunnerOptions(
        (topics_of_a_new_broker,), 3, tmp_path, dev_broker=True, checkpoint_interval=0.2, session_timeout=1.0
    )

    async def run() -> None:
        address = topics_of_a_new_broker
        await ensure_topics([address], spread.partitions, dev_broker=True)
        log, store = KafkaLog([address], dev_broker=True), Store(Story())
        await log.start()
        stage = FaustRunner(Spec(), None, spread)
        sink = SinkRunner(store, spread, max_seconds=0.1)
        runners: list[FaustRunner | IngestRunner | SinkRunner] = [IngestRunner(LettersOnly(), spread), stage, sink]
        try:
            await asyncio.gather(*(runner.start() for runner in runners))
            await log.append([Outgoing(Topic.OTLP_SPANS, n % 3, None, one.encode()) for n, one in enumerate(letters)])
            await log.append([Outgoing(Topic.ROWS, 0, None, rows("criteria", "outcomes"))])
            wanted = dict.fromkeys(letters, 20)
            found: dict[str, int] = {}
            async with asyncio.timeout(PATIENCE):
                while found != wanted or len(store.rows) < 2:
                    await asyncio.sleep(0.1)
                    steps: list[Any] = list(stage.steps().values())
                    found = {key: total for step in steps for key, total in step.totals.items()}
            assert {table: len(written) for table, written in store.rows.items()} == {"criteria": 1, "outcomes": 1}
        finally:
            ended = await asyncio.gather(*(runner.stop() for runner in runners))
            await log.stop()
        assert all(ended)

    asyncio.run(run())


class Failing(Counting):
    """Breaks where no record is to blame."""

    def changed(self) -> Changed:
        raise ZeroDivisionError


def test_a_step_that_breaks_ends_the_stage_with_its_reason(topics_of_a_new_broker: str, tmp_path: Path) -> None:
    async def run() -> None:
        address = topics_of_a_new_broker
        await ensure_topics([address], PARTITIONS, topics=TOPICS, dev_broker=True)
        log = KafkaLog([address], dev_broker=True)
        await log.start()
        options = RunnerOptions((address,), PARTITIONS, tmp_path, dev_broker=True, session_timeout=1.0)
        runner = FaustRunner(Spec(make=lambda _: Failing), None, options)
        try:
            await runner.start()
            await feed(log, 0, 1)
            error = await asyncio.wait_for(runner.failed, PATIENCE)
        finally:
            began = time.monotonic()
            await runner.stop()
            await log.stop()
        assert isinstance(error, StageCrashed)
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert "stage resolve crashed: ZeroDivisionError" in str(error)
        assert time.monotonic() - began < options.stop_timeout
        assert not await asyncio.to_thread(list, tmp_path.iterdir())

    asyncio.run(run())
