"""Windows, Wilson and the period life table, each by hand or by an identity of STATISTICS.md 1."""

from __future__ import annotations

import pytest

from tests.oracle.model import DAY, HOUR, MINUTE, OCriterion, OSettings
from tests.oracle.rates import (
    AGE_GRID,
    OIndividual,
    age_grid,
    bounds,
    bucket_of,
    in_window,
    individuals,
    system_rate,
    true_up,
    wilson,
)
from tests.unit.oracle.small_world import HOURS, MIN, T0, contract, judge, outcome, turn

LATE = T0 + 20 * DAY
HOURLY = OSettings(bucket=HOUR, session_gap=0, resume_window=0)
Z2 = 1.959963984540054**2


def people(*ages: int | None, end: int = T0) -> list[OIndividual]:
    return [OIndividual(end, age) for age in ages]


def test_wilson_at_the_textbook_case():
    lower, upper = wilson(0.5, 10)

    assert (lower, upper) == pytest.approx((0.23659309, 0.76340691))
    assert wilson(0.3, 0) == (0.0, 1.0)


def test_the_grid_takes_deadlines_and_windows_up_to_the_horizon():
    assert age_grid(None, OSettings()) == AGE_GRID
    own = contract(OCriterion("k", "true", deadline=5 * HOUR), reopen_window=6 * HOUR)
    assert age_grid(own, OSettings()) == tuple(h * HOUR for h in (0, 1, 2, 4, 5, 6))


def test_age_buckets_include_their_upper_edge():
    assert [bucket_of(a, AGE_GRID) for a in (0, 1, HOUR, HOUR + 1, 72 * HOUR, 72 * HOUR + 1)] == [0, 1, 1, 2, 10, None]


@pytest.mark.parametrize(
    ("age", "watermark", "complete"), [(2, 3, True), (2, 2.9, False), (0, 2, True), (0, 1.9, False)]
)
def test_a_cell_is_complete_when_its_youngest_session_has_lived_through_it(age, watermark, complete):
    settings = OSettings(bucket=HOUR, session_gap=HOUR, resume_window=0)
    edge = max(age * HOUR, settings.session_gap)

    assert (bounds(T0 + int(watermark * HOUR), edge, DAY, settings)[1] > T0) is complete


def test_a_bound_among_hours_is_at_an_hour_and_so_it_is_an_hour_ahead():
    now, bucket = T0 + 100 * DAY + 20 * MINUTE, 5 * MINUTE
    hour = T0 + 98 * DAY

    assert bounds(now, 47 * HOUR - bucket, HOUR, OSettings()) == (hour, hour + HOUR + 25 * MINUTE)
    assert bounds(now, 47 * HOUR + 25 * MINUTE, HOUR, OSettings()) == (hour - HOUR, hour)


def test_without_censoring_it_is_wilson():
    ages = [0, 0, 30 * MINUTE, 5 * HOUR, 71 * HOUR, *[None] * 15]
    got = true_up(people(*ages), AGE_GRID, LATE, 30 * DAY, HOURLY)

    assert (got.status, got.n) == ("full", 20)
    assert got.survival == pytest.approx(0.75)
    assert got.n_eff == pytest.approx(20)
    assert (got.lower, got.upper) == pytest.approx(wilson(0.75, 20))


def test_hazards_of_young_and_old_cohorts_are_chained():
    grid = (0, HOUR, 2 * HOUR)
    old = people(0, HOUR, 2 * HOUR, None)
    young = people(0, None, end=T0 + HOUR)
    got = true_up([*old, *young], grid, T0 + 3 * HOUR, DAY, HOURLY)

    assert got.survival == pytest.approx((1 - 2 / 6) * (1 - 1 / 4) * (1 - 1 / 2))
    assert got.n == 6


def test_the_newest_window_alone_counts_at_each_age():
    old, new = people(None, None), people(0, None, end=T0 + 2 * HOUR)

    assert true_up([*old, *new], (0,), T0 + 3 * HOUR, HOUR, HOURLY).n == 2
    assert true_up([*old, *new], (0,), T0 + 3 * HOUR, 3 * HOUR, HOURLY).n == 4


def test_the_edges():
    empty = true_up([], AGE_GRID, LATE, DAY, HOURLY)
    partial = true_up(people(None, None), (0, HOUR), T0 + HOUR, DAY, HOURLY)
    no_events = true_up(people(None, None), (0, HOUR), LATE, 30 * DAY, HOURLY)
    all_failed = true_up(people(0, 0), (0, HOUR), LATE, 30 * DAY, HOURLY)

    assert (empty.status, empty.survival, empty.lower, empty.upper, empty.n) == ("empty", None, 0.0, 1.0, 0)
    assert (partial.status, partial.last_age, partial.survival, partial.lower) == ("partial", 0, 1.0, 0.0)
    assert (no_events.survival, no_events.n_eff) == (1.0, 2.0)
    assert (no_events.lower, no_events.upper) == pytest.approx((2 / (2 + Z2), 1.0))
    assert all_failed.survival == 0.0
    assert all_failed.upper == pytest.approx(Z2 / (2 + Z2))


def test_a_window_ends_the_quiet_before_the_watermark_and_is_half_open():
    sessions = judge([*turn(1, -10, "a"), *turn(2, HOURS - 10, "b"), *turn(3, 5 * MIN, "d")]).sessions
    watermark = T0 + 3 * HOUR

    assert [s.conversation for s in in_window(sessions, watermark, HOUR, OSettings())] == ["a", "d"]


def test_sessions_of_a_rate_become_individuals():
    order = contract(OCriterion("k", "true"))
    world = judge(turn(1, 0, family=("order",)), [outcome("r", 10 + HOURS, "reopen")], [order])

    assert individuals(world.sessions, world.events["reopen"]) == [OIndividual(T0 + 10 * 10**9, HOUR)]


def test_the_system_rate_weighs_the_families():
    assert system_rate({"a": (1, 1.0), "b": (3, 0.5)}) == pytest.approx(0.625)
    assert system_rate({}) is None


def test_the_newest_window_is_that_of_cohorts_that_have_lived_the_quiet_too():
    settings = OSettings(bucket=HOUR, session_gap=0, resume_window=2 * HOUR)

    assert true_up(people(0, None), (0,), T0 + 3 * HOUR, HOUR, settings).n == 2
    assert true_up(people(0, None), (0,), T0 + 3 * HOUR - 1, HOUR, settings).n == 0
