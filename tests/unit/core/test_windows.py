from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.timeline import DAY, HOUR, MINUTE, TimeRules
from pipeline.core.windows import at_a_bucket, folded_before, hour_of, window_bounds
from schemas.segment import WINDOWS

RULES = TimeRules(session_gap=30 * MINUTE, resume_window=2 * HOUR, bucket=5 * MINUTE)
T = 20_000 * DAY


def test_a_window_ends_the_longer_of_gap_and_resume_window_before_the_watermark() -> None:
    assert window_bounds(T, HOUR, RULES) == (T - 3 * HOUR, T - 2 * HOUR)
    assert window_bounds(T, HOUR, TimeRules(session_gap=4 * HOUR)) == (T - 5 * HOUR, T - 4 * HOUR)


def test_a_window_moves_by_whole_buckets() -> None:
    assert window_bounds(T + 5 * MINUTE - 1, HOUR, RULES) == window_bounds(T, HOUR, RULES)
    assert window_bounds(T + 5 * MINUTE, HOUR, RULES) == (T - 3 * HOUR + 5 * MINUTE, T - 2 * HOUR + 5 * MINUTE)


def test_before_event_time_is_known_a_window_is_empty() -> None:
    assert window_bounds(0, 7 * DAY, RULES) == (0, 0)
    assert window_bounds(2 * HOUR + MINUTE, DAY, RULES) == (0, 0)
    assert window_bounds(3 * HOUR, DAY, RULES) == (0, HOUR)


@pytest.mark.parametrize("window", [0, -HOUR, 7 * MINUTE, HOUR + 1])
def test_a_window_that_is_not_whole_buckets_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match="whole buckets"):
        window_bounds(T, window, RULES)


@given(st.integers(0, T), st.integers(0, T), st.sampled_from(sorted(WINDOWS.values())))
def test_bounds_never_go_back_and_lie_on_the_grid(one: int, other: int, seconds: int) -> None:
    window = seconds * HOUR // 3600
    (a, b), (c, d) = (window_bounds(w, window, RULES) for w in sorted((one, other)))

    assert a <= c
    assert b <= d
    assert {edge % RULES.bucket for edge in (a, b, c, d)} == {0}
    assert b - a < window + RULES.folded_bucket
    assert b - a >= window or a == 0


@pytest.mark.parametrize(
    ("now", "first", "last"),
    [
        pytest.param(0, -HOUR, 0, id="on the hour"),
        pytest.param(55 * MINUTE, -HOUR, 0, id="a bucket before the next"),
        pytest.param(HOUR, 0, HOUR, id="the next"),
    ],
)
def test_an_hour_is_folded_when_it_ended_48_hours_ago(now: int, first: int, last: int) -> None:
    before = folded_before(T + 48 * HOUR + now, RULES)

    assert (before, hour_of(before - 1, RULES)) == (T + last, T + first)


@given(st.integers(0, 72 * HOUR), st.integers(0, HOUR))
def test_a_bound_is_at_a_bucket_of_every_partition_up_to_an_hour_ahead(back: int, ahead: int) -> None:
    moment = at_a_bucket((T - back) // RULES.bucket * RULES.bucket, T, RULES)

    assert T - back - moment < RULES.folded_bucket + RULES.bucket
    assert moment % RULES.folded_bucket == 0 or moment >= folded_before(T + ahead, RULES)


@given(st.integers(0, T))
def test_a_week_begins_at_an_hour_and_holds_all_of_its_days(watermark: int) -> None:
    start, end = window_bounds(watermark, 7 * DAY, RULES)

    assert start % RULES.folded_bucket == 0
    assert start <= max(0, end - 7 * DAY)
