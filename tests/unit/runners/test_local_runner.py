"""The local runner: the same result in any order and after any crash."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from pipeline.core.effects import Outbox, Result
from pipeline.runners.local_runner import CrashPoint, LocalRunner
from schemas.topics import Stage, Topic, partition_of
from schemas.wire import DeadLetter, Keyed
from tests.unit.runners.toy import Counting, Item, Spec, newest

PARTITIONS = 3


class LettersOnly:
    """An `IngestStep`: one letter a record, its time the record's; an empty value is a dead letter."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self._watermarks: dict[tuple[Topic, int], int] = {}

    def on_record(
        self, topic: Topic, partition: int, offset: int, record_time: int, key: bytes | None, value: bytes | None
    ) -> None:
        self._watermarks[topic, partition] = max(self.watermark(topic, partition), record_time)
        if not value:
            letter = DeadLetter("empty", "", topic, partition, offset, 0, record_time)
            self.outbox.send(Topic.DEAD_LETTERS, 0, Keyed(b"", msgspec.json.encode(letter)))
            self.outbox.count(Result.DEAD_LETTERED, "empty")
            return
        self.outbox.count(Result.USED, "letter")
        self.outbox.send(Topic.SPANS, partition_of(PARTITIONS, value), Item(value.decode()))

    def watermark(self, topic: Topic, partition: int) -> int:
        return self._watermarks.get((topic, partition), 0)


def local(shuffle: Random | None = None) -> LocalRunner:
    return LocalRunner([Spec()], None, PARTITIONS, LettersOnly(), shuffle=shuffle)


def counting(runner: LocalRunner) -> list[Counting]:
    steps: list[Any] = list(runner.steps(Stage.RESOLVE).values())
    return steps


def totals(runner: LocalRunner) -> dict[str, int]:
    """What the steps hold."""
    return {key: total for step in counting(runner) for key, total in step.totals.items()}


def told(runner: LocalRunner) -> dict[str, int]:
    """What they have told."""
    return newest(one.value for one in runner.messages(Topic.SESSION_EVENTS))


TEXT = "so the same letters come again and again until the totals of all letters are told"
WANTED = {letter: TEXT.count(letter) for letter in set(TEXT)}


def feed(runner: LocalRunner) -> None:
    for number, letter in enumerate(TEXT):
        runner.feed(Topic.OTLP_SPANS, letter.encode(), number + 1)


def test_everything_fed_is_counted_and_told() -> None:
    runner = local()
    feed(runner)
    runner.drain()
    assert totals(runner) == told(runner) == WANTED
    assert runner.counts[Stage.RESOLVE]["used", "counted"] == len(TEXT)


@pytest.mark.parametrize("seed", range(20))
def test_order_and_crashes_change_nothing(seed: int) -> None:
    chance = Random(seed)
    runner = local(shuffle=chance)
    for number, letter in enumerate(TEXT):
        runner.feed(Topic.OTLP_SPANS, letter.encode(), number + 1)
        if chance.random() < 0.3:
            runner.turn(Stage.RESOLVE, chance.randrange(PARTITIONS))
        if chance.random() < 0.2:
            runner.crash(Stage.RESOLVE, chance.randrange(PARTITIONS), chance.choice(list(CrashPoint)))
    runner.drain()
    assert totals(runner) == told(runner) == WANTED
    assert sum(step.versions.restores for step in counting(runner)) > PARTITIONS


@pytest.mark.parametrize(
    ("point", "kept"),
    [(CrashPoint.BEFORE_OUTPUTS, 0), (CrashPoint.OUTPUTS_SENT, 0), (CrashPoint.MARKER_SENT, 2)],
    ids=lambda value: str(value),
)
def test_a_crash_keeps_what_its_point_says(point: CrashPoint, kept: int) -> None:
    runner = LocalRunner([Spec()], None, 1)
    runner.feed_records(Topic.SPANS, 0, [Item("a"), Item("a")])
    runner.turn(Stage.RESOLVE, 0, cut=False)
    assert totals(runner) == {"a": 2}
    assert told(runner) == {}
    runner.crash(Stage.RESOLVE, 0, point)
    assert totals(runner).get("a", 0) == kept
    assert bool(told(runner)) == (point is not CrashPoint.BEFORE_OUTPUTS)
    [step] = counting(runner)
    assert step.calls == ["opened"]
    runner.drain()
    assert step.calls == ["opened", "caught up"]
    assert totals(runner) == told(runner) == {"a": 2}


def test_a_watermark_reaches_the_steps_and_never_goes_back() -> None:
    runner = local()
    runner.feed(Topic.OTLP_SPANS, b"a", 500)
    runner.drain()
    assert set(runner.watermarks(Stage.RESOLVE).values()) == {500}
    runner.feed(Topic.OTLP_SPANS, b"b", 400)
    runner.crash(Stage.RESOLVE, 0, CrashPoint.BEFORE_OUTPUTS)
    runner.drain()
    assert set(runner.watermarks(Stage.RESOLVE).values()) == {500}
    runner.end_of_input(9_000)
    assert set(runner.watermarks(Stage.RESOLVE).values()) == {9_000}


def test_dead_letters_can_be_looked_at() -> None:
    runner = local()
    runner.feed(Topic.OTLP_SPANS, b"", 7)
    runner.drain()
    [letter] = runner.dead_letters()
    assert (letter.reason, letter.offset, letter.record_time) == ("empty", 0, 7)
    assert runner.counts[Stage.INGEST] == {("dead_lettered", "empty"): 1}
