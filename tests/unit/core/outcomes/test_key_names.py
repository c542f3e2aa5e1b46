"""A business key may have any name: those that the pipeline uses itself mean nothing else when a user does."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from pipeline.core.correlating.packed import KeyStates
from pipeline.core.correlating.state import KeyState
from pipeline.core.packing import MOST_WORDS
from pipeline.core.timeline import DAY, HOUR, SECOND, to_datetime
from schemas.outcome import SESSION_VIA, TRACE_KEY
from schemas.topics import Topic
from tests.builders import T0, trace_id
from tests.unit.core.line import ORDER, Line, sent, tool, turn

NAMES = ["trace_id", "session", "session_id", "trace", "default", "=", "a=b"]


def ordered(number: int, conversation: str, name: str, value: str, start: int = T0) -> list[dict[str, object]]:
    """A run that places an order, under this key."""
    run = turn(number, start, {**ORDER, "session.id": conversation, f"trueup.correlation.{name}": value})
    return [*run, sent(number, number * 100 + 50, start, start + SECOND, tool("place_order"), number * 100)]


@pytest.mark.parametrize("name", NAMES)
def test_an_outcome_finds_its_session_whatever_the_key_is_called(name: str) -> None:
    line = Line().spans(*ordered(1, "c", name, "A-100"), *ordered(2, "d", name, "A-200"))
    line.outcome("e", T0 + HOUR, correlation={name: "A-100"}, data={"settled": True})
    line.outcome("i", T0 + HOUR, "invalidate", correlation={name: "A-200"})
    line.until(T0 + 2 * DAY)
    assert [(one["conversation"], one["verified"], one["invalid"]) for one in line.sessions()] == [
        ("c", True, False),
        ("d", False, True),
    ]
    assert (line.letters(), line.waiting()) == ([], 0)
    assert {row["via"] for row in line.rows("outcomes")} == {f"{name}=A-100", f"{name}=A-200"}


@pytest.mark.parametrize("name", NAMES)
def test_a_key_whose_value_is_another_traces_id_leads_to_who_states_it(name: str) -> None:
    line = Line().spans(*ordered(1, "c", name, trace_id(2))).spans(*ordered(2, "d", "order", "1"))
    line.outcome("k", T0 + HOUR, "invalidate", correlation={name: trace_id(2)}).until(T0 + 2 * DAY)
    assert [(one["conversation"], one["invalid"]) for one in line.sessions()] == [("c", True), ("d", False)]
    line.outcome("t", T0 + HOUR, "invalidate", trace_id=trace_id(2)).until(T0 + 3 * DAY)
    assert [(one["conversation"], one["invalid"]) for one in line.sessions()] == [("c", True), ("d", True)]


def test_many_outcomes_by_such_a_key_in_one_message_all_count() -> None:
    line = Line().spans(*ordered(1, "c", "trace_id", "A-100"))
    said = {"event_time": to_datetime(T0 + HOUR).isoformat(), "source": "crm", "kind": "evidence"}
    said |= {"correlation": {"trace_id": "A-100"}, "data": {"settled": True}}  # type: ignore[dict-item]
    events = [{**said, "event_id": f"e{number}"} for number in range(12)]
    line.runner.feed(Topic.OUTCOMES, json.dumps(events).encode(), T0 + HOUR + SECOND)
    line.until(T0 + 2 * DAY)
    assert (line.only()["verified"], line.letters(), line.waiting()) == (True, [], 0)


def test_a_traces_own_key_and_a_conversations_way_are_no_users() -> None:
    assert "" in (TRACE_KEY, SESSION_VIA[1])
    for given in ({"": "A"}, {"order": ""}):
        letters = Line().outcome("e", T0, correlation=given, data={"settled": True}).letters()
        assert [one.reason for one in letters] == ["bad_outcome"]


def test_states_of_keys_stay_apart_when_there_are_too_many_names() -> None:
    states = KeyStates()
    for number in range(MOST_WORDS):
        states.words.number(f"word {number}")
    parts = [("t", TRACE_KEY, "x"), ("t", "x", "y"), ("t", "trace_id", "x"), ("tx", TRACE_KEY, "y")]
    for one in parts:
        states[states.key(*one)] = KeyState(*one)
    assert [(one.tenant, one.name, one.value) for one in states.values()] == parts
    assert all(states.key(*one) != states.key(*other) for one, other in pairwise(parts))
