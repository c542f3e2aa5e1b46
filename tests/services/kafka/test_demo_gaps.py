"""The demo world while the engine drops messages: they are read directly; with the direct read off, numbers are wrong.

The first two tests drop messages at every assignment. The others make the engine drop them by itself: restores of 3 s,
and rebalances in pairs that overlap. Up to three seeds are tried until it has; every seed that is tried must be exact.
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
from pipeline.demo.play import Disturb, play
from pipeline.demo.screen import Screen
from pipeline.embedded.machine import Machine
from pipeline.simulation.world import build
from tests.services.kafka.preloads import SEEKS

SESSIONS = 700
FEW = 250
PARTITIONS = 4
SEEDS = (1, 2, 3)
PAIRS_AT = (0.15, 0.35, 0.55, 0.75)
PATIENCE_SECONDS = 120.0  # a new process on a busy machine
READ_DIRECTLY = "input read past the engine"


class Pairs:
    """A worker comes and, while the others still seek, another one goes: two overlapping rebalances, four times."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._at = list(PAIRS_AT)

    def __call__(self, share: float) -> bool:
        if self._at and share >= self._at[0]:
            self._at.pop(0)
            self.come_and_go()
        return bool(self._at)

    def come_and_go(self) -> None:
        going = self._machine.workers[0]
        before, deadline = self._seeks(), time.monotonic() + PATIENCE_SECONDS
        self._machine.add_worker()
        while self._seeks() == before:
            assert time.monotonic() < deadline, "a worker came, and nobody seeks"
            time.sleep(0.05)
        self._machine.remove_worker(going)

    def _seeks(self) -> int:
        """Of the workers that stay."""
        return sum(child.log.read_text().count(SEEKS) for child in self._machine.workers[1:] if child.log.exists())


class OneComes:
    """A third worker comes when a third of the world is sent."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._come = machine, False

    def __call__(self, share: float) -> bool:
        if share > 0.3 and not self._come:
            self._come = True
            self._machine.add_worker()
        return not self._come


def disturbed(
    folder: Path, seed: int, preload: str, sessions: int, disturbance: Callable[[Machine], Disturb]
) -> tuple[list[Row], str]:
    """The rows that are wrong, and what the workers said."""
    world = build(seed, sessions, datetime.now(UTC))
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
            played = play(machine, world, screen, disturbance(machine))
            screen.differences(played.comparison.wrong)
    said = "".join(log.read_text() for log in (folder / "trueup" / "logs").glob("worker-*.log"))
    return played.comparison.wrong, said


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_PARTITIONS", str(PARTITIONS))
    monkeypatch.setenv("TRUEUP_SUBJECT_KEY", "the same in every worker")


def test_what_the_engine_drops_is_read_directly(tmp_path: Path) -> None:
    wrong, said = disturbed(tmp_path, 1, "dropping", FEW, OneComes)

    assert wrong == []
    assert READ_DIRECTLY in said


def test_what_the_engine_drops_is_missing_without_the_direct_read(tmp_path: Path) -> None:
    wrong, said = disturbed(tmp_path, 1, "dropping_and_trusting", FEW, OneComes)

    assert READ_DIRECTLY not in said
    assert wrong


def test_the_demo_is_exact_where_the_engine_drops_messages(tmp_path: Path) -> None:
    provoked = False
    for seed in SEEDS:
        wrong, said = disturbed(tmp_path / str(seed), seed, "slow", SESSIONS, Pairs)
        assert wrong == []
        if provoked := READ_DIRECTLY in said:
            break
    assert provoked


def test_numbers_are_wrong_when_the_engine_is_trusted(tmp_path: Path) -> None:
    wrong: list[Row] = []
    for seed in SEEDS:
        wrong, said = disturbed(tmp_path / str(seed), seed, "slow_and_trusting", SESSIONS, Pairs)
        assert READ_DIRECTLY not in said
        if wrong:
            break
    assert wrong
