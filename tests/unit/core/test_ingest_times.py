"""Clock rules for spans."""

from __future__ import annotations

import pytest

from pipeline.core.ingest_times import NO_TIME, span_times
from pipeline.core.timeline import MINUTE
from schemas.span import SpanFlag
from tests.unit.core.ingest_support import T, proto, read

SKEW = 5 * MINUTE
NEGATIVE, RECORD, NONE = SpanFlag.NEGATIVE_DURATION, SpanFlag.RECORD_TIME, SpanFlag.NONE
AHEAD = SpanFlag.RECORD_TIME | SpanFlag.CLAMPED


@pytest.mark.parametrize(
    ("start", "end", "record", "result"),
    [
        pytest.param(T, T - 1, T, (T, T, NEGATIVE), id="end before start"),
        pytest.param(T, 0, T, (T, T, NEGATIVE), id="no end"),
        pytest.param(0, T - 9, T, (T, T, RECORD), id="no start"),
        pytest.param(0, 0, T, (T, T, RECORD), id="no time at all"),
        pytest.param(T, T + SKEW, T, (T, T + SKEW, NONE), id="ahead by all that is allowed"),
        pytest.param(T, T + SKEW + 1, T, (T, T, AHEAD), id="end too far ahead"),
        pytest.param(T - 9, T + SKEW + 1, T, (T - 9, T, AHEAD), id="only the end too far ahead"),
        pytest.param(T + 2 * SKEW, T + SKEW + 1, T, (T, T, AHEAD), id="both ahead, and reversed"),
        pytest.param(T + 2 * SKEW, 0, T, (T, T, NEGATIVE | AHEAD), id="start ahead, no end"),
        pytest.param(2**63, 2**64 - 1, T, (T, T, AHEAD), id="beyond all calendars"),
        pytest.param(0, T, 0, (T, T, NONE), id="no start, no record time"),
        pytest.param(T, T + 9 * SKEW, 0, (T, T + 9 * SKEW, NONE), id="without a record time nothing is cut"),
        pytest.param(T, T - 1, -1, (T, T, NEGATIVE), id="reversed, no record time"),
        pytest.param(0, 0, 0, (0, 0, NO_TIME), id="nothing known"),
        pytest.param(T, 2**63, 0, (0, 0, NO_TIME), id="out of range, no record time"),
    ],
)
def test_rule_03_a_clock_that_cannot_be_right_is_corrected(
    start: int, end: int, record: int, result: tuple[int, int, int]
):
    assert span_times(start, end, record, SKEW) == result


def test_rule_03_a_corrected_span_is_flagged_and_counted():
    result = read(proto({}, end_time_unix_nano=T - 1), record_time=T)
    assert result.span.flags == SpanFlag.NEGATIVE_DURATION
    assert result.counts["noted", "negative_duration"] == 1


def test_rule_03_a_span_without_any_time_is_dead_lettered_and_moves_no_watermark():
    result = read(proto({}, start_time_unix_nano=0, end_time_unix_nano=0))
    assert result.reasons == ["bad_time"]
    assert result.total("received") == 1
