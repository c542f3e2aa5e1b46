"""The first stage, live: reads what senders wrote, in messages of any size, and sends batches to the keyed stages.

The rule this file keeps: what a batch gave is delivered before its offsets are committed, and so are the marks that
tell everybody how far event time has come: the next owner of a partition starts behind them and knows no time of them.
A record of which something comes that cannot be written is a dead letter, and its batch goes on without it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Protocol

from pipeline.core.effects import Outbox, Result
from pipeline.runners.bad_records import BadRecords, bury, raised
from pipeline.runners.group_runner import GroupRunner
from pipeline.runners.messages import Incoming, Outgoing, heartbeats, pack, unwritable
from pipeline.runners.options import RunnerOptions
from schemas.envelope import Mark
from schemas.topics import Stage, Topic

SOURCES = (Topic.OTLP_SPANS, Topic.OTLP_LOGS, Topic.OUTCOMES)

HEARD_BY: dict[Topic, tuple[Topic, ...]] = {
    Topic.OTLP_SPANS: (Topic.SPANS,),
    Topic.OTLP_LOGS: (Topic.SPANS, Topic.CORRELATIONS),
    Topic.OUTCOMES: (Topic.CORRELATIONS,),
}
"""The topics that hear of a source's event time: those to which what is read there goes."""

BREATH_SECONDS = 0.02  # decoding is all CPU: the other stages of the process get their turn this often


class IngestStep(Protocol):
    """`core.ingest.Ingest`, as the runners see it."""

    outbox: Outbox

    def on_record(
        self, topic: Topic, partition: int, offset: int, record_time: int, key: bytes | None, value: bytes | None
    ) -> None: ...

    def watermark(self, topic: Topic, partition: int) -> int: ...


def read_record(ingest: IngestStep, one: Incoming, bad: BadRecords, careful: bool = True) -> None:
    """Read one record; if it makes the step raise, or what came of it cannot be written, it is a dead letter whole.

    Args:
        careful: what came of it is encoded, to see that it can be. Who reads many records for one message leaves that
            out, and reads them again with care where the message cannot be written.
    """
    mark = ingest.outbox.mark()
    try:
        ingest.on_record(Topic(one.topic), one.partition, one.offset, one.record_time, one.key, one.value)
        if careful and (error := unwritable(ingest.outbox.since(mark))) is not None:
            raise error
    except MemoryError:
        raise
    except Exception as error:
        bad.blame((one.offset, 0), one, error)
        ingest.outbox.back(mark)
        ingest.outbox.count(Result.RECEIVED, "record")
        bury(ingest.outbox, 0, one, raised(error))
    else:
        bad.went_well((one.offset, 0))


class IngestRunner(GroupRunner):
    """One member of the ingest group."""

    def __init__(self, ingest: IngestStep, options: RunnerOptions, max_records: int = 500) -> None:
        super().__init__(Stage.INGEST, SOURCES, options, max_records)
        self.ingest = ingest
        self._heard: dict[tuple[str, int], float] = {}  # when each source last brought something
        self._silent: set[tuple[str, int]] = set()  # sources of logs that have brought nothing yet
        self._told = 0.0
        self._delivered: dict[tuple[str, int], int] = {}  # offsets to commit once everybody was told the time
        self._bad = BadRecords(Stage.INGEST, 0)

    async def step(self, messages: list[Incoming]) -> None:
        read = {(one.topic, one.partition): one.offset + 1 for one in messages}
        outgoing, counts = await self._read(messages, careful=False)
        if outgoing is None:
            outgoing, counts = await self._read(messages, careful=True)
        now = time.monotonic()
        self._heard.update(dict.fromkeys(read, now))
        self._silent.difference_update(read)
        if outgoing:
            await self.broker.append(outgoing)
        self.statistics.records.update(counts)
        self._delivered.update(read)
        if now - self._told >= self.options.heartbeat_interval:
            await self._tell()

    async def _read(
        self, messages: list[Incoming], careful: bool
    ) -> tuple[list[Outgoing] | None, Counter[tuple[str, str]]]:
        """What these give, and its counts; None where some of it cannot be written. To read again gives the same."""
        breath = time.perf_counter()
        for one in messages:
            read_record(self.ingest, one, self._bad, careful)
            if time.perf_counter() - breath > BREATH_SECONDS:
                await asyncio.sleep(0)
                breath = time.perf_counter()
        records, counts = self.ingest.outbox.take()
        try:
            return pack(records, self.marks()), counts
        except MemoryError:
            raise
        except Exception:  # see `unwritable`
            if careful:
                raise
            return None, counts

    async def _tell(self) -> None:
        """Tell every partition behind us how far event time has come, then commit what it came from."""
        self._told = time.monotonic()
        delivered, self._delivered = self._delivered, {}
        await self.broker.append(heartbeats(self.marks(), self.options.partitions))
        await self.commit(delivered)

    async def finish(self) -> None:
        if self._delivered:
            await self._tell()

    def given_up(self) -> None:
        self._heard.clear()
        self._delivered.clear()

    def on_assigned(self, places: set[tuple[str, int]]) -> None:
        super().on_assigned(places)
        self._heard = dict.fromkeys(places, time.monotonic())
        self._silent = {place for place in places if place[0] == Topic.OTLP_LOGS}

    def marks(self) -> dict[Topic, list[Mark]]:
        """How far event time has come at the owned sources, by the topic that hears of it."""
        marks: dict[Topic, list[Mark]] = {}
        for topic, number in sorted(self.owned):
            source = Topic(topic)
            mark = Mark(
                Stage.INGEST, source, number, self.ingest.watermark(source, number), self._is_idle(topic, number)
            )
            for target in HEARD_BY[source]:
                marks.setdefault(target, []).append(mark)
        return marks

    def _is_idle(self, topic: str, number: int) -> bool:
        """Silent for `idle_after` up to the last look at its log's end, which showed nothing more.

        Up to now would not do: after a batch that took long, the end is an old one, and much may wait behind it.
        A log topic without anything new, which is usual, holds nothing back: it is idle at the first look.
        """
        place = topic, number
        silent = self.looked - self._heard.get(place, 0.0)
        enough = place in self._silent or silent > self.options.idle_after
        return place in self.ends and not self.lag(place) and enough

    def watermarks(self) -> dict[tuple[str, int], int]:
        """Event time of each owned source, ns."""
        return {(topic, number): self.ingest.watermark(Topic(topic), number) for topic, number in self.owned}
