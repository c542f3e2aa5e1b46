"""Ingest and sink: offsets are committed only when everything read up to them has arrived."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.errors import StoreUnavailable
from pipeline.runners.group_runner import Place
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.messages import Incoming, Outgoing
from pipeline.runners.options import RunnerOptions
from pipeline.runners.sink_runner import SinkRunner
from schemas.envelope import FORMAT, Envelope, Mark, decoder, encode
from schemas.erasing import ERASE_ROWS, EraseRows
from schemas.rows import TABLES
from schemas.topics import Stage, Topic
from schemas.wire import Row
from tests.unit.runners.memory_log import MemoryLog
from tests.unit.runners.test_local_runner import LettersOnly
from tests.unit.runners.toy import Item

PARTITIONS = 3
OPTIONS = RunnerOptions(("nowhere:1",), PARTITIONS, Path("unused"), heartbeat_interval=1e9, idle_after=0.0)
ROW = [0] * len(TABLES["criteria"])


class Story:
    """What happened, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []


class Ingesting(IngestRunner):
    """With a broker in memory, and commits that are told."""

    def __init__(self, story: Story, options: RunnerOptions = OPTIONS) -> None:
        super().__init__(LettersOnly(), options)
        self.story, self.log = story, MemoryLog()
        self.broker = self.log  # type: ignore[assignment]
        self.log.before_append = self._appended

    def _appended(self, messages: Sequence[Outgoing]) -> None:
        self.story.events.append(f"sent {len(messages)}")
        self.log.before_append = self._appended

    async def commit(self, places: Mapping[Place, int]) -> None:
        if places:
            self.story.events += [f"committed {topic}/{number}: {offset}" for (topic, number), offset in places.items()]
            self.next.update(places)


def read(topic: str, partition: int, first: int, *values: bytes) -> list[Incoming]:
    return [Incoming(topic, partition, first + n, 1_000 + n, None, value) for n, value in enumerate(values)]


def run(tell: Callable[[], Awaitable[None]]) -> None:
    async def inner() -> None:
        await tell()

    asyncio.run(inner())


def test_ingest_commits_after_what_was_read_is_sent() -> None:
    async def tell() -> None:
        story = Story()
        ingest = Ingesting(story)
        ingest.on_assigned({(Topic.OTLP_SPANS, 0)})
        await ingest.step(read(Topic.OTLP_SPANS, 0, 5, b"a", b"b", b"c"))
        assert all(event.startswith("sent") for event in story.events)
        await ingest.finish()
        assert story.events[-1] == "committed otlp_spans/0: 8"

    run(tell)


def test_everybody_hears_of_the_time_before_what_it_came_from_is_committed() -> None:
    async def tell() -> None:
        story = Story()
        ingest = Ingesting(story)
        place = Topic.OTLP_SPANS, 0
        ingest.on_assigned({place})
        await ingest.step(read(*place, 5, b"a"))
        assert place not in ingest.next
        await ingest.on_revoked()
        assert story.events == ["sent 1", f"sent {PARTITIONS}", "committed otlp_spans/0: 6"]
        for number in range(PARTITIONS):
            last = ingest.log.values(Topic.SPANS, number)[-1]
            assert decoder(Item).decode(last or b"").marks == [Mark(Stage.INGEST, *place, 1_000, False)]

    run(tell)


def test_a_commit_never_passes_what_could_not_be_sent() -> None:
    async def tell() -> None:
        story = Story()
        ingest = Ingesting(story)
        ingest.on_assigned({(Topic.OTLP_SPANS, 0)})

        def refuse(messages: Sequence[Outgoing]) -> None:
            raise ConnectionError

        ingest.log.before_append = refuse
        with pytest.raises(ConnectionError):
            await ingest.step(read(Topic.OTLP_SPANS, 0, 5, b"a"))
        assert story.events == []

    run(tell)


def test_the_marks_of_all_owned_sources_follow_to_whoever_must_hear_them() -> None:
    async def tell() -> None:
        ingest = Ingesting(Story(), RunnerOptions(("nowhere:1",), PARTITIONS, Path("unused"), heartbeat_interval=0.0))
        ingest.on_assigned({(Topic.OTLP_SPANS, 0), (Topic.OTLP_LOGS, 1), (Topic.OUTCOMES, 0)})
        await ingest.step(read(Topic.OTLP_SPANS, 0, 0, b"a"))
        spans = Mark(Stage.INGEST, Topic.OTLP_SPANS, 0, 1_000, False)
        logs = Mark(Stage.INGEST, Topic.OTLP_LOGS, 1, 0, False)
        outcomes = Mark(Stage.INGEST, Topic.OUTCOMES, 0, 0, False)
        for topic, marks in ((Topic.SPANS, [logs, spans]), (Topic.CORRELATIONS, [logs, outcomes])):
            for number in range(PARTITIONS):
                last = ingest.log.values(topic, number)[-1]
                assert decoder(Item).decode(last or b"") == Envelope(FORMAT, marks, [])

    run(tell)


def test_a_log_topic_without_news_is_idle_at_the_first_look() -> None:
    async def tell() -> None:
        logs, outcomes = (Topic.OTLP_LOGS, 0), (Topic.OUTCOMES, 0)
        options = RunnerOptions(("nowhere:1",), PARTITIONS, Path("unused"), heartbeat_interval=1e9, idle_after=60.0)
        ingest = Ingesting(Story(), options)
        ingest.on_assigned({logs, outcomes})

        def idle() -> list[tuple[str, bool]]:
            return [(mark.topic, mark.idle) for mark in ingest.marks()[Topic.CORRELATIONS]]

        assert idle() == [(Topic.OTLP_LOGS, False), (Topic.OUTCOMES, False)]  # where they end is not known yet
        ingest.looked, ingest.ends = time.monotonic(), {logs: 5, outcomes: 0}
        assert idle() == [(Topic.OTLP_LOGS, False), (Topic.OUTCOMES, False)]  # five wait
        ingest.next = {logs: 5}
        assert idle() == [(Topic.OTLP_LOGS, True), (Topic.OUTCOMES, False)]
        ingest.ends = {logs: 6}
        await ingest.step(read(*logs, 5, b"a"))
        assert idle() == [(Topic.OTLP_LOGS, False), (Topic.OUTCOMES, False)]  # it brings something, after all

    run(tell)


def test_a_source_is_idle_only_without_lag() -> None:
    async def tell() -> None:
        place = Topic.OTLP_SPANS, 0
        ingest = Ingesting(Story())
        ingest.on_assigned({place})
        await ingest.step(read(*place, 0, b"a"))
        assert [mark.idle for mark in ingest.marks()[Topic.SPANS]] == [False]  # where its log ends is not known yet
        ingest.ends = {place: 2}
        assert [mark.idle for mark in ingest.marks()[Topic.SPANS]] == [False]
        ingest.ends = {place: 1}
        assert [mark.idle for mark in ingest.marks()[Topic.SPANS]] == [False]  # that end was read before the batch
        ingest.looked = time.monotonic()
        assert [mark.idle for mark in ingest.marks()[Topic.SPANS]] == [False]  # nobody heard of the batch's time yet
        await ingest.finish()
        assert [mark.idle for mark in ingest.marks()[Topic.SPANS]] == [True]

    run(tell)


class Store:
    """Takes rows, or does not."""

    def __init__(self, story: Story, refusals: int = 0) -> None:
        self.story, self.refusals = story, refusals
        self.tokens: list[str] = []
        self.rows: dict[str, list[Sequence[Any]]] = {}

    async def write(self, table: str, rows: Sequence[Sequence[Any]], token: str) -> None:
        self.tokens.append(token)
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("away")
        self.story.events.append(f"wrote {table} {len(rows)}")
        self.rows.setdefault(table, []).extend(rows)

    async def erase(self, orders: Sequence[EraseRows]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable("away")
        self.story.events.append(f"erased {', '.join(one.conversation for one in orders)}")


class Sinking(SinkRunner):
    """With commits that are told."""

    def __init__(
        self, store: Store, max_rows: int = 4, first_wait: float = 0.001, max_seconds: float = 1e9, rested: float = 0.2
    ) -> None:
        super().__init__(
            store, OPTIONS, max_rows=max_rows, max_seconds=max_seconds, rested_seconds=rested, first_wait=first_wait
        )
        self.store = store

    async def commit(self, places: Mapping[Place, int]) -> None:
        self.store.story.events += [f"committed {topic}/{n}: {offset}" for (topic, n), offset in places.items()]


def rows(*tables: str) -> bytes:
    return encode(Envelope(FORMAT, [], [Row(table, ROW) for table in tables]))


def test_rows_are_collected_written_and_then_committed() -> None:
    async def tell() -> None:
        store = Store(Story())
        sink = Sinking(store)
        await sink.step(read(Topic.ROWS, 0, 7, rows("criteria", "criteria")))
        assert sink.pending == 2
        assert store.story.events == []
        await sink.step(read(Topic.ROWS, 1, 3, rows("criteria", "outcomes"), rows("criteria")))
        assert store.story.events == [
            "wrote criteria 4",
            "wrote outcomes 1",
            "committed trueup.rows/0: 8",
            "committed trueup.rows/1: 5",
        ]
        assert sink.pending == 0

    run(tell)


def test_rows_after_a_rest_hardly_wait_and_those_that_follow_share_an_insert() -> None:
    async def tell() -> None:
        store = Store(Story())
        sink = Sinking(store, max_rows=1000, max_seconds=2.0, rested=0.05)
        written = []
        for offset in range(3):
            await sink.step(read(Topic.ROWS, 0, offset, rows("criteria")))
            await asyncio.sleep(0.1)
            await sink.step([])
            written.append([event for event in store.story.events if event.startswith("wrote")])
        assert written == [["wrote criteria 1"]] * 3
        assert sink.pending == 2
        await asyncio.sleep(2.0)
        await sink.step([])
        assert sink.pending == 0
        assert store.story.events[2:] == ["wrote criteria 2", "committed trueup.rows/0: 3"]

    run(tell)


def test_the_same_batch_is_tried_again_until_the_store_takes_it() -> None:
    async def tell() -> None:
        store = Store(Story(), refusals=3)
        sink = Sinking(store, max_rows=1)
        await sink.step(read(Topic.ROWS, 0, 0, rows("criteria")))
        assert store.story.events == ["wrote criteria 1", "committed trueup.rows/0: 1"]
        assert len(store.tokens) == 4
        assert len(set(store.tokens)) == 1
        assert not sink.waits

    run(tell)


def test_an_order_to_erase_is_carried_out_behind_the_rows_and_before_the_commit() -> None:
    async def tell() -> None:
        store = Store(Story(), refusals=2)
        sink = Sinking(store, max_rows=1)
        order = EraseRows("t", "c", b"digest", 5, "o", "erased:1")
        erase = Row(ERASE_ROWS, list(msgspec.structs.astuple(order)))
        broken = Row(ERASE_ROWS, ["t"])
        await sink.step(read(Topic.ROWS, 0, 0, encode(Envelope(FORMAT, [], [erase, Row("criteria", ROW), broken]))))
        assert store.story.events == [
            "wrote criteria 1", "wrote dead_letters 1", "erased c", "committed trueup.rows/0: 1",
        ]  # fmt: skip
        await sink.step(read(Topic.ROWS, 0, 1, rows("criteria")))
        assert store.story.events[-2:] == ["wrote criteria 1", "committed trueup.rows/0: 2"]

    run(tell)


def test_a_rebalance_ends_the_trying_and_nothing_is_committed() -> None:
    async def tell() -> None:
        store = Store(Story(), refusals=10**6)
        sink = Sinking(store, max_rows=1, first_wait=30.0)
        writing = asyncio.create_task(sink.step(read(Topic.ROWS, 0, 0, rows("criteria"))))
        while not sink.waits:
            await asyncio.sleep(0)
        assert sink.pending == 1
        await asyncio.wait_for(asyncio.gather(sink.on_revoked(), writing), 5.0)
        assert sink.pending == 0
        assert store.story.events == []

    run(tell)


def test_what_is_no_row_becomes_a_dead_letter_and_the_rest_is_written() -> None:
    async def tell() -> None:
        store = Store(Story())
        sink = Sinking(store, max_rows=1)
        letter = (
            b'{"reason":"not_otlp","detail":"d","topic":"otlp_spans","partition":2,"offset":9,"size":3,"record_time":5}'
        )
        values = [b"\xc1", rows("no_such_table", "criteria")]
        await sink.step([*read(Topic.ROWS, 0, 4, *values), *read(Topic.DEAD_LETTERS, 0, 0, letter, b"not json")])
        reasons = [row[TABLES["dead_letters"].index("reason")] for row in store.rows["dead_letters"]]
        assert reasons == ["undecodable", "unknown_table", "not_otlp", "undecodable"]
        assert store.rows["criteria"] == [ROW]
        assert store.story.events[-2:] == ["committed trueup.rows/0: 6", "committed trueup.dead-letters/0: 2"]

    run(tell)
