"""The whole pipeline on one page: the stages in the order data flows, each with its source, key, step and targets.

```
otlp_spans, otlp_logs      -> ingest -> trueup.spans -> resolve -> trueup.session-events -> judge -> trueup.partials
trueup.outcomes, otlp_logs -> ingest -> trueup.correlations -> correlate ----^            |          |
                                     ^---- resolve, correlate, judge  trueup.rows, .verdicts         measure -> rows
```
Watermarks flow along the arrows that carry data to the next stage; the loops correlate -> correlate (an outcome from
its identity to its keys) and judge -> correlate (sessions of a subject, what outcomes reached) carry none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.core.contracts.book import ContractBook
from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.effects import PartitionStep
from pipeline.core.judging.accept import settles_after
from pipeline.core.judging.step import JudgeStep
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import Source, TimeRules
from schemas.contact import Contacts, Reached, Returns
from schemas.erasing import Forget, Forgotten, Unaddressed, Unasked
from schemas.outcome import Addressed, Attached, OutcomeArrival
from schemas.segment import CUBES, Partial, PartialReset
from schemas.span import Answer, Asked, SpanArrival, Stated, TraceGone, TraceSpans
from schemas.topics import Stage, Topic


@dataclass(frozen=True, slots=True)
class Setup:
    """What the steps are made from.

    Args:
        partitions: of every internal topic.
        patience: publications that stage 4 may put a busy open conversation off for.
        cubes: whose segments are counted.
    """

    book: ContractBook
    rules: TimeRules
    partitions: int
    patience: int = 0
    cubes: tuple[str, ...] = CUBES


StepMaker = Callable[[int], PartitionStep]


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One keyed stage.

    Args:
        key: what its state is keyed by.
        source, snap: its input topic; the topic of its checkpoints.
        targets: topics that hear of its watermark.
        record: what the source carries.
        sources: partition counts of all topics -> the sources that must be heard before its watermark moves.
        make: set-up -> partition -> step.
    """

    stage: Stage
    key: str
    source: Topic
    snap: Topic
    targets: tuple[Topic, ...]
    record: Any
    sources: Callable[[dict[Topic, int]], Iterable[Source]]
    make: Callable[[Setup], StepMaker]


def _of(stage: Stage, topic: Topic) -> Callable[[dict[Topic, int]], list[Source]]:
    return lambda counts: [(stage.value, topic.value, partition) for partition in range(counts[topic])]


_spans = _of(Stage.INGEST, Topic.OTLP_SPANS)
_logs = _of(Stage.INGEST, Topic.OTLP_LOGS)
_outcomes = _of(Stage.INGEST, Topic.OUTCOMES)
_resolved = _of(Stage.RESOLVE, Topic.SPANS)
_correlated = _of(Stage.CORRELATE, Topic.CORRELATIONS)
_judged = _of(Stage.JUDGE, Topic.SESSION_EVENTS)


def _resolve(setup: Setup) -> StepMaker:
    return lambda partition: ResolveStep(
        partition, setup.partitions, setup.rules, settles_after(setup.book, setup.rules)
    )


def _correlate(setup: Setup) -> StepMaker:
    return lambda partition: CorrelateStep(partition, setup.partitions, setup.rules)


def _judge(setup: Setup) -> StepMaker:
    def make(partition: int) -> PartitionStep:
        step = JudgeStep(partition, setup.partitions, setup.book, setup.rules, setup.patience)
        step.fold.cubes = setup.cubes
        return step

    return make


def _measure(setup: Setup) -> StepMaker:
    return lambda partition: MeasureStep(partition, setup.book, setup.rules)


STAGES: tuple[StageSpec, ...] = (
    StageSpec(
        stage=Stage.RESOLVE,
        key="tenant, trace",
        source=Topic.SPANS,
        snap=Topic.RESOLVE_SNAP,
        targets=(Topic.SESSION_EVENTS, Topic.CORRELATIONS),
        record=SpanArrival | Asked | Answer | Forgotten | Unasked,
        sources=lambda counts: [*_spans(counts), *_logs(counts)],
        make=_resolve,
    ),
    StageSpec(
        stage=Stage.CORRELATE,
        key="outcome identity; correlation key; subject",
        source=Topic.CORRELATIONS,
        snap=Topic.CORRELATE_SNAP,
        targets=(Topic.SESSION_EVENTS,),
        record=OutcomeArrival | Stated | Addressed | Contacts | Reached | Forgotten | Unaddressed,
        sources=lambda counts: [*_outcomes(counts), *_logs(counts), *_resolved(counts)],
        make=_correlate,
    ),
    StageSpec(
        stage=Stage.JUDGE,
        key="tenant, conversation",
        source=Topic.SESSION_EVENTS,
        snap=Topic.JUDGE_SNAP,
        targets=(Topic.PARTIALS,),
        record=TraceSpans | TraceGone | Attached | Returns | Forget,
        sources=lambda counts: [*_resolved(counts), *_correlated(counts)],
        make=_judge,
    ),
    StageSpec(
        stage=Stage.MEASURE,
        key="segment",
        source=Topic.PARTIALS,
        snap=Topic.MEASURE_SNAP,
        targets=(),
        record=Partial | PartialReset,
        sources=_judged,
        make=_measure,
    ),
)


def spec_of(stage: Stage) -> StageSpec:
    return next(spec for spec in STAGES if spec.stage is stage)


def contracts_changed(setup: Setup, step: PartitionStep) -> None:
    """Tell a step that more contracts are in force, all of them in `setup.book`; never in the midst of a message."""
    if isinstance(step, JudgeStep):
        step.contracts_changed()
    elif isinstance(step, ResolveStep):
        step.settles_after = settles_after(setup.book, setup.rules) + setup.rules.bucket
