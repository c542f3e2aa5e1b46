"""The smallest keyed stage: counts what it gets per key and tells each new total. What the runners are tested with."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipeline import logs
from pipeline.core.effects import Changed, Outbox, PartitionStep, Result, Versions
from pipeline.core.timeline import Source
from pipeline.runners.faust_runner import FaustRunner
from pipeline.runners.options import KillAt, RunnerOptions
from schemas.envelope import FORMAT, Envelope, decoder, encode
from schemas.topics import Stage, Topic


class Item(msgspec.Struct, array_like=True, frozen=True, tag="item"):
    """Something to be counted."""

    key: str
    n: int = 1


class Total(msgspec.Struct, array_like=True, frozen=True, tag="total"):
    """How often a key has been counted."""

    key: str
    total: int
    version: int


class Counting:
    """A `PartitionStep`; forgets a key whose total is 0."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.outbox, self.versions = Outbox(), Versions()
        self.totals: dict[str, int] = {}
        self.calls: list[str] = []
        self.watermark = 0
        self._dirty: set[str] = set()
        self._untold: set[str] = set()

    def load(self, key: bytes, state: bytes) -> None:
        self.totals[key.decode()] = int(state)

    def unload(self, key: bytes) -> None:
        self.totals.pop(key.decode(), None)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self.calls.append("opened")

    def apply(self, records: Sequence[Any]) -> None:
        for item in records:
            self.outbox.count(Result.USED, "counted")
            self.totals[item.key] = self.totals.get(item.key, 0) + item.n
            self._dirty.add(item.key)
            self._untold.add(item.key)

    def advance(self, watermark: int) -> None:
        assert watermark >= self.watermark
        self.watermark = watermark

    def caught_up(self) -> None:
        self.calls.append("caught up")

    def publish(self) -> None:
        for key in sorted(self._untold):
            total = Total(key, self.totals.get(key, 0), self.versions.next())
            self.outbox.send(Topic.SESSION_EVENTS, self.partition, total)
        self._untold.clear()

    def changed(self) -> Changed:
        gone = [key for key in self._dirty if not self.totals[key]]
        states = [(key.encode(), b"%d" % self.totals[key]) for key in sorted(self._dirty - set(gone))]
        for key in gone:
            del self.totals[key]
        self._dirty.clear()
        return Changed(states, [key.encode() for key in gone])

    def passes_on(self, watermark: int) -> int:
        return watermark


def make(_: Any) -> Callable[[int], PartitionStep]:
    return Counting


def sources(counts: dict[Topic, int]) -> Iterable[Source]:
    return [("ingest", Topic.OTLP_SPANS, number) for number in range(counts.get(Topic.OTLP_SPANS, 0))]


@dataclass(frozen=True, slots=True)
class Spec:
    """A line of the topology."""

    stage: Stage = Stage.RESOLVE
    source: Topic = Topic.SPANS
    snap: Topic = Topic.RESOLVE_SNAP
    targets: tuple[Topic, ...] = (Topic.SESSION_EVENTS,)
    record: Any = Item
    sources: Callable[[dict[Topic, int]], Iterable[Source]] = sources
    make: Callable[[Any], Callable[[int], PartitionStep]] = make


TOTALS = decoder(Total)
TOPICS = (Topic.SPANS, Topic.RESOLVE_SNAP, Topic.SESSION_EVENTS, Topic.DEAD_LETTERS, Topic.OTLP_SPANS)


def message(*items: Item) -> bytes:
    return encode(Envelope(FORMAT, [], list(items)))


def newest(values: Iterable[bytes | None]) -> dict[str, int]:
    """What a reader that keeps the highest version of each key believes."""
    best: dict[str, Total] = {}
    for value in values:
        for total in TOTALS.decode(value or b"").records:
            if total.key not in best or total.version > best[total.key].version:
                best[total.key] = total
    return {key: total.total for key, total in best.items()}


async def work(wanted: argparse.Namespace) -> int:
    """A worker with one toy stage, until SIGTERM or failure."""
    breakpoints = KillAt(wanted.kill_at, Stage.RESOLVE, wanted.nth) if wanted.kill_at else None
    options = RunnerOptions(
        (wanted.broker,),
        wanted.partitions,
        Path(wanted.folder),
        name=wanted.name,
        group_prefix=wanted.group,
        dev_broker=wanted.dev,
        checkpoint_interval=0.25,
        session_timeout=wanted.session_timeout,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    runner = FaustRunner(Spec(), None, options, breakpoints)
    starting = asyncio.ensure_future(runner.start())
    await asyncio.wait({starting, asyncio.ensure_future(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    ends: set[asyncio.Future[Any]] = {asyncio.ensure_future(stop.wait()), runner.failed}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    clean = await runner.stop()
    seen = runner.statistics
    print(f"END holes={seen.holes} read={seen.caught_up_records} redelivered={seen.redelivered} fenced={seen.fenced}")
    return 0 if clean and not runner.failed.done() else 3


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("broker")
    arguments.add_argument("folder")
    arguments.add_argument("--group", default="toy")
    arguments.add_argument("--name", default="worker")
    arguments.add_argument("--partitions", type=int, default=2)
    arguments.add_argument("--session-timeout", type=float, default=6.0)
    arguments.add_argument("--dev", action="store_true")
    arguments.add_argument("--kill-at", default="")
    arguments.add_argument("--nth", type=int, default=1)
    logs.set_up("INFO")
    return asyncio.run(work(arguments.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
