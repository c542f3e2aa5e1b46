"""The same steps in one process, without a broker, a clock or a thread: for replay, simulation and tests.

The rule this file keeps: the same input in the same order gives the same output; with a random generator it interleaves
the partitions, cuts and batches in any order that Kafka could, which no result may depend on. A crash is the live
protocol: what was cut last is loaded, what came after is applied again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from pipeline.core.effects import PartitionStep, merge_counts
from pipeline.runners.bad_records import BadRecords, StepBroke
from pipeline.runners.ingest_runner import HEARD_BY, SOURCES, IngestStep, read_record
from pipeline.runners.local_log import LocalLog
from pipeline.runners.messages import Incoming, Outgoing, envelopes, heartbeats, pack
from pipeline.runners.options import StageSpec
from pipeline.runners.partition import Partition
from pipeline.runners.snapshots import Marker
from schemas.envelope import Envelope, Mark, decoder
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter, Row


class CrashPoint(StrEnum):
    """Where a worker dies."""

    BEFORE_OUTPUTS = "before_outputs"  # what was applied since the last cut is lost
    OUTPUTS_SENT = "outputs_sent"  # ... but what it gave was sent
    MARKER_SENT = "marker_sent"  # all is kept; only the acknowledgement is missing


class _Slot:
    """One partition of a stage, and what its checkpoint holds."""

    __slots__ = ("bad", "log", "marker", "opens", "partition", "states", "told", "touched")

    def __init__(self, partition: Partition, bad: BadRecords, log: LocalLog) -> None:
        self.partition, self.bad, self.log = partition, bad, log
        self.states: dict[bytes, bytes] = {}
        self.marker: Marker | None = None
        self.opens = 1
        self.touched = False  # something was applied since the last cut
        self.told: dict[Topic, list[Mark]] = {}

    @property
    def behind(self) -> int:
        """Messages that wait."""
        return self.log.end - self.partition.applied - 1


class LocalRunner:
    """All stages, all partitions.

    Args:
        stages: in the order data flows.
        setup: handed to each `make`.
        partitions: of every topic between stages.
        ingest: reads what `feed` is given; without it only `feed_records` works.
        source_partitions: of the source topics; 1 where not named.
        shuffle: interleaves at random; the order within a partition is kept.
    """

    def __init__(
        self,
        stages: Sequence[StageSpec],
        setup: Any,
        partitions: int,
        ingest: IngestStep | None = None,
        source_partitions: Mapping[Topic, int] | None = None,
        shuffle: Random | None = None,
        epoch: int = 0,
    ) -> None:
        self.partitions, self._ingest, self._shuffle, self._epoch = partitions, ingest, shuffle, epoch
        self._stages = {spec.stage: spec for spec in stages}
        self._setup = setup
        self.counts: dict[Stage, Counter[tuple[str, str]]] = {
            stage: Counter() for stage in (Stage.INGEST, *self._stages)
        }
        self._logs: dict[tuple[str, int], LocalLog] = {}
        self._topic_partitions = dict.fromkeys(Topic, partitions) | {
            topic: (source_partitions or {}).get(topic, 1) for topic in SOURCES
        }
        self._fed: Counter[tuple[Topic, int]] = Counter()
        self._floor = 0  # event time that an end of input names
        self._told: dict[Topic, list[Mark]] = {}
        self._record_time = 0
        self._decoders: dict[Stage, msgspec.msgpack.Decoder[Envelope[Any]]] = {
            stage: decoder(spec.record) for stage, spec in self._stages.items()
        }
        self._makers = {stage: spec.make(setup) for stage, spec in self._stages.items()}
        self._slots: dict[tuple[Stage, int], _Slot] = {}
        for stage in self._stages:
            for number in range(partitions):
                bad = BadRecords(stage, number)
                log = self._log(self._stages[stage].source, number)
                self._slots[stage, number] = _Slot(self._opened(stage, number, {}, None, 1, bad), bad, log)
        self._bad = BadRecords(Stage.INGEST, 0)
        for slot in self._slots.values():
            slot.partition.step.caught_up()  # the logs begin empty
            slot.touched = True

    def _opened(
        self,
        stage: Stage,
        number: int,
        states: dict[bytes, bytes],
        marker: Marker | None,
        opens: int,
        bad: BadRecords,
    ) -> Partition:
        spec = self._stages[stage]
        expected = list(spec.sources(dict(self._topic_partitions)))
        partition = Partition(spec, number, self._makers[stage](number), expected, self._decoders[stage], bad)
        partition.restore(states, marker, opens, self._epoch)
        return partition

    # --- input

    def feed(self, topic: Topic, value: bytes, record_time: int, partition: int = 0, key: bytes | None = None) -> None:
        """A message on a source topic; `record_time` in ns."""
        if self._ingest is None:
            raise ValueError("this runner has no ingest step: use feed_records")
        offset = self._fed[topic, partition]
        self._fed[topic, partition] += 1
        self._record_time = max(self._record_time, record_time)
        read_record(self._ingest, Incoming(topic, partition, offset, record_time, key, value), self._bad)
        if self._shuffle is not None and self._shuffle.random() < 0.5:
            self._send_ingested()

    def feed_records(self, topic: Topic, partition: int, records: Sequence[Any], marks: Sequence[Mark] = ()) -> None:
        """Records on a topic between stages, as if a stage had sent them."""
        for value in envelopes(records, list(marks)):
            self._append([Outgoing(topic, partition, None, value)])

    def end_of_input(self, now: int) -> None:
        """Event time is `now` (ns) at every source: all that waits for it happens."""
        self._floor = max(self._floor, now)
        self.drain()

    # --- running

    def drain(self) -> None:
        """Until nothing is left to be read, cut or told."""
        self._send_ingested()
        while ready := [slot for slot in self._slots.values() if slot.touched or slot.behind]:
            slot = self._shuffle.choice(ready) if self._shuffle else ready[0]
            self.turn(slot.partition.spec.stage, slot.partition.number)

    def turn(self, stage: Stage, number: int, most: int | None = None, cut: bool | None = None) -> None:
        """Let one partition apply what waits for it, then cut.

        Args:
            most: messages; without it all, or with `shuffle` some.
            cut: whether; without it always, or with `shuffle` half of the times.
        """
        slot = self._slots[stage, number]
        waiting = slot.behind
        if most is not None:
            waiting = min(waiting, most)
        elif self._shuffle is not None and waiting:
            waiting = self._shuffle.randint(1, waiting)
        self._take(slot, slot.partition.applied + waiting)
        if cut is None:
            cut = self._shuffle is None or not waiting or self._shuffle.random() < 0.5
        if cut:
            self._cut(slot)

    def crash(self, stage: Stage, number: int, point: CrashPoint = CrashPoint.OUTPUTS_SENT) -> None:
        """The worker of this partition dies, and another takes it over."""
        slot = self._slots[stage, number]
        if point is not CrashPoint.BEFORE_OUTPUTS:
            self._cut(slot, keep=point is CrashPoint.MARKER_SENT)
        slot.bad = BadRecords(stage, number)  # another worker does not know them
        self._go_back(slot)

    def _go_back(self, slot: _Slot) -> None:
        """To what was cut last; what came after is applied again."""
        spec, number = slot.partition.spec, slot.partition.number
        slot.opens += 1
        slot.partition = self._opened(spec.stage, number, slot.states, slot.marker, slot.opens, slot.bad)
        slot.touched, slot.told = False, {}
        barrier = slot.log.end
        self._append([Outgoing(spec.source, number, None, envelopes([], [])[0])])
        slot.partition.wait_for(barrier)

    def _take(self, slot: _Slot, until: int) -> None:
        """Apply the input up to and with this offset."""
        while slot.partition.applied < until:
            try:
                slot.partition.take(slot.log.at(slot.partition.applied + 1), 0)
                slot.touched = True
            except StepBroke:
                self._go_back(slot)

    def _cut(self, slot: _Slot, keep: bool = True) -> None:
        while True:
            partition = slot.partition
            try:
                cut = partition.cut(slot.behind == 0)
                break
            except StepBroke:
                self._go_back(slot)
                self._take(slot, partition.applied)
        self._append(cut.outputs)
        if not keep:
            return
        slot.states.update(cut.changed.states)
        for key in cut.changed.gone:
            slot.states.pop(key, None)
        slot.marker = Marker(slot.opens, cut.applied, cut.emission, cut.watermark, cut.marks, 0)
        slot.touched = False
        partition.sent(cut)
        merge_counts(self.counts[partition.spec.stage], cut.counts.items())
        slot.log.trim(cut.applied + 1)
        marks = partition.heartbeat(slot.behind == 0)
        if marks != slot.told:
            slot.told = marks
            self._append(heartbeats(marks, self.partitions))

    def _send_ingested(self) -> None:
        if self._ingest is None:
            return
        records, counts = self._ingest.outbox.take()
        merge_counts(self.counts[Stage.INGEST], counts.items())
        marks = self._ingest_marks(self._ingest)
        self._append(pack(records, marks))
        if marks != self._told:
            self._told = marks
            self._append(heartbeats(marks, self.partitions))

    def _ingest_marks(self, ingest: IngestStep) -> dict[Topic, list[Mark]]:
        """A source that was never fed is idle: it holds nothing back."""
        marks: dict[Topic, list[Mark]] = {}
        for source, targets in HEARD_BY.items():
            for number in range(self._topic_partitions[source]):
                watermark = max(ingest.watermark(source, number), self._floor)
                mark = Mark(Stage.INGEST, source, number, watermark, watermark == 0)
                for target in targets:
                    marks.setdefault(target, []).append(mark)
        return marks

    def _log(self, topic: str, partition: int) -> LocalLog:
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = LocalLog()
        return log

    def _append(self, messages: Iterable[Outgoing]) -> None:
        for message in messages:
            self._log(message.topic, message.partition).append(message, self._record_time)

    # --- what came of it

    def steps(self, stage: Stage) -> dict[int, PartitionStep]:
        """The present steps of a stage, by partition."""
        return {number: slot.partition.step for (name, number), slot in self._slots.items() if name == stage}

    def snapshots(self, stage: Stage) -> dict[int, dict[bytes, bytes]]:
        """What the checkpoints of a stage hold, by partition."""
        return {number: slot.states for (name, number), slot in self._slots.items() if name == stage}

    def watermarks(self, stage: Stage) -> dict[int, int]:
        """Event time of a stage's partitions, ns."""
        found = {number: slot for (name, number), slot in self._slots.items() if name == stage}
        return {number: slot.partition.watermarks.watermark for number, slot in found.items()}

    def messages(self, topic: Topic) -> list[Incoming]:
        """What lies on a topic that no stage here reads, partition after partition, in order."""
        return [one for number in range(self.partitions) for one in self._log(topic, number).kept()]

    def verdicts(self) -> list[tuple[bytes, bytes | None]]:
        """Every verdict message: key and value, `None` for a tombstone."""
        return [(one.key or b"", one.value) for one in self.messages(Topic.VERDICTS)]

    def rows(self, table: str) -> list[list[Any]]:
        """Every row for a table, old versions too."""
        envelope = decoder(Row)
        found = (row for one in self.messages(Topic.ROWS) for row in envelope.decode(one.value or b"").records)
        return [row.values for row in found if row.table == table]

    def dead_letters(self) -> list[DeadLetter]:
        """Everything that could not be used."""
        letter = msgspec.json.Decoder(DeadLetter)
        return [letter.decode(one.value or b"") for one in self.messages(Topic.DEAD_LETTERS)]
