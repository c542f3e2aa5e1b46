"""Clocks that are wrong, as they are in the field.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

import pytest

from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, to_text
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import CHAT, ORDER, Line, sent, turn

END = T0 + 10 * SECOND
YEAR = 365 * DAY
ID = {"session.id": "c"}
ORDERED = {**ORDER, **ID}


def test_case_E02_a_start_and_an_end_that_do_not_fit_are_no_duration() -> None:
    line = Line().spans(*turn(1, T0, ORDERED)).spans(sent(1, 150, END, T0, CHAT, 100), record_time=END)
    found = line.until(END + HOUR).only()
    assert (found["start"], found["end"], found["flags"]) == (to_text(T0), to_text(END), ["negative_duration"])


def test_case_E03_no_step_lasts_less_than_nothing_and_what_was_is_counted_apart() -> None:
    line = Line().spans(sent(1, 1, END, T0, ORDERED), record_time=END).spans(*turn(2, T0, ID)).until(END + HOUR)
    assert all(row["end"] >= row["start"] for row in line.rows("agent_steps"))
    assert line.counted("noted", "negative_duration") == 1


@pytest.mark.parametrize(
    ("start", "end", "clamped"),
    [
        pytest.param(T0 - 27 * HOUR, T0, 0, id="it began 27 h ago"),
        pytest.param(T0 - 27 * HOUR, T0 - 27 * HOUR, 0, id="it ended 27 h ago"),
        pytest.param(T0, T0 + 27 * HOUR, 1, id="it ends in 27 h"),
    ],
)
def test_case_E04_skew_is_judged_on_the_end_against_the_brokers_time(start: int, end: int, clamped: int) -> None:
    line = Line().spans(sent(1, 1, start, end, ORDERED), record_time=T0).until(T0 + HOUR)
    assert line.counted("noted", "clamped") == clamped
    assert line.only()["start"] == to_text(start)
    assert line.only()["end"] == to_text(T0 if clamped else end)


def test_case_E06_a_clock_a_year_ahead_moves_nobodys_event_time() -> None:
    line = Line(sources=2).spans(*turn(1, T0, ORDERED))
    line.spans(sent(9, 1, T0 + YEAR, T0 + YEAR + 1, ORDER), record_time=END, partition=1)
    assert set(line.runner.watermarks(Stage.RESOLVE).values()) == {END}
    late = turn(2, T0 + MINUTE, ID)
    assert line.spans(*late).until(END + HOUR).sessions("c")[0]["runs"] == 2


def test_case_E07_a_time_of_zero_is_the_records_and_counted() -> None:
    line = Line().spans(sent(1, 1, 0, 0, ORDERED), record_time=T0).until(T0 + HOUR)
    assert (line.only()["start"], line.only()["end"], line.only()["flags"]) == (
        to_text(T0),
        to_text(T0),
        ["record_time"],
    )
    assert line.counted("noted", "record_time") == 1


def test_case_E07_a_span_of_no_time_in_a_record_of_no_time_is_a_dead_letter() -> None:
    line = Line().spans(sent(1, 1, 0, 0, ORDERED), record_time=0)
    assert [letter.reason for letter in line.letters()] == ["bad_time"]


def test_case_E08_spans_from_1970_are_refused_and_write_no_row() -> None:
    line = Line().spans(*turn(1, T0, ORDERED)).until(END + MINUTE)
    before = len(line.rows("agent_steps"))
    line.spans(*(sent(n, n, SECOND, 2 * SECOND, ORDERED) for n in range(100, 220)), record_time=END).until(END + HOUR)
    assert line.counted("dead_lettered", "sealed") == 120
    assert {letter.reason for letter in line.letters()} == {"sealed"}
    assert len(line.rows("agent_steps")) == before
    assert line.only()["start"] == to_text(T0)
