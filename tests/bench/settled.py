"""What settled sessions cost: bytes of checkpoint and of memory, in stages 2 to 4.

The rule this file keeps: a real line has judged the sessions and let them settle; only then are they copied, each copy
under ids of its own, so that what a partition holds of many can be measured without judging many. A process of its own,
`python -m tests.bench.settled`; the last line that it prints is its result as JSON.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator

import msgspec

from pipeline.core.effects import PartitionStep
from pipeline.core.judging.kept import CONVERSATION, PLAIN, RESTING
from pipeline.core.judging.packed import MARK_BYTES
from pipeline.core.packing import WORD
from pipeline.core.timeline import TimeRules
from pipeline.topology import Setup, spec_of
from schemas.topics import Stage
from tests.bench.core_line import Line, contracts
from tests.bench.report import Cost, SettledCost
from tests.bench.workload import Generator

HOURS = 0.25
SESSIONS, COPIES = 200, 100
PER_SESSION, PER_TRACE, PER_KEY = 300, 64, 64
"""Bytes that they may cost. Source: the design's targets; a session has 8 more for each span."""

States = dict[bytes, bytes]
Pairs = list[tuple[bytes, bytes]]


def measure(seed: int, sessions: int, copies: int) -> SettledCost:
    workload = Generator(seed, HOURS).run(sessions)
    line = Line(partitions=1)  # the words of one partition are not those of another
    line.take(workload)
    line.runner.end_of_input(workload.end)
    found = {
        stage: {key: state for probe in line.probes[stage] for key, state in probe.states.items()}
        for stage in (Stage.RESOLVE, Stage.CORRELATE, Stage.JUDGE)
    }
    marks = MARK_BYTES * workload.distinct * copies
    return SettledCost(
        session=_cost(Stage.JUDGE, found[Stage.JUDGE], _of_sessions, copies, workload.end, marks),
        trace=_cost(Stage.RESOLVE, found[Stage.RESOLVE], lambda key, _: key[:1] == b"t", copies, workload.end, 0),
        key=_cost(Stage.CORRELATE, found[Stage.CORRELATE], lambda key, _: key[:1] == b"k", copies, workload.end, 0),
    )


def _of_sessions(key: bytes, state: bytes) -> bool:
    """Not of a conversation of which only outcomes came."""
    return key[:1] == CONVERSATION and state[:1] in (PLAIN, RESTING)


def _cost(
    stage: Stage, states: States, counts: Callable[[bytes, bytes], bool], copies: int, now: int, besides: int
) -> Cost:
    """Load the copies into a fresh step.

    Args:
        counts: (key, state) -> whether it is one of those that are measured.
        besides: bytes of all of them that do not count.
    """
    wanted = {key: state for key, state in states.items() if counts(key, state)}
    copied = [pair for number in range(copies) for pair in _copies(wanted, number)]
    words = [(key, state) for key, state in states.items() if key[:1] == WORD]
    begun = time.process_time()
    _restored(stage, words, copied, now)
    seconds = time.process_time() - begun
    half = len(copied) // 2
    memory = _memory(stage, words, copied, now) - _memory(stage, words, copied[:half], now)
    n = len(copied)
    checkpoint = sum(len(msgspec.msgpack.encode(pair)) for pair in copied)
    return Cost(n, (checkpoint - besides) / n, memory / (n - half) - besides / n, seconds / n * 1e6)


def _memory(stage: Stage, words: Pairs, copied: Pairs, now: int) -> int:
    """Bytes that a step holds when it is restored."""
    tracemalloc.start()
    step = _restored(stage, words, copied, now)
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del step
    return memory


def _restored(stage: Stage, words: Pairs, copied: Pairs, now: int) -> PartitionStep:
    rules = TimeRules()
    step = spec_of(stage).make(Setup(contracts(rules), rules, 1))(0)
    for key, state in (*words, *copied):
        step.load(key, state)
    step.opened(now)
    return step


def _copies(states: States, number: int) -> Iterator[tuple[bytes, bytes]]:
    """The same states under other ids: the last two bytes of a key are part of one."""
    for key, state in states.items():
        yield key[:-2] + number.to_bytes(2, "big"), state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    print(msgspec.json.encode(measure(parser.parse_args().seed, SESSIONS, COPIES)).decode())


if __name__ == "__main__":
    main()
