"""A record that makes a step raise is a dead letter, and all else is as if it had never come: in both runners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from pipeline.core.effects import KeyBroke, PartitionStep
from pipeline.core.judging.step import JudgeStep
from pipeline.core.timeline import HOUR
from pipeline.runners.applying import Assignment
from pipeline.runners.bad_records import MANY, MANY_IN_A_ROW, BadRecords
from pipeline.runners.checkpoint import Checkpoint
from pipeline.runners.delivery import Delivered, LivePartition
from pipeline.runners.local_runner import CrashPoint, LocalRunner
from pipeline.runners.options import Statistics
from pipeline.runners.partition import Partition
from schemas.envelope import Mark, decoder
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter
from tests.builders import T0
from tests.unit.core.line import ORDER, Line, turn
from tests.unit.runners.memory_log import MemoryLog
from tests.unit.runners.test_delivery import OPTIONS
from tests.unit.runners.toy import Counting, Item, Spec, message, newest

GOOD, BAD, WORSE = Item("good"), Item("bad"), Item("worse")


class Delicate(Counting):
    """Raises at `bad` when it has half applied it, at `worse` when it publishes, and at `late` once time passes."""

    def apply(self, records: Sequence[Any]) -> None:
        for item in records:
            super().apply([item])
            if item.key == "bad":
                raise KeyError("something secret")
            if item.key == "memory":
                raise MemoryError

    def publish(self) -> None:
        if "worse" in self._untold:
            raise ValueError("something secret")
        if self.totals.get("late", 0) and self.watermark:
            raise ValueError("nobody is to blame")
        super().publish()


SPEC = Spec(make=lambda _: Delicate)


def local(items: Sequence[Sequence[Item]], shuffle: Random | None = None) -> LocalRunner:
    runner = LocalRunner([SPEC], None, 1, shuffle=shuffle)
    for batch in items:
        runner.feed_records(Topic.SPANS, 0, list(batch))
    return runner


def totals(runner: LocalRunner) -> dict[str, int]:
    (step,) = runner.steps(Stage.RESOLVE).values()
    assert isinstance(step, Delicate)
    return step.totals


@pytest.mark.parametrize("bad", [BAD, WORSE], ids=["when it is applied", "when it is published"])
def test_a_record_that_makes_the_step_raise_is_a_dead_letter_and_nothing_else_is(bad: Item) -> None:
    runner = local([[GOOD], [GOOD, bad, GOOD], [GOOD]])
    runner.drain()
    assert totals(runner) == {"good": 4}
    assert newest(one.value for one in runner.messages(Topic.SESSION_EVENTS)) == {"good": 4}
    (letter,) = runner.dead_letters()
    assert (letter.reason, letter.topic, letter.offset) == ("step_error", Topic.SPANS, 1)
    assert dict(runner.counts[Stage.RESOLVE]) == {("used", "counted"): 4, ("dead_lettered", "step_error"): 1}


def test_a_letter_says_what_was_raised_and_where_but_not_its_text() -> None:
    runner = local([[GOOD, BAD]])
    runner.drain()
    (letter,) = runner.dead_letters()
    assert "KeyError at test_bad_records.py" in letter.detail
    assert "secret" not in letter.detail


@pytest.mark.parametrize("seed", range(20))
def test_bad_records_among_crashes_in_any_order_leave_what_good_ones_give(seed: int) -> None:
    random = Random(seed)
    batches = [[random.choice([GOOD, GOOD, Item("other"), BAD, WORSE]) for _ in range(3)] for _ in range(12)]
    runner = local(batches, random)
    for _ in range(6):
        runner.turn(Stage.RESOLVE, 0)
        runner.crash(Stage.RESOLVE, 0, random.choice(list(CrashPoint)))
    runner.drain()
    sent = [item.key for batch in batches for item in batch]
    assert totals(runner) == {key: sent.count(key) for key in sorted({"good", "other"}) if key in sent}
    assert len({(one.offset, one.detail) for one in runner.dead_letters()}) == sent.count("bad") + sent.count("worse")


@pytest.mark.parametrize("bad", [BAD, WORSE], ids=["when it is applied", "when it is published"])
def test_however_many_are_bad_in_one_message_the_stage_goes_on(bad: Item, caplog: pytest.LogCaptureFixture) -> None:
    many = 3 * MANY_IN_A_ROW + 1
    runner = local([[GOOD], [GOOD, *[bad] * many, GOOD], [bad] * many, [GOOD]])
    runner.drain()
    assert totals(runner) == {"good": 4}
    assert len(runner.dead_letters()) == 2 * many
    assert sum(MANY in one.getMessage() for one in caplog.records) == 2 * many // MANY_IN_A_ROW


def test_a_key_that_breaks_though_it_is_set_aside_is_no_keys_fault() -> None:
    bad, broke = BadRecords(Stage.JUDGE, 0), KeyBroke(b"key")
    bad.set_aside(broke)
    with pytest.raises(KeyBroke):
        bad.set_aside(broke)


@pytest.mark.parametrize("conversations", [1, MANY_IN_A_ROW + 2])
def test_however_many_conversations_break_at_once_the_others_go_on(
    conversations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = JudgeStep._recompute

    def breaks(self: JudgeStep, key: bytes, conversation: Any) -> None:
        if conversation.name.startswith("bad") and self.watermark > T0 + HOUR:
            raise ZeroDivisionError
        judged(self, key, conversation)

    monkeypatch.setattr(JudgeStep, "_recompute", breaks)
    line = Line()
    for number in range(1, conversations + 1):
        line.spans(*turn(number, T0, {**ORDER, "session.id": f"bad{number}"}))
    line.spans(*turn(99, T0, {**ORDER, "session.id": "good"})).until(T0 + HOUR).until(T0 + 50 * HOUR)
    assert line.counted("noted", "step_error", Stage.JUDGE) == conversations
    assert [one["claimed"] for one in line.sessions("good")] == ["assumed"]


def test_an_error_that_no_record_is_to_blame_for_ends_the_stage() -> None:
    runner = local([[Item("late")]])
    runner.drain()
    runner.feed_records(Topic.SPANS, 0, [GOOD], [Mark(Stage.INGEST, Topic.OTLP_SPANS, 0, 1, False)])
    with pytest.raises(ValueError, match="nobody"):
        runner.drain()


def test_memory_that_is_exhausted_is_no_records_fault() -> None:
    with pytest.raises(MemoryError):
        local([[Item("memory")]]).drain()


# -- live --------------------------------------------------------------------------------------------------------------


class Bench:
    """One live partition over a log in memory."""

    def __init__(self, *batches: Sequence[Item]) -> None:
        self.log, self.statistics, self.acked = MemoryLog(), Statistics(), list[int]()
        for batch in batches:
            self.log.put(Topic.SPANS, 0, message(*batch))
        checkpoint = Checkpoint(self.log, SPEC.stage, SPEC.snap, 0, "worker")
        self.live = LivePartition(Assignment(SPEC, 0, self.log, checkpoint, OPTIONS, self.statistics, self._make))

    @staticmethod
    def _make() -> Partition:
        return Partition(SPEC, 0, Delicate(0), [], decoder(Item))

    async def deliver(self) -> None:
        """Everything that is in the log now, as the engine does."""
        task = asyncio.create_task(self.live.run())
        for one in list(self.log.logs[Topic.SPANS, 0]):
            await self.live.queue.put(Delivered(one, lambda offset=one.offset: self.acked.append(offset)))  # type: ignore[misc]
        await asyncio.wait({task}, timeout=0.05)
        task.cancel()
        await asyncio.wait({task})

    def letters(self) -> list[DeadLetter]:
        decode: Callable[[bytes], DeadLetter] = msgspec.json.Decoder(DeadLetter).decode
        return [decode(value) for value in self.log.values(Topic.DEAD_LETTERS, 0) if value]

    def totals(self) -> dict[str, int]:
        assert self.live.partition is not None
        step: PartitionStep = self.live.partition.step
        assert isinstance(step, Delicate)
        return step.totals


def test_live_a_record_that_breaks_the_step_is_a_dead_letter_and_its_neighbours_count_once() -> None:
    async def story() -> Bench:
        bench = Bench([GOOD], [GOOD, BAD, GOOD], [GOOD])
        await bench.live.open()
        await bench.deliver()
        await bench.live.flush()
        return bench

    bench = asyncio.run(story())
    assert bench.totals() == {"good": 4}
    assert [(one.reason, one.offset) for one in bench.letters()] == [("step_error", 1)]
    assert bench.acked[:3] == [0, 1, 2]
    assert bench.statistics.records["dead_lettered", "step_error"] == 1
    assert bench.statistics.broken == 2


def test_live_what_breaks_when_it_is_published_is_found_at_the_flush() -> None:
    async def story() -> Bench:
        bench = Bench([GOOD], [GOOD, WORSE], [GOOD])
        await bench.live.open()
        await bench.deliver()
        await bench.live.flush()
        await bench.live.flush()
        return bench

    bench = asyncio.run(story())
    assert bench.totals() == {"good": 3}
    assert [(one.reason, one.offset) for one in bench.letters()] == [("step_error", 1)]
    assert newest(bench.log.values(Topic.SESSION_EVENTS, 0)) == {"good": 3}


def test_live_however_many_are_bad_the_stage_goes_on() -> None:
    many = 2 * MANY_IN_A_ROW

    async def story() -> Bench:
        bench = Bench([GOOD], [BAD] * many, [GOOD, *[BAD] * many], [GOOD])
        await bench.live.open()
        await bench.deliver()
        await bench.live.flush()
        return bench

    bench = asyncio.run(story())
    assert bench.totals() == {"good": 3}
    assert len(bench.letters()) == 2 * many


# -- the real stages ---------------------------------------------------------------------------------------------------


def test_a_conversation_that_cannot_be_judged_costs_only_what_made_it_so(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = JudgeStep._recompute

    def breaks(self: JudgeStep, key: bytes, conversation: Any) -> None:
        if any(trace_id == (2).to_bytes(16, "big") for trace_id in conversation.traces):
            raise ZeroDivisionError
        judged(self, key, conversation)

    monkeypatch.setattr(JudgeStep, "_recompute", breaks)
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}))
    line.spans(*turn(2, T0, {"session.id": "c"})).spans(*turn(3, T0, {"session.id": "d"})).until(T0 + HOUR)
    assert [(one["conversation"], one["runs"]) for one in line.sessions()] == [("c", 1), ("d", 1)]
    assert line.counted("dead_lettered", "step_error", Stage.JUDGE) == 2
    (letter,) = line.letters()
    assert (letter.tenant, letter.trace_id) == ("default", f"{2:032x}")


def test_a_conversation_that_breaks_with_time_stays_as_it_was_published_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = JudgeStep._recompute

    def breaks(self: JudgeStep, key: bytes, conversation: Any) -> None:
        if conversation.name == "c" and self.watermark > T0 + HOUR:
            raise ZeroDivisionError
        judged(self, key, conversation)

    monkeypatch.setattr(JudgeStep, "_recompute", breaks)
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}), *turn(2, T0, {**ORDER, "session.id": "d"}))
    line.until(T0 + HOUR).until(T0 + 50 * HOUR)
    completions = {one["conversation"]: one["completion"] for one in line.sessions()}
    assert completions == {"c": "incomplete", "d": "incomplete"}
    claimed = {one["conversation"]: one["claimed"] for one in line.sessions()}
    assert claimed == {"c": "", "d": "assumed"}
    (letter,) = line.letters()
    assert (letter.reason, "default" in letter.detail) == ("step_error", True)
    assert line.counted("noted", "step_error", Stage.JUDGE) == 1
    line.spans(*turn(3, T0 + 51 * HOUR, {**ORDER, "session.id": "e"})).until(T0 + 60 * HOUR)
    assert [one["conversation"] for one in line.sessions()] == ["c", "d", "e"]


def test_a_record_that_stage_1_cannot_stand_is_a_dead_letter_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    batch = line.ingest._batch

    def breaks(*given: Any) -> tuple[int, int]:
        found = batch(*given)
        if given[0].offset == 1:
            raise ZeroDivisionError
        return found

    monkeypatch.setattr(line.ingest, "_batch", breaks)
    for number in (1, 2, 3):
        line.spans(*turn(number, T0, {"session.id": "c"}))
    assert line.until(T0 + HOUR).only()["runs"] == 2
    assert line.counted("dead_lettered", "step_error", Stage.INGEST) == 1
    assert line.counted("received", "record") == 1
