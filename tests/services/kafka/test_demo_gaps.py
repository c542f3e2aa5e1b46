"""The demo world while the engine drops messages: restores of 3 s, and rebalances in pairs that overlap.

Whether the engine drops something is a matter of milliseconds, so up to three seeds are tried until it has; every seed
that is tried must be exact. The last test switches the direct read off: then numbers are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from deploy.kafka.cluster import Cluster
from pipeline.cli.demo import IDLE_AFTER
from pipeline.demo.compare import Row
from pipeline.demo.play import play
from pipeline.demo.screen import Screen
from pipeline.embedded.machine import Machine
from pipeline.simulation.world import build

SESSIONS = 700
PARTITIONS = 4
SEEDS = (1, 2, 3)
APART_SECONDS = 1.5  # within the seek after the first rebalance, so that the second one overlaps it
READ_DIRECTLY = "input read past the engine"


class Pairs:
    """Two workers come, two workers go, again and again while the world is sent."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._plan: list[tuple[float, Callable[[], None]]] = [
            (0.10, self.two_come),
            (0.30, self.two_go),
            (0.50, self.two_come),
            (0.70, self.two_go),
        ]

    def __call__(self, share: float) -> bool:
        while self._plan and share >= self._plan[0][0]:
            self._plan.pop(0)[1]()
        return bool(self._plan)

    def two_come(self) -> None:
        self._machine.add_worker()
        time.sleep(APART_SECONDS)
        self._machine.add_worker()

    def two_go(self) -> None:
        for worker in self._machine.workers[:2]:
            worker.terminate()
            time.sleep(APART_SECONDS)
        for worker in self._machine.workers[:2]:
            self._machine.remove_worker(worker)


def disturbed(folder: Path, seed: int, preload: str) -> tuple[list[Row], str]:
    """The rows that are wrong, and what the workers said."""
    world = build(seed, SESSIONS, datetime.now(UTC))
    with Cluster(folder / "kafka", 3) as cluster:
        machine = Machine(
            folder / "trueup",
            brokers=cluster.bootstrap.split(","),
            workers=2,
            worker_arguments=["--idle-after", IDLE_AFTER, "--preload", f"tests.services.kafka.preloads.{preload}"],
        )
        with machine:
            machine.start()
            screen = Screen(Console(width=120))
            played = play(machine, world, screen, Pairs(machine))
            screen.differences(played.comparison.wrong)
    said = "".join(log.read_text() for log in (folder / "trueup" / "logs").glob("worker-*.log"))
    return played.comparison.wrong, said


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_PARTITIONS", str(PARTITIONS))
    monkeypatch.setenv("TRUEUP_SUBJECT_KEY", "the same in every worker")


def test_the_demo_is_exact_where_the_engine_drops_messages(tmp_path: Path) -> None:
    provoked = False
    for seed in SEEDS:
        wrong, said = disturbed(tmp_path / str(seed), seed, "slow")
        assert wrong == []
        if provoked := READ_DIRECTLY in said:
            break
    assert provoked


def test_numbers_are_wrong_when_the_engine_is_trusted(tmp_path: Path) -> None:
    wrong: list[Row] = []
    for seed in SEEDS:
        wrong, said = disturbed(tmp_path / str(seed), seed, "slow_and_trusting")
        assert READ_DIRECTLY not in said
        if wrong:
            break
    assert wrong
