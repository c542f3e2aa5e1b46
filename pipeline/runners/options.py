"""How a runner is set up, and the hook by which a test or a demo kills it at a chosen point."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pipeline.core.effects import PartitionStep
from pipeline.core.timeline import Source
from schemas.topics import Stage, Topic


class StageSpec(Protocol):
    """A line of `topology.py`: a stage, its topics, and what makes its steps."""

    @property
    def stage(self) -> Stage: ...
    @property
    def source(self) -> Topic: ...
    @property
    def snap(self) -> Topic: ...
    @property
    def targets(self) -> tuple[Topic, ...]:
        """Topics that hear of the stage's watermark."""

    @property
    def record(self) -> Any:
        """What the source topic carries, for the decoder."""

    @property
    def sources(self) -> Callable[[dict[Topic, int]], Iterable[Source]]:
        """Partition counts -> the sources that must be heard before the watermark moves."""

    @property
    def make(self) -> Callable[[Any], Callable[[int], PartitionStep]]:
        """Set-up -> partition -> step."""


class Breakpoints:
    """Points where a crash is hardest to survive. This one does nothing."""

    def outputs_sent(self, stage: str, partition: int) -> None:
        """The outputs of a cut are durable, its state is not."""

    def marker_sent(self, stage: str, partition: int) -> None:
        """The state is durable, the input is not acknowledged."""


class KillAt(Breakpoints):
    """kill -9 of the own process at the `nth` time that a stage passes a point."""

    def __init__(self, point: str, stage: str, nth: int = 1) -> None:
        if point not in ("outputs_sent", "marker_sent"):
            raise ValueError(f"no such point: {point}")
        self.point, self.stage, self.left = point, stage, nth

    def outputs_sent(self, stage: str, partition: int) -> None:
        self._passed("outputs_sent", stage)

    def marker_sent(self, stage: str, partition: int) -> None:
        self._passed("marker_sent", stage)

    def _passed(self, point: str, stage: str) -> None:
        if (point, stage) == (self.point, self.stage):
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What all runners of a worker share. Times in seconds.

    Args:
        brokers: `host:port`, one or more.
        partitions: of every inter-stage topic.
        data_dir: where the engine may litter; each runner makes a folder of its own in it.
        name: of this worker, for logs and the engine's folder.
        group_prefix: of the consumer groups; the stage's name follows.
        dev_broker: the embedded broker: no idempotent producer, its log ends are too low, its long polls are not woken.
        epoch: the versions' highest part; a backfill that is published raises it.
        snapshot_bytes, snapshot_age: a full snapshot is due when blocks since the last have grown to twice its size and
            this much, or when it is this old; the age must stay below half the retention of the -snap topic.
        watchdog_after: lag without any movement for so long ends the process.
        join_timeout: without an assignment for so long, the group does not want us.
    """

    brokers: tuple[str, ...]
    partitions: int
    data_dir: Path
    name: str = "worker"
    group_prefix: str = "trueup"
    dev_broker: bool = False
    epoch: int = 0
    checkpoint_interval: float = 1.0
    heartbeat_interval: float = 1.0
    advance_interval: float = 0.2
    heal_after: float = 3.0
    idle_after: float = 60.0
    session_timeout: float = 6.0
    snapshot_bytes: int = 16 << 20
    snapshot_age: float = 6 * 3600.0
    watchdog_after: float = 60.0
    join_timeout: float = 60.0
    stop_timeout: float = 20.0
    source_partitions: Mapping[Topic, int] = field(default_factory=dict)


def heartbeat_seconds(options: RunnerOptions) -> float:
    """How often a member tells its group that it lives: what it learns of a rebalance, it learns by that."""
    return min(3.0, options.session_timeout / 6)


class Statistics:
    """What a runner counts, for gauges and tests; only ever grows."""

    __slots__ = ("broken", "caught_up_records", "fenced", "holes", "records", "redelivered", "restored")

    def __init__(self) -> None:
        self.records: Counter[tuple[str, str]] = Counter()  # (result, reason), as the steps count
        self.redelivered = 0  # messages skipped since they were applied already
        self.holes = 0  # stretches that the engine did not deliver
        self.caught_up_records = 0  # records in them, read directly
        self.restored = 0  # partitions read back
        self.broken = 0  # times that a step raised and the partition went back to its checkpoint
        self.fenced = 0
