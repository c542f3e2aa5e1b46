"""Old buckets become hours, a partition at a time, and no number that anybody reads changes by it (DESIGN.md 6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.effects import Result
from pipeline.core.judging.fold import Contribution, Fold
from pipeline.core.measuring.grids import EVENT_IS_FAILURE, ages
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from pipeline.core.windows import folded_before, hour_of
from schemas.rows import TABLES
from schemas.segment import WINDOWS, Partial, PartialReset, Rate, RateReading
from schemas.topics import Stage, Topic
from tests.builders import T0, settings
from tests.oracle.rates import OEstimate, OIndividual, bounds, bucket_of, true_up
from tests.property.contracts import BOOK
from tests.unit.core.line import ORDER, Line, turn

RULES = TimeRules()
NEVER = replace(RULES, fold_after=10_000 * DAY)
BUCKET = RULES.bucket
START = hour_of(T0, RULES)
FOLDS = START + HOUR + RULES.fold_after
"""The watermark at which the hour that begins at START is folded."""
GRID = BOOK.named("order@1").age_grid  # type: ignore[union-attr]


def one(at: int, age: int = -1) -> Contribution:
    """An eligible session that ended in the bucket `at`; of resolution, with its failure in that age bucket."""
    counts = (("completion", 1, 1, 0), ("resolution", 1, int(age < 0), age))
    return Contribution(at, (("system", ()),), "order@1", counts, ("judged",), (0, 500_000), ("stage/tool",))


def partials(fold: Fold, owner: int, first: int = 1) -> list[Partial]:
    """What a partition sends of what has changed."""
    changed, fold.changed = sorted(fold.changed), set()
    return [fold.partial(key, owner, first + index) for index, key in enumerate(changed)]


def owner_at(watermark: int, *sessions: Contribution) -> Fold:
    fold = Fold(RULES)
    fold.to_hours(watermark)
    for session in sessions:
        fold.add(session, +1)
    return fold


def measured(watermark: int = FOLDS) -> MeasureStep:
    step = MeasureStep(0, BOOK, RULES)
    step.opened(watermark)
    step.caught_up()
    return step


def judged(step: MeasureStep) -> int:
    return sum(counts.get("judged", 0) for counts in step.states(0, START + 100 * DAY).values())


def rows(step: MeasureStep, kept: dict[tuple[str, int], dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    """Publish. Returns: bucket -> numerator and denominator of completion, now and first; without what is deleted."""
    step.publish()
    sent, _ = step.outbox.take()
    for (topic, _), records in sent.items():
        assert topic is Topic.ROWS
        for row in records:
            said = dict(zip(TABLES[row.table], row.values, strict=True))
            kept[said["rate"], said["bucket"]] = said
    names = ("numerator", "denominator", "first_numerator", "first_denominator")
    return {
        bucket: tuple(said[name] for name in names)
        for (rate, bucket), said in sorted(kept.items())
        if rate == "completion" and not said["is_deleted"]
    }


# -- stage 4 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("watermark", "buckets"),
    [
        pytest.param(FOLDS - 1, [(START, BUCKET, 1), (START + 55 * MINUTE, BUCKET, 2)], id="a moment before"),
        pytest.param(FOLDS, [(START, HOUR, 3)], id="48 hours after the hour's end"),
    ],
)
def test_an_hour_is_sent_as_one_when_it_is_old_enough(watermark: int, buckets: list[tuple[int, int, int]]) -> None:
    sessions = [one(START), one(START + 55 * MINUTE), one(START + 55 * MINUTE)]
    early, late = owner_at(0, *sessions), owner_at(watermark, *sessions)
    early.to_hours(watermark)
    for fold in (early, late):
        found = partials(fold, 0)
        assert [(each.bucket, each.width, each.states["judged"]) for each in found] == buckets
    assert partials(early, 0) == []


def test_what_is_revised_in_a_folded_hour_is_sent_as_that_hour() -> None:
    fold = owner_at(0, one(START), one(START + BUCKET))
    fold.to_hours(FOLDS)
    partials(fold, 0)
    fold.add(one(START + BUCKET), -1)
    fold.add(one(START + BUCKET, age=2), +1)
    (found,) = partials(fold, 0)
    assert (found.bucket, found.width, found.states) == (START, HOUR, {"judged": 2})
    assert [(cell.rate, cell.n, cell.good, cell.events) for cell in found.cells] == [
        ("completion", 2, 2, (2,)), ("resolution", 2, 1, (0, 0, 1)),
    ]  # fmt: skip


def test_a_sealed_hour_is_the_same_after_a_restart() -> None:
    fold = owner_at(0)
    for session in (one(START), one(START + BUCKET)):
        fold.add(session, +1)
        fold.seal(session)
    state = dict(fold.dump())
    for gone in fold.to_hours(FOLDS):
        del state[gone]
    state.update(fold.dump())
    again = Fold(RULES)
    for encoded in state.values():
        again.load_sealed(encoded)
    again.to_hours(FOLDS)
    assert len(state) == 1
    for each in (fold, again):
        each.changed = set(each.buckets)
    assert partials(fold, 0) == partials(again, 0)
    assert partials(owner_at(FOLDS, one(START), one(START + BUCKET)), 0) == partials_of(again)


def partials_of(fold: Fold) -> list[Partial]:
    fold.changed = set(fold.buckets)
    return partials(fold, 0)


# -- stage 5 -----------------------------------------------------------------------------------------------------------


def test_partitions_fold_an_hour_one_after_another_and_nothing_counts_twice_or_not_at_all() -> None:
    step, kept = measured(START), {}  # type: ignore[var-annotated]
    owners = [owner_at(0, *[one(START + at * BUCKET) for at in buckets]) for buckets in ((0, 1, 1), (1, 5), (11,))]
    for number, fold in enumerate(owners):
        step.apply(partials(fold, number))
    step.advance(START + HOUR + 3 * HOUR)
    first = rows(step, kept)
    assert first == {
        START: (1, 1, 1, 1), START + BUCKET: (3, 3, 3, 3),
        START + 5 * BUCKET: (1, 1, 1, 1), START + 11 * BUCKET: (1, 1, 1, 1),
    }  # fmt: skip
    step.changed()
    gone = set()
    for number, fold in enumerate(owners):
        fold.to_hours(FOLDS)
        step.apply(partials(fold, number, first=100))
        assert judged(step) == 6
        assert rows(step, kept) == {START: (6, 6, 6, 6)}
        gone |= set(step.changed().gone)
    assert len(gone) == 3
    owners[1].add(one(START + BUCKET), -1)
    step.apply(partials(owners[1], 1, first=200))
    assert rows(step, kept) == {START: (5, 5, 6, 6)}


def test_a_bucket_of_a_partition_that_lags_goes_to_the_hour_that_another_has_folded() -> None:
    step = measured()
    lags = owner_at(0, one(START), one(START + BUCKET))
    step.apply(partials(owner_at(FOLDS, one(START + 2 * BUCKET)), 0))
    step.apply(partials(lags, 1))
    assert judged(step) == 3
    lags.add(one(START + BUCKET), -1)
    step.apply(partials(lags, 1, first=10))
    assert judged(step) == 2
    lags.to_hours(FOLDS)
    step.apply(partials(lags, 1, first=20))
    assert judged(step) == 2
    assert [(each.owner, each.width) for each in step.partials()] == [(0, HOUR), (1, HOUR)]


def test_of_what_covers_the_same_time_the_newest_holds_in_any_order() -> None:
    fine = partials(owner_at(0, one(START), one(START + BUCKET)), 0, first=1)
    hour = partials(owner_at(FOLDS, one(START), one(START + BUCKET), one(START + BUCKET)), 0, first=7)
    for order in permutations([*fine, *hour]):
        step = measured()
        for record in order:
            step.apply([record])
        assert judged(step) == 3
        assert len(step.partials()) == 1


def test_a_worker_that_died_after_it_had_folded_is_overruled_by_one_that_had_not() -> None:
    hour = partials(owner_at(FOLDS, one(START), one(START + BUCKET)), 0, first=1)
    fine = partials(owner_at(0, one(START), one(START + BUCKET)), 0, first=11)
    records: list[Partial | PartialReset] = [*hour, *fine, PartialReset(0, 10)]
    for order in permutations(records):
        step = measured()
        for record in order:
            step.apply([record])
        assert judged(step) == 2
        assert sorted(each.version for each in step.partials()) == [11, 12]


def test_a_part_that_is_not_published_yet_counts_as_it_is_and_an_hour_of_such_is_published_as_one() -> None:
    quiet = RULES.resume_window + RULES.lateness
    for watermark, first in ((START + BUCKET + quiet + 1, 3), (START + BUCKET + quiet, None)):
        step = measured(START)
        kept: dict[tuple[str, int], dict[str, Any]] = {}
        step.apply(partials(owner_at(0, one(START), one(START + BUCKET), one(START + BUCKET)), 0))
        step.advance(watermark)
        step.apply(partials(owner_at(FOLDS, one(START), one(START + BUCKET)), 0, first=10))  # far ahead
        assert rows(step, kept) == {START: (2, 2, first, first)}
        step.advance(START + HOUR + quiet)
        assert rows(step, kept) == {START: (2, 2, first, first)}
        step.advance(START + HOUR + quiet + 1)
        assert rows(step, kept) == {START: (2, 2, first or 2, first or 2)}


def test_an_hour_survives_a_restart() -> None:
    step = measured(START)
    step.apply(partials(owner_at(0, one(START), one(START + BUCKET)), 1))
    step.apply(partials(owner_at(FOLDS, one(START)), 0))
    step.publish()
    again = MeasureStep(0, BOOK, RULES)
    for key, state in step.changed().states:
        again.load(key, state)
    again.opened(FOLDS)
    again.caught_up()
    assert again.partials() == step.partials()
    again.apply(partials(owner_at(FOLDS, one(START), one(START + BUCKET)), 1, first=10))
    assert judged(again) == 3
    assert again.outbox.take()[1][Result.USED, "partial"] == 1


# -- through all stages ------------------------------------------------------------------------------------------------


def test_no_count_changes_when_its_hour_is_folded_and_a_late_outcome_still_revises_it() -> None:
    line = Line()
    for number in range(1, 6):
        said = {**ORDER, "gen_ai.conversation.id": f"c{number}", "trueup.task.outcome": "completed"}
        line.spans(*turn(number, START + number * 7 * MINUTE, said))
    line.until(FOLDS - 1)
    before = line.rate("reopen")
    fine = newest(line)
    line.until(FOLDS)
    assert line.rate("reopen") == before == (0, 5)
    assert {bucket for bucket, _ in newest(line)} == {START}
    assert {bucket for bucket, _ in fine} == {hour_of(START, RULES) + at * BUCKET for at in (1, 2, 4, 5, 7)}
    line.outcome("back", START + 10 * MINUTE + HOUR, "reopen", session_id="c1").until(FOLDS + HOUR)
    assert line.rate("reopen") == (1, 5)
    reopened = next(row for row in line.rows("segment_metrics")[::-1] if row["rate"] == "reopen")
    assert (reopened["bucket"], reopened["numerator"], reopened["first_numerator"]) == (START, 1, 0)


def newest(line: Line) -> set[tuple[int, int]]:
    """(bucket, sessions) of the partials of the system row that hold."""
    steps = line.runner.steps(Stage.MEASURE).values()
    found = [each for step in steps if isinstance(step, MeasureStep) for each in step.partials()]
    return {(each.bucket, each.states.get("judged", 0)) for each in found if each.cube == "system" and each.states}


# -- what is read ------------------------------------------------------------------------------------------------------

ENDS = st.integers(0, 9 * 24 * 60) | st.integers(0, 130)
PEOPLE = st.lists(st.tuples(ENDS, st.integers(-3, 80 * 60)), min_size=1, max_size=40)
"""Minutes from START to the end, minutes from there to the event; below 0 there is none."""
NOWS = st.integers(3 * 60, 12 * 24 * 60) | st.integers(0, 130).map(lambda minutes: (7 * 24 + 2) * 60 + minutes)
"""Minutes from START to now; of many, a week begins near START."""


def test_a_week_that_begins_within_an_hour_holds_that_hour_whole() -> None:
    now = START + 35 * MINUTE + 7 * DAY + RULES.resume_window
    step = measured(now)
    step.apply(partials(owner_at(now, one(START - BUCKET), one(START), one(START + 40 * MINUTE)), 0))
    found = {each.window: each.denominator for each in step.readings() if each.rate == "completion"}
    assert found == {"7d": 2}


@pytest.mark.parametrize("rate", [Rate.RESOLUTION, Rate.COMPLETION])
@given(PEOPLE, NOWS, st.integers(0, 2**32), st.lists(st.integers(0, 59), min_size=3))
def test_readings_are_those_of_individuals_however_far_partitions_have_folded(
    rate: Rate, people: list[tuple[int, int]], minutes: int, seed: int, ahead: list[int]
) -> None:
    now, random = START + minutes * MINUTE, Random(seed)
    contract = BOOK.named("order@1")
    assert contract is not None
    grid = ages(contract, rate)
    sessions = [
        OIndividual(START + end * MINUTE, None if age < 0 or age * MINUTE > grid[-1] else age * MINUTE)
        for end, age in people
        if end < minutes and end + age < minutes
    ]
    owners = {number: owner_at(0) for number in range(3)}
    for session in sessions:
        happened = None if session.event_age is None else bucket_of(session.event_age, GRID)
        event = -1 if happened is None else happened
        counts = ((rate.value, 1, int((event < 0) == (rate in EVENT_IS_FAILURE)), event),)
        mine = Contribution(session.end // BUCKET * BUCKET, (("system", ()),), "order@1", counts, ("judged",))
        owners[random.randrange(3)].add(mine, +1)
    step = MeasureStep(0, BOOK, RULES)
    step.opened(now)
    step.caught_up()
    for number, fold in owners.items():
        step.apply(partials(fold, number))
    for number, fold in owners.items():
        fold.to_hours(now + ahead[number] * MINUTE)
        step.apply(partials(fold, number, first=1000))
    for reading in step.readings():
        window = WINDOWS[reading.window] * SECOND
        told = true_up(sessions, grid, now, window, settings(RULES))
        start, end = bounds(now, RULES.resume_window, window, settings(RULES))
        assert reading.denominator == sum(start <= each.end < end for each in sessions)
        assert_equal(reading, told, rate in EVENT_IS_FAILURE)


def assert_equal(reading: RateReading, told: OEstimate, survivors: bool) -> None:
    if told.status != "full" or told.survival is None:
        assert reading.ratio is None
    else:
        assert reading.ratio == pytest.approx(told.survival if survivors else 1 - told.survival)
    lower, upper = (told.lower, told.upper) if survivors else (1 - told.upper, 1 - told.lower)
    assert (reading.lower, reading.upper) == pytest.approx((lower, upper))
    assert reading.effective_n == pytest.approx(told.n_eff)


@given(PEOPLE, st.integers(0, 12 * 24 * 60), st.integers(0, 2**32))
def test_folding_early_or_late_or_never_gives_the_same_sums(
    people: list[tuple[int, int]], minutes: int, seed: int
) -> None:
    random, now = Random(seed), START + minutes * MINUTE
    folds = [Fold(RULES), Fold(NEVER)]
    for end, age in people:
        for fold in folds:
            fold.add(one((START + end * MINUTE) // BUCKET * BUCKET, bucket_of(max(0, age) * MINUTE, GRID) or -1), +1)
        folds[0].to_hours(now if random.random() < 0.5 else now // 2)
    folds[0].to_hours(now)
    hours: dict[int, dict[Any, list[int]]] = {}
    for fold in folds:
        for partial in partials_of(fold):
            at = hour_of(partial.bucket, RULES) if partial.bucket < folded_before(now, RULES) else partial.bucket
            of = hours.setdefault(at, {}).setdefault(fold is folds[0], [0, 0])
            of[0] += partial.states["judged"]
            of[1] += sum(sum(cell.events) for cell in partial.cells)
    assert all(counts[True] == counts[False] for counts in hours.values())
    assert all(msgspec.msgpack.encode(each) for each in partials_of(folds[0]))
