"""The steps of the line in one process without a broker: CPU seconds by part, and the size of the state.

The rule this file keeps: what no probe claims is the runner's (envelopes, watermarks, cuts), and a wrong result is no
result. A process of its own, `python -m tests.bench.core_line`; the last line that it prints is its result as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import load
from pipeline.core.ingest import Ingest
from pipeline.core.judging.kept import CONVERSATION, PLAIN
from pipeline.core.judging.state import Conversation
from pipeline.core.timeline import TimeRules
from pipeline.operate.migrate import migrate
from pipeline.runners.local_runner import LocalRunner
from pipeline.sinks.clickhouse import Store
from pipeline.topology import Setup
from schemas.envelope import decoder
from schemas.rows import TABLES
from schemas.topics import Stage, Topic
from schemas.wire import Row
from tests.bench.families import Counts, RateCount, counted
from tests.bench.probe import Clock, Probe, probed
from tests.bench.report import CoreResult
from tests.bench.workload import Generator, Workload

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"
PARTITIONS = 2
CHUNK = 64
"""Messages between two cuts: about what a worker takes in within one checkpoint interval."""
BATCH_ROWS = 50_000
SIZED_SESSIONS, SIZED_HOURS = 500, 0.25

_decode_conversation = msgspec.msgpack.Decoder(Conversation).decode


def contracts(rules: TimeRules) -> ContractBook:
    return load([(path.name, path.read_text()) for path in sorted(CONTRACTS.glob("*.yaml"))], rules)


class Line:
    """Ingest and the keyed steps, timed.

    Args:
        partitions: of every topic.
    """

    def __init__(self, partitions: int = PARTITIONS) -> None:
        self._partitions = partitions
        rules = TimeRules()
        self.clock = Clock()
        self.probes: dict[Stage, list[Probe]] = {}
        self._ingest = Ingest(partitions, rules)
        self.runner = LocalRunner(
            probed(self.clock, self.probes),
            Setup(contracts(rules), rules, partitions),
            partitions,
            self._ingest,
            dict.fromkeys((Topic.OTLP_SPANS, Topic.OUTCOMES), partitions),
        )

    def take(self, workload: Workload) -> None:
        """Everything in the order in which it was sent."""
        spans = [(one.time, Topic.OTLP_SPANS, one.value) for one in workload.spans]
        outcomes = [(one.time, Topic.OUTCOMES, one.value) for one in workload.outcomes]
        for number, (moment, topic, value) in enumerate(sorted(spans + outcomes), start=1):
            feed = partial(self.runner.feed, topic, value, moment, number % self._partitions)
            self.clock.time(Stage.INGEST, feed)
            if number % CHUNK == 0:
                self.runner.drain()
        self.runner.drain()

    def rows(self) -> Iterable[Row]:
        envelopes = decoder(Row)
        for message in self.runner.messages(Topic.ROWS):
            yield from envelopes.decode(message.value or b"").records

    def counts(self) -> dict[str, Counts]:
        """The published rates, as the store would add them up."""
        newest: dict[tuple[Any, ...], dict[str, Any]] = {}
        for values in self.runner.rows("segment_metrics"):
            row = dict(zip(TABLES["segment_metrics"], values, strict=True))
            key = row["cube"], tuple(row["dimensions"].items()), row["rate"], row["bucket"]
            if key not in newest or newest[key]["version"] < row["version"]:
                newest[key] = row
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for row in newest.values():
            if row["cube"] == "family":
                at = row["dimensions"]["family"], row["rate"]
                good, n = sums.get(at, (0, 0))
                sums[at] = good + row["numerator"], n + row["denominator"]
        rates: list[RateCount] = [({"family": family}, rate, *sums[family, rate]) for family, rate in sums]
        return counted(rates)

    def steps(self) -> int:
        """How many distinct spans came to the end."""
        at = [TABLES["agent_steps"].index(column) for column in ("trace_id", "span_id")]
        return len({tuple(values[index] for index in at) for values in self.runner.rows("agent_steps")})


async def _sink(line: Line, folder: str) -> None:
    """Write the rows, in the batches in which a worker writes them."""
    store = Store.open(f"chdb://{folder}")
    await store.in_thread(lambda: migrate(store))
    begun = time.process_time()
    tables: dict[str, list[list[Any]]] = {}
    for row in line.rows():
        tables.setdefault(row.table, []).append(row.values)
    for table, rows in tables.items():
        for start in range(0, len(rows), BATCH_ROWS):
            await store.write(table, rows[start : start + BATCH_ROWS], f"{table}:{start}")
    line.clock.seconds[Stage.SINK] = time.process_time() - begun
    store.close()


def open_size(seed: int) -> int:
    """Bytes of checkpoint, in stages 2 and 4, for an open session of 20 spans."""
    workload = Generator(seed, SIZED_HOURS).run(SIZED_SESSIONS)
    line = Line()
    half = len(workload.spans) // 2
    workload.spans = workload.spans[:half]
    line.take(workload)
    size = spans = 0
    traces = {
        state_key.rpartition(b"\0")[2] if len(state_key) < 16 else state_key[-16:]: len(state_key) + len(state)
        for probe in line.probes[Stage.RESOLVE]
        for state_key, state in probe.states.items()
    }
    for probe in line.probes[Stage.JUDGE]:
        for key, state in probe.states.items():
            conversation = _decode_conversation(state) if key[:1] == CONVERSATION and state[:1] > PLAIN else None
            if conversation is None or any(one.revision for one in conversation.published):
                continue
            size += len(key) + len(state) + sum(traces.get(trace_id, 0) for trace_id in conversation.traces)
            spans += sum(len(held.spans) for held in conversation.traces.values())
    return round(20 * size / spans)


def measure(sessions: int, seed: int, profile: Path | None) -> CoreResult:
    workload = Generator(seed).run(sessions)
    line = Line()
    profiler = cProfile.Profile() if profile else None
    begun = time.process_time()
    if profiler:
        profiler.enable()
    line.take(workload)
    line.runner.end_of_input(workload.end)
    if profiler:
        profiler.disable()
        profiler.dump_stats(str(profile))
    total = time.process_time() - begun
    line.clock.seconds["runner"] = total - sum(line.clock.seconds.values())
    with tempfile.TemporaryDirectory(prefix="trueup-bench-") as folder:
        asyncio.run(_sink(line, folder))
    return CoreResult(line.counts(), line.steps(), dict(line.clock.seconds), open_size(seed))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    print(msgspec.json.encode(measure(given.sessions, given.seed, given.profile)).decode())


if __name__ == "__main__":
    main()
