"""One partition of a keyed stage: its step, what it has heard of event time, and how far it has come in its input.

The rule this file keeps: everything here is synchronous, so a cut is one moment: outputs, changed keys, applied offset
and watermark belong together. Both runners use it, so they cannot differ. When the step raises, the partition is over
(`StepBroke`): the runner makes another one from the checkpoint, with the same `bad` records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pipeline.core.effects import KeyBroke, PartitionStep, Result
from pipeline.core.timeline import Source, Watermarks
from pipeline.runners.bad_records import BadRecords, StepBroke, bury, bury_key
from pipeline.runners.checkpoint import Cut
from pipeline.runners.messages import Incoming, pack, unwritable
from pipeline.runners.options import StageSpec
from pipeline.runners.snapshots import Marker
from schemas.envelope import FORMAT, Envelope, Mark
from schemas.topics import Topic
from schemas.wire import DeadLetter, Keyed

T = TypeVar("T")


class Partition:
    """A restored partition.

    Args:
        expected: the sources that must be heard before the watermark moves.
        decoder: of the source topic's envelopes.
        bad: records that made the step raise, as far as the partition's former lives know.
    """

    def __init__(
        self,
        spec: StageSpec,
        number: int,
        step: PartitionStep,
        expected: list[Source],
        decoder: msgspec.msgpack.Decoder[Envelope[Any]],
        bad: BadRecords | None = None,
    ) -> None:
        self.bad = bad or BadRecords(spec.stage, number)
        self.spec, self.number, self.step = spec, number, step
        self.watermarks = Watermarks(expected)
        self.applied = -1
        self.passed = 0  # the watermark that the next stages may hear: all before it is sent
        self.rereads = 0  # records applied since the restore that were in the log then
        self.reread_from = self.reread_to = 0
        self._barrier: int | None = None
        self._restored_at: int | None = None
        self._decoder = decoder

    def restore(self, states: dict[bytes, bytes], marker: Marker | None, restores: int, epoch: int) -> None:
        """Take over what a checkpoint holds."""
        versions = self.step.versions
        versions.epoch, versions.restores = epoch, restores
        for key, state in states.items():
            self.step.load(key, state)
        if marker is not None:
            versions.emission = marker.emission
            self.applied = marker.applied
            self.watermarks.restore(marker.marks, marker.watermark)
        self.step.opened(self.watermarks.watermark)

    def wait_for(self, barrier: int, restored_at: int | None = None) -> None:
        """`barrier` is the offset of a message that was sent to the input after the restore.

        Args:
            restored_at: when this worker began, ns of the wall clock: what came later is new, not read again.
        """
        self._barrier, self._restored_at = barrier, restored_at

    @property
    def caught_up(self) -> bool:
        return self._barrier is None

    def take(self, message: Incoming, monotonic: int) -> int:
        """Apply the next message of the input; returns the number of its records.

        Raises:
            StepBroke: see above.
        """
        records = 0
        reason = detail = ""
        try:
            envelope = self._decoder.decode(message.value or b"")
        except msgspec.ValidationError as error:
            reason, detail = "wrong_schema", str(error)
        except msgspec.DecodeError as error:
            reason, detail = "undecodable", str(error)
        else:
            if envelope.format != FORMAT:
                reason, detail = "unknown_format", f"format {envelope.format}, this worker reads {FORMAT}"
            else:
                records = len(envelope.records)
                self.watermarks.hear(envelope.marks)
                self._apply(message, envelope.records)
        if reason:
            self._dead_letter(message, reason, detail)
        self.applied = message.offset
        self.advance(monotonic)
        if self._barrier is not None:
            self._reread(message, records)
        return records

    def _apply(self, message: Incoming, records: list[Any]) -> None:
        """All records at once, or one by one where one of them may be bad."""
        if message.offset > self.bad.careful_to:
            try:
                if records:
                    self.step.apply(records)
            except MemoryError:
                raise
            except Exception as error:
                self.bad.careful_to = message.offset
                raise StepBroke from error
            self.bad.went_well((message.offset, 0))
            return
        outbox = self.step.outbox
        for index, record in enumerate(records):
            place = message.offset, index
            if why := self.bad.why(place):
                bury(outbox, self.number, message, why, record, index, len(getattr(record, "spans", "1")))
                continue
            mark = outbox.mark()
            try:
                self.step.apply([record])
                self._publish_all()
                if (unwritten := unwritable(outbox.since(mark))) is not None:
                    raise unwritten
            except MemoryError:
                raise
            except Exception as error:
                self.bad.blame(place, record, error)
                raise StepBroke from error
            self.bad.went_well(place)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do what any record since the last cut may make impossible."""
        self._leave_aside()
        try:
            return work()
        except MemoryError:
            raise
        except Exception as error:
            if self.bad.careful_to < self.applied:
                self.bad.careful_to = self.applied
            elif isinstance(error, KeyBroke):
                self.bad.set_aside(error)  # taken one by one, no record is to blame
            else:
                raise
            raise StepBroke from error

    def _leave_aside(self) -> None:
        if self.bad.aside:
            self.step.aside = self.bad.aside  # type: ignore[attr-defined]

    def _publish_all(self) -> None:
        """Publish what the step would put off, too."""
        self._leave_aside()
        for _ in range(1 + getattr(self.step, "patience", 0)):
            self.step.publish()

    def _reread(self, message: Incoming, records: int) -> None:
        assert self._barrier is not None
        if message.offset < self._barrier:
            if self._restored_at is not None and message.record_time >= self._restored_at:
                return
            self.rereads += records
            self.reread_from = min(self.reread_from or message.record_time, message.record_time)
            self.reread_to = max(self.reread_to, message.record_time)
        else:
            self._barrier = None
            self._guarded(self.step.caught_up)

    def advance(self, monotonic: int) -> None:
        """Let event time go on to what the sources say, or, when all are idle, with the wall clock."""
        self.step.advance(self.watermarks.advance(monotonic))

    def cut(self, all_applied: bool) -> Cut:
        """What is to be sent and kept now.

        Args:
            all_applied: nothing waits in the input log.

        Raises:
            StepBroke: see above; what was applied since the last cut is lost.
        """
        self._guarded(self.step.publish)
        for key, why in self.bad.untold.items():
            bury_key(self.step.outbox, self.spec.source, self.number, key, why)
        records, counts = self.step.outbox.take()
        passes_on = self.step.passes_on(self.watermarks.watermark)
        outputs = self._guarded(lambda: pack(records, self._marks(passes_on, all_applied)))
        return Cut(
            outputs,
            self.step.changed(),
            self.applied,
            self.step.versions.emission,
            self.watermarks.watermark,
            self.watermarks.dump(),
            passes_on,
            counts,
        )

    def _marks(self, watermark: int, all_applied: bool) -> dict[Topic, list[Mark]]:
        idle = all_applied and self.watermarks.idle
        mark = Mark(self.spec.stage, self.spec.source, self.number, watermark, idle)
        return {topic: [mark] for topic in self.spec.targets}

    def sent(self, cut: Cut) -> None:
        """All of this cut is durable."""
        self.bad.forget(cut.applied + 1)
        self.bad.untold = {}
        self.passed = max(self.passed, cut.passes_on)

    def heartbeat(self, all_applied: bool) -> dict[Topic, list[Mark]]:
        """The marks that may be told now."""
        return self._marks(self.passed, all_applied)

    def _dead_letter(self, message: Incoming, reason: str, detail: str) -> None:
        size = len(message.value or b"")
        letter = DeadLetter(reason, detail, message.topic, message.partition, message.offset, size, message.record_time)
        key = f"{message.topic}/{message.partition}/{message.offset}".encode()
        self.step.outbox.send(Topic.DEAD_LETTERS, self.number, Keyed(key, msgspec.json.encode(letter)))
        self.step.outbox.count(Result.DEAD_LETTERED, reason)
