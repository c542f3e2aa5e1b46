"""The demo world on three real brokers, with workers and brokers that come and go: exact, whatever happens on the way.

Two workers and a third that joins late; one is killed and comes back, one leaves in good order, one broker is killed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from deploy.kafka.cluster import Cluster
from pipeline.cli.demo import IDLE_AFTER
from pipeline.demo.play import play
from pipeline.demo.screen import Screen
from pipeline.embedded.machine import READY_SECONDS, Machine
from pipeline.simulation.world import build

SESSIONS = 500
PARTITIONS = 4


class Events:
    """What happens when so much of the world is sent."""

    def __init__(self, machine: Machine, cluster: Cluster) -> None:
        self._machine, self._cluster = machine, cluster
        self.happened: list[str] = []
        self._plan: list[tuple[float, Callable[[], None]]] = [
            (0.10, self.a_worker_joins),
            (0.25, self.a_worker_is_killed),
            (0.40, self.it_comes_back),
            (0.55, self.a_broker_is_killed),
            (0.75, self.a_worker_leaves),
        ]

    def __call__(self, share: float) -> bool:
        while self._plan and share >= self._plan[0][0]:
            _, event = self._plan.pop(0)
            event()
            self.happened.append(event.__name__)
        return bool(self._plan)

    def a_worker_joins(self) -> None:
        self._machine.add_worker()

    def a_worker_is_killed(self) -> None:
        first = self._machine.workers[0]
        first.kill()
        self._machine.remove_worker(first)

    def it_comes_back(self) -> None:
        self._machine.add_worker()

    def a_broker_is_killed(self) -> None:
        self._cluster.kill(1)

    def a_worker_leaves(self) -> None:
        self._machine.remove_worker(self._machine.workers[0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_demo_is_exact_whoever_comes_and_goes(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEUP_PARTITIONS", str(PARTITIONS))
    monkeypatch.setenv("TRUEUP_SUBJECT_KEY", "the same in every worker")
    world = build(seed, SESSIONS, datetime.now(UTC))
    with Cluster(tmp_path / "kafka", 3) as cluster:
        machine = Machine(
            tmp_path / "trueup",
            brokers=cluster.bootstrap.split(","),
            workers=2,
            worker_arguments=["--idle-after", IDLE_AFTER],
        )
        with machine:
            machine.start()
            events = Events(machine, cluster)
            screen = Screen(Console(width=120))
            played = play(machine, world, screen, events)
            for worker in machine.workers:
                worker.wait_ready(READY_SECONDS)
            screen.differences(played.comparison.wrong)
            print(json.dumps(played.seconds))

    assert len(events.happened) == 5
    assert played.comparison.wrong == []
    assert len(played.comparison.rows) == len(world.truth)
    sources = set(played.comparison.rows[0].measured)
    assert sources == {"metrics", "store", "state 1", "state 2"}
