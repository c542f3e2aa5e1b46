"""What a process has to say of itself, at a scrape and to the read API; kept for a moment at most.

The rule this file keeps: `/metrics` speaks of what this worker owns now; the API speaks of all segments, so that for
those of other workers it reads along in their checkpoints.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline import metrics
from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.ingest import Ingest
from pipeline.core.judging.step import JudgeStep
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.resolving.step import ResolveStep
from pipeline.errors import StoreUnavailable
from pipeline.runners.faust_runner import FaustRunner
from pipeline.runners.follower import SnapFollower
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.sink_runner import SinkRunner
from pipeline.sinks.conversation import Conversation
from pipeline.sinks.listing import Page, Place, Wanted
from pipeline.sinks.restatements import Restatement
from pipeline.worker.contracts import Contracts
from schemas.segment import CUBES, CountReading, MeanReading, RateReading
from schemas.topics import Stage

KEPT_SECONDS = 0.5  # rates are dear to make, and a page asks for several cubes and windows at once


class NoStore:
    """`serve.api.Reader` of a process without a store: its `dsn` names files that the sink's process owns."""

    async def rates(
        self, cube: str, window_start_ns: int, window_end_ns: int
    ) -> list[tuple[dict[str, str], str, int, int]]:
        raise StoreUnavailable("this process has no store: ask the sink's")

    async def session(self, tenant: str, conversation: str) -> Conversation | None:
        raise StoreUnavailable("this process has no store: ask the sink's")

    async def sessions(self, wanted: Wanted, after: Place | None, limit: int) -> Page:
        raise StoreUnavailable("this process has no store: ask the sink's")

    async def restatements(self, cube: str, rate: str | None, since: int, limit: int) -> tuple[int, list[Restatement]]:
        raise StoreUnavailable("this process has no store: ask the sink's")


class ProcessReadings:
    """`sinks.prometheus.Readings` of the runners of one process.

    Args:
        follower: of stage 5's checkpoints, where other workers own some of its partitions.
    """

    def __init__(
        self,
        stages: Mapping[Stage, FaustRunner],
        ingest: IngestRunner | None,
        sink: SinkRunner | None,
        follower: SnapFollower | None,
        contracts: Contracts | None = None,
        cubes: Sequence[str] = CUBES,
    ) -> None:
        self._stages, self._ingest, self._sink, self._follower = stages, ingest, sink, follower
        self._contracts, self._cubes = contracts, cubes
        self._rates: list[RateReading] = []
        self._rates_until = 0.0
        self._summaries: tuple[list[MeanReading], list[CountReading]] = ([], [])
        self._summaries_until = 0.0

    # --- of what is owned here

    def rates(self) -> Iterable[RateReading]:
        measure = self._stages.get(Stage.MEASURE)
        for step in measure.steps().values() if measure else ():
            if isinstance(step, MeasureStep):
                yield from step.readings()

    def summaries(self) -> tuple[list[MeanReading], list[CountReading]]:
        means: list[MeanReading] = []
        counts: list[CountReading] = []
        measure = self._stages.get(Stage.MEASURE)
        for step in measure.steps().values() if measure else ():
            if isinstance(step, MeasureStep):
                more_means, more_counts = step.summaries()
                means += more_means
                counts += more_counts
        return means, counts

    def records(self) -> Iterable[tuple[str, str, str, int]]:
        for stage, counts in self._counts().items():
            for (result, reason), n in sorted(counts.items()):
                yield stage, str(result), reason, n

    def session_like(self) -> Iterable[tuple[str, int]]:
        ingest = self._ingest.ingest if self._ingest is not None else None
        return sorted(ingest.session_like.items()) if isinstance(ingest, Ingest) else ()

    def _counts(self) -> dict[str, Counter[tuple[str, str]]]:
        found = {stage.value: runner.statistics.records for stage, runner in self._stages.items()}
        for runner in (self._ingest, self._sink):
            if runner is not None:
                found[runner.stage.value] = runner.statistics.records
        return found

    def watermarks(self) -> Iterable[tuple[str, int, int]]:
        for stage, runner in self._stages.items():
            for partition, watermark in sorted(runner.watermarks().items()):
                yield stage.value, partition, watermark

    def owned(self) -> Iterable[tuple[str, int]]:
        for stage, runner in self._stages.items():
            for partition in sorted(runner.steps()):
                yield stage.value, partition

    def partitions(self) -> Iterable[tuple[str, int]]:
        for stage, runner in self._stages.items():
            yield stage.value, runner.options.partitions

    def caught_up(self) -> Iterable[tuple[str, str, int]]:
        for stage, runner in self._stages.items():
            yield stage.value, runner.spec.source.value, runner.statistics.caught_up_records

    def commit_ages(self) -> Iterable[tuple[str, int, float]]:
        for runner in self._stages.values():
            for partition, age in sorted(runner.commit_ages().items()):
                yield runner.spec.source.value, partition, age
        for group in (self._ingest, self._sink):
            for (topic, partition), age in sorted(group.commit_ages().items()) if group is not None else ():
                yield topic, partition, age

    def gauges(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        if self._stages:
            steps = [step for runner in self._stages.values() for step in runner.steps().values()]
            judges = [step for step in steps if isinstance(step, JudgeStep)]
            found[metrics.OPEN_SESSIONS.name] = sum(step.open_sessions() for step in judges)
            found[metrics.UNRESOLVED_TRACES.name] = sum(
                step.unresolved() for step in steps if isinstance(step, ResolveStep)
            )
            found[metrics.WAITING_OUTCOMES.name] = sum(
                step.waiting_outcomes() for step in steps if isinstance(step, CorrelateStep)
            )
        if self._contracts is not None:
            health = self._contracts.health()
            found[metrics.CONTRACTS_IN_FORCE.name] = len(health["in_force"])
            found[metrics.CONTRACTS_REFUSED.name] = len(health["refused"])
        if self._sink is not None:
            found[metrics.SINK_PENDING.name] = self._sink.pending
        return found

    def contracts(self) -> dict[str, Any]:
        """The contracts in force, and the files that are refused."""
        return self._contracts.health() if self._contracts is not None else {"in_force": [], "refused": []}

    # --- of everything, for the read API

    def cubes(self) -> Sequence[str]:
        return self._cubes

    async def all_rates(self) -> Iterable[RateReading]:
        """The readings of every segment, whoever owns it."""
        if time.monotonic() >= self._rates_until:
            self._rates = list(self._read_rates())
            self._rates_until = time.monotonic() + KEPT_SECONDS
        return self._rates

    def _read_rates(self) -> Iterator[RateReading]:
        """What is owned is read as of its own watermark; what is followed as of the newest that is known, since a
        checkpoint is written only when there is something to write."""
        measure = self._stages.get(Stage.MEASURE)
        owned = measure.steps() if measure else {}
        for step in owned.values():
            if isinstance(step, MeasureStep):
                yield from step.readings()
        if self._follower is not None:
            newest = max(self._watermarks().values(), default=0)
            for partition, step in self._follower.steps().items():
                if partition not in owned and isinstance(step, MeasureStep):
                    yield from step.readings(newest)

    async def all_summaries(self) -> tuple[Iterable[MeanReading], Iterable[CountReading]]:
        """The same of means, and of sessions by state, stage and criterion."""
        if time.monotonic() >= self._summaries_until:
            means, counts = self.summaries()
            owned = measure.steps() if (measure := self._stages.get(Stage.MEASURE)) else {}
            newest = max(self._watermarks().values(), default=0)
            for partition, step in self._follower.steps().items() if self._follower is not None else ():
                if partition not in owned and isinstance(step, MeasureStep):
                    more_means, more_counts = step.summaries(newest)
                    means += more_means
                    counts += more_counts
            self._summaries, self._summaries_until = (means, counts), time.monotonic() + KEPT_SECONDS
        return self._summaries

    def _watermarks(self) -> dict[int, int]:
        marks = dict(self._follower.watermarks()) if self._follower else {}
        measure = self._stages.get(Stage.MEASURE)
        return marks | (measure.watermarks() if measure else {})

    def watermark(self) -> int:
        """The lowest watermark of stage 5, ns; 0 while one partition has heard nothing."""
        return min(self._watermarks().values(), default=0)
