"""Worker processes of the toy stage that come and go, what they are fed, and the totals that must come of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from schemas.topics import Topic
from tests.unit.runners.toy import Item, message, newest

PARTITIONS = 4
MESSAGES = 1500  # per partition: more come during a restore than wait outside the engine's own queue
RECORDS = 50  # per message
KEYS = 10  # per partition
FEED_SECONDS = 36.0
WORKERS = 3
PATIENCE = 60.0
STILL_SECONDS = 12.0  # without any change for so long, nothing will come: longer than a rebalance, a restore and a heal
TOTAL = MESSAGES * RECORDS // KEYS
WANTED = {f"key-{number}-{partition}": TOTAL for number in range(KEYS) for partition in range(PARTITIONS)}
FAILED = "stage failed"


class Fleet:
    """Worker processes that come and go."""

    def __init__(self, address: str, group: str, folder: Path, *more: str) -> None:
        self._command = [sys.executable, "-m", "tests.unit.runners.toy", address, str(folder), f"--group={group}"]
        self._command += [f"--partitions={PARTITIONS}", *more]
        self._folder, self._started = folder, 0
        self.running: list[subprocess.Popen[bytes]] = []
        self.leaving: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._started += 1
        with (self._folder / f"worker-{self._started}.log").open("ab") as out:
            command = [*self._command, f"--name=worker-{self._started}"]
            self.running.append(subprocess.Popen(command, stdout=out, stderr=out))

    def leave(self, index: int) -> None:
        worker = self.running.pop(index)
        worker.terminate()
        self.leaving.append(worker)

    def kill(self, index: int) -> None:
        worker = self.running.pop(index)
        worker.kill()
        worker.wait()

    def end(self) -> None:
        for worker in [*self.running, *self.leaving]:
            worker.kill()
            worker.wait()

    def said(self) -> str:
        return "".join(log.read_text() for log in self._folder.glob("worker-*.log"))

    def said_by(self, number: int) -> str:
        """What the worker that was started as the `number`th said, from 1."""
        return (self._folder / f"worker-{number}.log").read_text()


async def feed(log: KafkaLog) -> None:
    for _ in range(MESSAGES):
        items = {one: [Item(f"key-{n % KEYS}-{one}") for n in range(RECORDS)] for one in range(PARTITIONS)}
        await log.append([Outgoing(Topic.SPANS, one, None, message(*batch)) for one, batch in items.items()])
        await asyncio.sleep(FEED_SECONDS / MESSAGES)


async def totals(log: KafkaLog) -> dict[str, int]:
    values: list[bytes | None] = []
    for partition in range(PARTITIONS):
        end = await log.end(Topic.SESSION_EVENTS, partition)
        values += [one.value async for one in log.read(Topic.SESSION_EVENTS, partition, 0, end)]
    return newest(values)


async def final_totals(log: KafkaLog) -> dict[str, int]:
    """The totals once they are as wanted, or once nothing has changed for long."""
    deadline, before, since = time.monotonic() + PATIENCE, await totals(log), time.monotonic()
    while before != WANTED and time.monotonic() < min(deadline, since + STILL_SECONDS):
        await asyncio.sleep(0.5)
        now = await totals(log)
        if now != before:
            before, since = now, time.monotonic()
    await asyncio.sleep(1.0)  # for what would be too much
    return await totals(log)


def wrong(found: dict[str, int]) -> dict[str, int]:
    """What is missing (below 0) or too much, by key."""
    return {key: found.get(key, 0) - total for key, total in WANTED.items() if found.get(key, 0) != total}
