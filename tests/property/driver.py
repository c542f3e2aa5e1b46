"""The whole pipeline behind stage 1, in one process, and what it shows to the outside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.effects import PartitionStep
from pipeline.core.judging.step import JudgeStep
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.resolving.step import ResolveStep
from pipeline.runners.local_runner import CrashPoint, LocalRunner
from pipeline.topology import STAGES, Setup, StageSpec, StepMaker
from schemas.envelope import Mark
from schemas.rows import TABLES
from schemas.segment import Partial, PartialReset
from schemas.span import TraceSpans
from schemas.topics import Stage, Topic, partition_of
from schemas.verdict import Verdict
from tests.builders import arrival, outcome_arrival
from tests.oracle.model import OSpan
from tests.property.contracts import BOOK
from tests.property.delivery import Batch, Record
from tests.property.worlds import RULES, SOURCES_THAT_MAY_SAY

KEYED = tuple(spec.stage for spec in STAGES)
NO_LOGS = Mark(Stage.INGEST, Topic.OTLP_LOGS, 0, 0, True)
Count = tuple[int, int]
Sums = dict[tuple[str, str], tuple[int, int]]

_decode_verdict = msgspec.msgpack.Decoder(Verdict).decode


class CountingJudge(JudgeStep):
    """Counts the spans that it is given."""

    received: Counter[Stage]

    def apply(self, records: Sequence[Any]) -> None:
        self.received[Stage.JUDGE] += sum(len(one.spans) for one in records if isinstance(one, TraceSpans))
        super().apply(records)


class CountingMeasure(MeasureStep):
    """Counts the partials that it is given."""

    received: Counter[Stage]

    def apply(self, records: Sequence[Partial | PartialReset]) -> None:
        self.received[Stage.MEASURE] += sum(isinstance(one, Partial) for one in records)
        super().apply(records)


def counting(spec: StageSpec, received: Counter[Stage]) -> StageSpec:
    """The stage with its own step, which counts in `received` what it is given."""

    def judge(setup: Setup) -> StepMaker:
        def make(partition: int) -> PartitionStep:
            step = CountingJudge(partition, setup.partitions, setup.book, setup.rules, setup.patience)
            step.fold.cubes = setup.cubes
            step.received = received
            return step

        return make

    def measure(setup: Setup) -> StepMaker:
        def make(partition: int) -> PartitionStep:
            step = CountingMeasure(partition, setup.book, setup.rules)
            step.received = received
            return step

        return make

    made = {Stage.JUDGE: judge, Stage.MEASURE: measure}
    return replace(spec, make=made.get(spec.stage, spec.make))


class Pipeline:
    """Stages 2 to 5.

    Args:
        random: interleaves partitions, messages and cuts at random; without it in order.
        crashes: the chance that some worker dies after a batch.
        patience: cuts that stage 4 may put a busy open conversation off for.
        book: the contracts; one of its own where a law adds to them.
        most: spans of a trace that count.
    """

    def __init__(
        self,
        partitions: int = 2,
        random: Random | None = None,
        crashes: float = 0.0,
        patience: int = 0,
        book: ContractBook = BOOK,
        most: int = RULES.max_spans_per_trace,
    ) -> None:
        self.partitions, self.random, self.crash_chance, self.patience = partitions, random, crashes, patience
        self.received: Counter[Stage] = Counter()
        stages = [counting(spec, self.received) for spec in STAGES]
        self.setup = Setup(book, replace(RULES, max_spans_per_trace=most), partitions, patience)
        self.runner = LocalRunner(stages, self.setup, partitions, shuffle=random)
        self.crashes = 0
        self._asking = False
        self._rested = 0
        for stage in KEYED:
            for step in self.runner.steps(stage).values():
                step.caught_up()  # the logs begin empty
        self.runner.drain()

    def run(self, batches: Iterable[Batch]) -> Pipeline:
        for batch in batches:
            self.feed(batch.records, batch.watermark)
        return self.finish()

    def finish(self) -> Pipeline:
        self.runner.drain()
        for _ in range(self.patience):
            for number in range(self.partitions):
                self.runner.turn(Stage.JUDGE, number, cut=True)  # as a live worker cuts, also where nothing comes
            self.runner.drain()
        return self

    def feed(self, records: Sequence[Record], watermark: int) -> None:
        """Records and, behind them, the watermark; then all, some or none of the work that they make."""
        boxes: dict[tuple[Topic, int], list[Any]] = {}
        for record in records:
            if isinstance(record, OSpan):
                one = arrival(record)
                at = Topic.SPANS, partition_of(self.partitions, one.tenant, one.trace_id)
                boxes.setdefault(at, []).append(one)
            else:
                other = outcome_arrival(record, SOURCES_THAT_MAY_SAY)
                key = other.outcome.tenant, *other.outcome.identity
                boxes.setdefault((Topic.CORRELATIONS, partition_of(self.partitions, *key)), []).append(other)
        for (topic, partition), box in boxes.items():
            self.runner.feed_records(topic, partition, box)
        self._asking |= any(isinstance(one, OSpan) and bool(one.links or one.response_id) for one in records)
        if self._asking and (watermark > self._rested or self.crash_chance):
            self.runner.drain()  # a question that is under way when what it is about settles comes too late (rule 49)
            self._rested = watermark
        for topic, source in ((Topic.SPANS, Topic.OTLP_SPANS), (Topic.CORRELATIONS, Topic.OUTCOMES)):
            marks = [Mark(Stage.INGEST, source, 0, watermark, False), NO_LOGS]
            for partition in range(self.partitions):
                self.runner.feed_records(topic, partition, [], marks)
        if self.random is None:
            self.runner.drain()
            return
        if self.random.random() < 0.4:
            self.runner.drain()
        for _ in range(self.random.randint(0, 6)):
            self.runner.turn(self.random.choice(KEYED), self.random.randrange(self.partitions))
        if self.random.random() < self.crash_chance:
            self.crash()

    def crash(self) -> None:
        assert self.random is not None
        for _ in range(self.random.randint(1, 3)):
            stage, number = self.random.choice(KEYED), self.random.randrange(self.partitions)
            self.runner.turn(stage, number, cut=False)
            self.runner.crash(stage, number, self.random.choice(list(CrashPoint)))
            self.crashes += 1

    # -- what the stages hold ------------------------------------------------------------------------------------------

    def judges(self) -> list[JudgeStep]:
        return [step for step in self.runner.steps(Stage.JUDGE).values() if isinstance(step, JudgeStep)]

    def correlators(self) -> list[CorrelateStep]:
        return [step for step in self.runner.steps(Stage.CORRELATE).values() if isinstance(step, CorrelateStep)]

    def resolvers(self) -> list[ResolveStep]:
        return [step for step in self.runner.steps(Stage.RESOLVE).values() if isinstance(step, ResolveStep)]

    def watermark(self) -> int:
        """Of stage 4; the same in all its partitions."""
        (found,) = set(self.runner.watermarks(Stage.JUDGE).values())
        return found

    def verdicts(self) -> dict[tuple[str, str, int], Verdict]:
        """Every session as stage 4 holds it, by (tenant, conversation, ordinal)."""
        found = {}
        for step in self.judges():
            for conversation in step.conversations.values():
                for one in conversation.published:
                    if one.verdict:
                        verdict = _decode_verdict(one.verdict)
                        found[verdict.tenant, verdict.conversation, verdict.ordinal] = verdict
        return found

    def waiting(self) -> int:
        """What the gauges say: outcomes that no session claimed yet."""
        return sum(step.waiting_outcomes() for step in self.correlators())

    def held_spans(self) -> int:
        """Spans that stage 2 keeps for itself: their trace belongs to no conversation yet."""
        traces = [trace for step in self.resolvers() for trace in step.traces.values()]
        return sum(len(trace.known) for trace in traces if not trace.used)

    def states(self) -> dict[object, dict[str, int]]:
        """Sessions by state, by segment: all partitions of stage 5 together."""
        found: dict[object, dict[str, int]] = {}
        for step in self.runner.steps(Stage.MEASURE).values():
            assert isinstance(step, MeasureStep)
            found.update({key: counts for key, counts in step.states(0, 2**63).items() if counts})
        return found

    def sums(self) -> tuple[Sums, dict[tuple[str, str], int]]:
        """(family or "", measure) -> (sessions, millionths); (family or "", stage or criterion) -> sessions."""
        means: Sums = {}
        failures: Counter[tuple[str, str]] = Counter()
        for step in self.runner.steps(Stage.MEASURE).values():
            assert isinstance(step, CountingMeasure)
            for one in step.partials():
                family = dict(one.dimensions).get("family", "")
                for name, n, total in one.means:
                    known = means.get((family, name), (0, 0))
                    means[family, name] = (known[0] + n, known[1] + total)
                failures.update({(family, name): n for name, n in one.failures.items()})
        return {key: sums for key, sums in means.items() if sums[0]}, {key: n for key, n in failures.items() if n}

    def keys_left(self) -> int:
        """Traces, outcomes, correlation keys and conversations that any stage still keeps."""
        left = sum(len(step.traces) for step in self.resolvers())
        left += sum(len(step.identities) + len(step.keys) + step.known_subjects() for step in self.correlators())
        return left + sum(len(step.conversations) for step in self.judges())

    def watermarks(self) -> dict[tuple[Stage, int], int]:
        return {(stage, number): n for stage in KEYED for number, n in self.runner.watermarks(stage).items()}

    def dropped(self) -> int:
        spans = self.count(Stage.RESOLVE, "dropped", "duplicate", "truncated") + self.count(
            Stage.JUDGE, "dropped", "repeated"
        )
        return spans + self.count(Stage.CORRELATE, "dropped")

    def count(self, stage: Stage, result: str, *reasons: str) -> int:
        counts = self.runner.counts[stage].items()
        return sum(n for (which, why), n in counts if which == result and (not reasons or why in reasons))

    # -- what was sent -------------------------------------------------------------------------------------------------

    def told(self) -> dict[tuple[str, str, int], dict[str, Any]]:
        """What readers of `trueup.verdicts` see: of each session the document with the highest version."""
        newest: dict[bytes, dict[str, Any]] = {}
        for key, value in self.runner.verdicts():
            document = json.loads(value or b"{}")
            known = newest.get(key)
            if known is None or document["version"] > known["version"]:
                newest[key] = document
        found = [one for one in newest.values() if not one["deleted"]]
        return {(one["tenant"], one["conversation"], one["ordinal"]): one for one in found}

    def documents(self) -> dict[bytes, list[dict[str, Any]]]:
        """Each session's documents, in the order in which they were sent."""
        found: dict[bytes, list[dict[str, Any]]] = {}
        for key, value in self.runner.verdicts():
            found.setdefault(key, []).append(json.loads(value or b"{}"))
        return found

    def versions(self) -> dict[bytes, list[int]]:
        return {key: [one["version"] for one in documents] for key, documents in self.documents().items()}

    def rows(self, table: str, *key: str) -> list[dict[str, Any]]:
        """A ClickHouse table as its readers see it: of each key the row with the highest version."""
        newest: dict[str, dict[str, Any]] = {}
        for values in self.runner.rows(table):
            row = dict(zip(TABLES[table], values, strict=True))
            of_row = repr([row[name] for name in key])
            if of_row not in newest or row["version"] > newest[of_row]["version"]:
                newest[of_row] = row
        return [row for row in newest.values() if not row["is_deleted"]]

    def rates(self) -> dict[tuple[str, str], Count]:
        """(family, or "" for the system row; rate) -> (numerator, denominator), over all buckets; no zeros."""
        found: Counter[tuple[str, str, bool]] = Counter()
        for row in self.rows("segment_metrics", "cube", "dimensions", "rate", "bucket"):
            family = row["dimensions"].get("family", "")
            found[family, row["rate"], True] += row["numerator"]
            found[family, row["rate"], False] += row["denominator"]
        return {
            (family, rate): (found[family, rate, True], n)
            for (family, rate, good), n in found.items()
            if not good and n
        }
