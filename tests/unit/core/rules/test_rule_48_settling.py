"""Rule 48: what has settled stays settled, whatever horizon comes into force later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.core.contracts.parse import load, read
from pipeline.core.ingest import Ingest
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.timeline import DAY, HOUR, MINUTE, TimeRules
from pipeline.runners.local_runner import CrashPoint, LocalRunner
from pipeline.topology import STAGES, Setup, StepMaker, contracts_changed
from schemas.topics import Stage
from tests.builders import T0
from tests.property.contracts import ORDER
from tests.unit.core.line import Line, turn

LONGER = """
family: other
version: 1
reopen_window: 240h
criteria: [{id: a, check: "state.x == true"}]
"""
SAID = {"gen_ai.conversation.id": "c", "trueup.task.family": "order"}
LATE = (
    turn(2, T0 + 10 * MINUTE, SAID),  # would join
    turn(3, T0 - 20 * MINUTE, SAID),  # would cut it anew
    turn(4, T0 + 10 * MINUTE, {**SAID, "gen_ai.conversation.id": "d"}),  # would open one in a settled bucket
)


def settled() -> Line:
    return Line(book=load([("order", ORDER)], TimeRules())).spans(*turn(1, T0, SAID)).until(T0 + 80 * HOUR)


def stays_as_it_is(line: Line) -> None:
    for spans in LATE:
        line.spans(*spans, record_time=T0 + 81 * HOUR)
    line.until(T0 + 90 * HOUR)
    found = line.only()
    assert (found["conversation"], found["ordinal"], found["revision"]) == ("c", 1, 1)
    assert [one.reason for one in line.letters()] == ["settled"] * 3
    assert line.counted("dead_lettered", "settled") == 6
    assert line.rate("attribution") == (1, 1)


def load_longer(line: Line, setup: Setup) -> None:
    setup.book.add(read("longer", LONGER, setup.rules).contract)
    for stage in (Stage.RESOLVE, Stage.JUDGE):
        for number, step in line.runner.steps(stage).items():
            contracts_changed(setup, step)
            line.runner.turn(stage, number, cut=True)


@pytest.mark.parametrize("dies", [False, True])
def test_a_longer_horizon_that_is_loaded_later_opens_nothing_again(dies: bool) -> None:
    book = load([("order", ORDER)], TimeRules())
    line = Line(book=book).spans(*turn(1, T0, SAID)).until(T0 + 80 * HOUR)
    load_longer(line, Setup(book, TimeRules(), 2))
    if dies:
        for number in range(2):
            line.runner.crash(Stage.JUDGE, number, CrashPoint.MARKER_SENT)
    stays_as_it_is(line)


def test_nothing_needs_a_longer_horizon_to_stay() -> None:
    stays_as_it_is(settled())


def test_what_had_not_settled_is_open_as_long_as_the_longer_horizon_says() -> None:
    book = load([("order", ORDER)], TimeRules())
    line = Line(book=book).spans(*turn(1, T0, SAID)).until(T0 + 70 * HOUR)
    load_longer(line, Setup(book, TimeRules(), 2))
    line.until(T0 + 200 * HOUR).spans(*LATE[0], record_time=T0 + 201 * HOUR).until(T0 + 202 * HOUR)
    assert (line.only()["turns"], line.letters()) == (2, [])


def test_a_restart_with_a_longer_reopen_window_opens_nothing_again() -> None:
    rules, longer = TimeRules(), replace(TimeRules(), reopen_window=10 * DAY)
    book = load([("order", ORDER)], rules)
    in_force = [rules]
    judge = next(spec for spec in STAGES if spec.stage is Stage.JUDGE)

    def make(setup: Setup) -> StepMaker:
        return lambda partition: judge.make(replace(setup, rules=in_force[-1]))(partition)

    stages = [replace(spec, make=make) if spec is judge else spec for spec in STAGES]
    line = Line(book=book)
    line.runner = LocalRunner(stages, Setup(book, rules, 2), 2, Ingest(2, rules))
    line.spans(*turn(1, T0, SAID)).until(T0 + 80 * HOUR)
    in_force.append(longer)
    for number in range(2):
        line.runner.crash(Stage.JUDGE, number, CrashPoint.MARKER_SENT)
    stays_as_it_is(line)


def test_a_horizon_holds_from_when_it_comes_into_force() -> None:
    book, rules = load([("order", ORDER)], TimeRules()), TimeRules()
    guard = SettledGuard(book, rules)
    short = guard.settled_at(T0)
    book.add(read("longer", LONGER, rules).contract)
    guard.adopt(short)  # it was open until then, with its end
    assert guard.settled_at(T0 - rules.bucket) == short - rules.bucket
    assert guard.settled_at(T0) == short + 7 * DAY
    restored = SettledGuard(book, rules)
    for key, state in guard.changed():
        assert restored.load(key, state)
    assert restored.settled_at(T0 - rules.bucket) == short - rules.bucket
    assert restored.settled_at(T0) == short + 7 * DAY
