"""Rule 48: after retention a bucket seals: what comes for it is refused, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import DAY, HOUR, MINUTE
from pipeline.runners.local_runner import CrashPoint
from schemas.topics import Stage
from tests.builders import T0, trace_id
from tests.unit.core.line import Line, turn

SAID = {"gen_ai.conversation.id": "c", "trueup.task.family": "order"}
KEY = {"trueup.correlation.order": "7"}
OF_THE_FIRST = {"session_id": "c", "ordinal": 1}
LATE = T0 + 34 * DAY


def begun(address: dict[str, Any]) -> Line:
    """A session that has settled, and one of the same conversation a month later; stage 3 keeps the address."""
    line = Line().spans(*turn(1, T0, {**SAID, **KEY})).until(T0 + 2 * DAY)
    line.until(T0 + 20 * DAY).outcome("shown", T0 + 20 * DAY, **address)
    return line.spans(*turn(2, T0 + 30 * DAY, SAID))


def active(address: dict[str, Any] = OF_THE_FIRST) -> Line:
    """The first of the two has sealed."""
    return begun(address).until(T0 + 40 * DAY)


def seen(line: Line) -> Any:
    told = [(one["ordinal"], one["revision"], one["invalid"]) for one in line.sessions()]
    return told, line.rate("attribution"), line.rate("tool_success"), len(line.runner.verdicts())


ADDRESSES = [
    pytest.param(OF_THE_FIRST, id="ordinal"),
    pytest.param({"trace_id": trace_id(1)}, id="trace"),
    pytest.param({"correlation": {"order": "7"}}, id="key"),
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("dies", [False, True])
def test_an_outcome_for_a_sealed_session_changes_nothing(address: dict[str, Any], dies: bool) -> None:
    line = active(address)
    before = seen(line)
    line.outcome("i", LATE, "invalidate", **address)
    if dies:
        for partition in range(2):
            line.runner.crash(Stage.JUDGE, partition, CrashPoint.MARKER_SENT)
    line.until(T0 + 41 * DAY)
    assert seen(line)[:3] == before[:3]
    assert [one.reason for one in line.letters()] == ["sealed"]
    assert line.counted("dead_lettered", "sealed") == 1
    assert line.counted("noted", "restated") == 0
    assert line.waiting() == 0
    line.until(T0 + 80 * DAY)
    assert [one.reason for one in line.letters()] == ["sealed"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_one_that_comes_up_to_the_end_of_retention_counts(address: dict[str, Any]) -> None:
    line = begun(address)
    sealed_at = T0 + 5 * MINUTE + 35 * DAY  # the end of its bucket, and retention
    line.until(sealed_at).outcome("i", LATE, "invalidate", **address).until(sealed_at + HOUR)
    assert [one["invalid"] for one in line.sessions()] == [True, False]
    line.outcome("j", LATE, "refusal", **address).until(sealed_at + 2 * HOUR)
    assert [one["refused"] for one in line.sessions()] == [False, False]
    assert [one.reason for one in line.letters()] == ["sealed"]


def test_what_an_outcome_said_before_stays_whatever_is_said_of_it_later() -> None:
    line = Line().spans(*turn(1, T0, SAID)).until(T0 + 2 * DAY).outcome("i", T0 + 6 * DAY, "invalidate", session_id="c")
    line.spans(*turn(2, T0 + 30 * DAY, SAID)).until(T0 + 40 * DAY)
    before = seen(line)
    assert before[0] == [(1, 2, True), (2, 1, False)]
    line.outcome("i", T0 + 6 * DAY, "retract", event_version=2).until(T0 + 41 * DAY)
    assert seen(line) == before
    assert [one.reason for one in line.letters()] == ["sealed"]


def test_one_that_goes_from_an_open_session_to_a_sealed_one_reaches_neither() -> None:
    line = active().outcome("i", LATE, "invalidate", session_id="c", ordinal=2).until(T0 + 41 * DAY)
    assert [one["invalid"] for one in line.sessions()] == [False, True]
    line.outcome("i", LATE, "invalidate", session_id="c", ordinal=1, event_version=2).until(T0 + 42 * DAY)
    assert [one["invalid"] for one in line.sessions()] == [False, False]
    assert [one.reason for one in line.letters()] == ["sealed"]


def test_evidence_that_open_sessions_share_with_sealed_ones_judges_the_open_ones() -> None:
    line = Line().spans(*turn(1, T0, {**SAID, **KEY})).until(T0 + DAY)
    line.spans(*turn(2, T0 + 36 * DAY, {**SAID, **KEY})).until(T0 + 36 * DAY + HOUR)
    told: dict[str, Any] = {"correlation": {"order": "7"}, "data": {"settled": True}}
    line.outcome("e", T0 + 36 * DAY + HOUR, **told).until(T0 + 38 * DAY)
    assert [list(one["evidence"]) for one in line.sessions()] == [[], ["settled"]]
    assert line.letters() == []


def test_ordinals_go_on_after_what_has_sealed() -> None:
    line = active().spans(*turn(3, T0 + 50 * DAY, SAID)).until(T0 + 60 * DAY)
    line.outcome("i", T0 + 59 * DAY, "invalidate", session_id="c", ordinal=2).until(T0 + 61 * DAY)
    assert [(one["ordinal"], one["invalid"]) for one in line.sessions()] == [(1, False), (2, True), (3, False)]
    assert line.rate("attribution") == (2, 2)
