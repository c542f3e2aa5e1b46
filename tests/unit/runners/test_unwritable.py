"""What cannot be written to a message is a dead letter, wherever it was made, and all else goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pipeline.core.effects import Result
from pipeline.core.timeline import HOUR
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.local_runner import LocalRunner
from pipeline.runners.messages import Incoming
from schemas.envelope import decoder
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter
from tests.builders import T0
from tests.unit.core.ingest_support import pairs
from tests.unit.core.line import ORDER, Line, turn
from tests.unit.runners.memory_log import MemoryLog
from tests.unit.runners.test_group_runners import OPTIONS
from tests.unit.runners.test_local_runner import LettersOnly
from tests.unit.runners.toy import Counting, Item, Spec, Total

UNWRITABLE = [10**30, "\ud800", object()]
"""Three values of which no schema of ours keeps a record free: no 64 bits, no UTF-8, nothing that messages know."""


class Careless(LettersOnly):
    """Stage 1, if it let through what a record says: an item for each letter."""

    def __init__(self, odd: object) -> None:
        super().__init__()
        self.odd: Any = odd

    def on_record(self, *given: Any) -> None:
        for letter in given[-1].decode():
            self.outbox.count(Result.USED, "letter")
            self.outbox.send(Topic.SPANS, 0, Item("good" if letter == "g" else "odd", 1 if letter == "g" else self.odd))


@pytest.mark.parametrize("odd", UNWRITABLE, ids=["a number", "a text", "an object"])
def test_what_stage_1_reads_and_cannot_write_is_a_dead_letter_and_its_neighbours_go_on(odd: object) -> None:
    runner = LocalRunner([Spec()], None, 1, ingest=Careless(odd))
    for value in (b"gg", b"gog", b"g"):
        runner.feed(Topic.OTLP_SPANS, value, T0)
    runner.drain()
    (letter,) = runner.dead_letters()
    assert (letter.reason, letter.topic, letter.offset) == ("step_error", Topic.OTLP_SPANS, 1)
    (step,) = runner.steps(Stage.RESOLVE).values()
    assert isinstance(step, Counting)
    assert step.totals == {"good": 3}
    assert runner.counts[Stage.INGEST]["used", "letter"] == 3


@pytest.mark.parametrize("odd", UNWRITABLE, ids=["a number", "a text", "an object"])
def test_live_what_stage_1_reads_and_cannot_write_is_a_dead_letter_and_its_neighbours_go_on(odd: object) -> None:
    log = MemoryLog()

    async def story() -> IngestRunner:
        runner = IngestRunner(Careless(odd), OPTIONS)
        runner.broker = log  # type: ignore[assignment]
        values = (b"gg", b"gog", b"g")
        await runner.step([Incoming(Topic.OTLP_SPANS, 0, n, 1, None, value) for n, value in enumerate(values)])
        return runner

    runner = asyncio.run(story())
    decode = decoder(Item).decode
    items = [item for value in log.values(Topic.SPANS, 0) for item in decode(value or b"").records]
    assert [item.key for item in items] == ["good"] * 3
    (letter,) = (msgspec.json.decode(value, type=DeadLetter) for value in log.values(Topic.DEAD_LETTERS, 0) if value)
    assert (letter.reason, letter.offset) == ("step_error", 1)
    assert dict(runner.statistics.records) == {
        ("used", "letter"): 3,
        ("received", "record"): 1,
        ("dead_lettered", "step_error"): 1,
    }


class Swelling(Counting):
    """Tells totals that grow beyond what can be written."""

    def publish(self) -> None:
        for key in sorted(self._untold):
            if self.totals[key] > 1:
                total = Total(key, 10**30, self.versions.next())
                self.outbox.send(Topic.SESSION_EVENTS, self.partition, total)
        super().publish()


def test_what_a_stage_makes_and_cannot_write_costs_the_record_that_made_it_so() -> None:
    runner = LocalRunner([Spec(make=lambda _: Swelling)], None, 1)
    for batch in (["a", "b"], ["a", "c"], ["d"]):
        runner.feed_records(Topic.SPANS, 0, [Item(key) for key in batch])
    runner.drain()
    (step,) = runner.steps(Stage.RESOLVE).values()
    assert isinstance(step, Swelling)
    assert step.totals == {"a": 1, "b": 1, "c": 1, "d": 1}
    (letter,) = runner.dead_letters()
    assert (letter.reason, letter.topic, letter.offset) == ("step_error", Topic.SPANS, 1)


def test_counts_beyond_all_sense_are_none_and_sums_of_those_that_are_some_go_into_64_bits() -> None:
    said = {"gen_ai.usage.input_tokens": 2**63 - 1, "gen_ai.usage.output_tokens": 2**40}
    nested = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.usage_details": f'{{"input": {10**30}, "output": 5, "input_tokens": {10**30}}}',
    }
    line = Line()
    for number in range(1, 5):
        agent, model = turn(number, T0, {**ORDER, "session.id": "c"})
        model["attributes"] += pairs(said if number % 2 else nested)
        line.spans(agent, model)
    session = line.until(T0 + HOUR).only()
    assert (session["tokens"][:2], line.letters()) == ([0, 2**41 + 10], [])
