"""A stopwatch around a step.

The rule this file keeps: what is measured is the product's own step; the probe reads the CPU clock and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.core.effects import Changed, Outbox, PartitionStep, Versions
from pipeline.topology import STAGES, Setup, StageSpec
from schemas.topics import Stage


class Clock:
    """CPU seconds of this process (all its threads), by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, part: str, call: Callable[[], Any]) -> Any:
        begun = time.process_time()
        answer = call()
        self.seconds[part] = self.seconds.get(part, 0.0) + time.process_time() - begun
        return answer


class Probe:
    """A step, timed; `states` is what of it lies in the checkpoint now."""

    def __init__(self, part: str, step: PartitionStep, clock: Clock) -> None:
        self.outbox: Outbox = step.outbox
        self.versions: Versions = step.versions
        self.states: dict[bytes, bytes] = {}
        self._part, self._step, self._clock = part, step, clock

    def load(self, key: bytes, state: bytes) -> None:
        self._step.load(key, state)

    def opened(self, watermark: int) -> None:
        self._step.opened(watermark)

    def caught_up(self) -> None:
        self._step.caught_up()

    def passes_on(self, watermark: int) -> int:
        return self._step.passes_on(watermark)

    def apply(self, records: Sequence[Any]) -> None:
        self._clock.time(self._part, lambda: self._step.apply(records))

    def advance(self, watermark: int) -> None:
        self._clock.time(self._part, lambda: self._step.advance(watermark))

    def publish(self) -> None:
        self._clock.time(self._part, self._step.publish)

    def changed(self) -> Changed:
        changed: Changed = self._clock.time(self._part, self._step.changed)
        self.states.update(changed.states)
        for key in changed.gone:
            self.states.pop(key, None)
        return changed


def probed(clock: Clock, probes: dict[Stage, list[Probe]]) -> tuple[StageSpec, ...]:
    """The stages as they are, with a probe around each step; the probes are put into `probes`."""

    def around(spec: StageSpec) -> StageSpec:
        def make(setup: Setup) -> Callable[[int], PartitionStep]:
            make_step = spec.make(setup)

            def make_probe(partition: int) -> PartitionStep:
                probe = Probe(spec.stage, make_step(partition), clock)
                probes.setdefault(spec.stage, []).append(probe)
                return probe

            return make_probe

        return replace(spec, make=make)

    return tuple(around(spec) for spec in STAGES)
