"""The whole line as it runs in production: a worker process of its own behind a broker, and what its store says then.

The rule this file keeps: the worker is started by its command, fed over Kafka and asked over HTTP and in its store; the
benchmark is in it only to read its CPU clock. What the broker costs is not counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer

from pipeline import metrics
from pipeline.core.ingest import end_of_input
from pipeline.core.timeline import SECOND, to_datetime
from pipeline.embedded import free_port
from pipeline.sinks.clickhouse import Store
from schemas.topics import Stage, Topic
from tests.bench.families import RateCount, counted
from tests.bench.report import LineResult
from tests.bench.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 2
AS_IN_PRODUCTION = {
    "TRUEUP_CHECKPOINT_INTERVAL": "1s",
    "TRUEUP_IDLE_AFTER": "60s",
    "TRUEUP_SUBJECT_KEY": "a key for the benchmark alone",
}
"""The embedded set-up keeps its checkpoints closer together, and waits less for sources that are silent."""
READY_SECONDS, STALLED_SECONDS = 90.0, 120.0
ASK_EVERY = 2.0
PROGRESS = metrics.RECORDS.name, metrics.SINK_PENDING.name
SAME_ANSWERS = 3
"""So often in a row nothing may have changed before the line counts as done."""


class BenchFailed(Exception):
    """There is no figure, and why."""


@dataclass(slots=True)
class Worker:
    """A running worker."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @classmethod
    def start(cls, brokers: str, folder: Path, profile: Path | None) -> Worker:
        port = free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRUEUP_")}
        environment |= {**AS_IN_PRODUCTION, "BENCH_CPU": str(folder / "cpu")}
        if profile is not None:
            environment["BENCH_PROFILE"] = str(profile)
        command = [
            sys.executable, "-m", "pipeline", "worker", "--embedded", "--brokers", brokers,
            "--contracts", str(ROOT / "contracts"), "--data-dir", str(folder), "--port", str(port),
            "--gateway-port", str(free_port()), "--debug", "--preload", "tests.bench.spy",
        ]  # fmt: skip
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        return cls(process, port, folder)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self._ask("/readyz") is not None:
                return
            time.sleep(0.2)
        raise BenchFailed(f"the worker was not ready within {READY_SECONDS:g} s: {self.last_words()}")

    def _ask(self, path: str) -> str | None:
        if self.process.poll() is not None:
            raise BenchFailed(f"the worker ended with {self.process.returncode}: {self.last_words()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, OSError):
            return None

    def wait_until_done(self, end: int) -> None:
        """Until event time is over at the last stage, and the store has all rows."""
        before, same, moved = "", 0, time.monotonic()
        while same < SAME_ANSWERS:
            time.sleep(ASK_EVERY)
            lines = (self._ask("/metrics") or "").splitlines()
            now = "\n".join(
                line for line in lines if line.startswith((metrics.RECORDS.name, metrics.SINK_PENDING.name))
            )
            marks = [float(line.split()[1]) for line in lines if _is_watermark(line)]
            over = len(marks) == PARTITIONS and min(marks) >= end // SECOND
            same = same + 1 if over and now == before else 0
            if now != before:
                before, moved = now, time.monotonic()
            elif time.monotonic() - moved > STALLED_SECONDS:
                raise BenchFailed(f"nothing has moved for {STALLED_SECONDS:g} s: {self.last_words()}")

    def cpu_seconds(self) -> float:
        told = self.folder / "cpu"
        told.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 30
        while not told.exists():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BenchFailed(f"the worker does not tell its CPU time: {self.last_words()}")
            time.sleep(0.02)
        return float(told.read_text())

    def stop(self) -> int:
        """End it; returns its peak memory in bytes."""
        self.process.terminate()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def kill(self) -> None:
        if self.process.returncode is None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        return (self.folder / "worker.log").read_text(errors="replace").strip()[-1500:]


def _is_watermark(line: str) -> bool:
    return line.startswith(metrics.WATERMARK.name) and f'stage="{Stage.MEASURE}"' in line


async def feed(brokers: str, workload: Workload) -> None:
    """Everything in the order in which it was sent, over the partitions in turn; then the sign that it is over."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, max_request_size=4 << 20, linger_ms=5)
    await producer.start()
    await _end(producer, Topic.OTLP_LOGS, workload.end)  # there are none: they hold nothing back
    spans = [(one.time, Topic.OTLP_SPANS, one.value) for one in workload.spans]
    outcomes = [(one.time, Topic.OUTCOMES, one.value) for one in workload.outcomes]
    waiting = [
        await producer.send(topic, value, partition=number % PARTITIONS, timestamp_ms=moment // 1_000_000)
        for number, (moment, topic, value) in enumerate(sorted(spans + outcomes))
    ]
    await asyncio.gather(*waiting)
    for topic in (Topic.OTLP_SPANS, Topic.OUTCOMES):
        await _end(producer, topic, workload.end)
    await producer.stop()


async def _end(producer: AIOKafkaProducer, topic: Topic, end: int) -> None:
    over = end_of_input(to_datetime(end))
    for partition in range(PARTITIONS):
        await producer.send_and_wait(topic, over, partition=partition, timestamp_ms=end // 1_000_000)


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store says when the worker has ended."""

    rates: list[RateCount]
    steps: int
    dead_letters: dict[str, int]


async def read_store(folder: Path) -> Stored:
    store = Store.open(f"chdb://{folder / 'clickhouse'}")
    try:
        rates = await store.rates("family", 0, 2**62)
        steps = store.query("SELECT uniqExact(trace_id, span_id) FROM agent_steps")
        letters = store.query("SELECT reason, count() FROM dead_letters GROUP BY reason ORDER BY reason")
    finally:
        store.close()
    return Stored(rates, int(steps[0][0]), {str(reason): int(n) for reason, n in letters})


def measure(brokers: str, workload: Workload, folder: Path, profile: Path | None) -> LineResult:
    """Run the workload through a worker.

    Raises:
        BenchFailed: it did not come to the end.
    """
    worker = Worker.start(brokers, folder, profile)
    try:
        worker.wait_until_ready()
        ready, begun = worker.cpu_seconds(), time.monotonic()
        asyncio.run(feed(brokers, workload))
        worker.wait_until_done(workload.end)
        seconds, wall = worker.cpu_seconds() - ready, time.monotonic() - begun
        peak = worker.stop()
    finally:
        worker.kill()
    stored = asyncio.run(read_store(folder))
    return LineResult(counted(stored.rates), stored.steps, stored.dead_letters, ready, seconds, wall, peak)
