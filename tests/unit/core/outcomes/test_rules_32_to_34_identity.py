"""Which version of an outcome counts, when it happened, and what it is addressed to (RULES.md 32 to 34)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND, to_datetime, to_text
from schemas.topics import Stage, Topic
from tests.builders import T0, outcome, trace, trace_id
from tests.oracle.model import OOutcome, OSpan
from tests.oracle.outcomes import event_hash
from tests.unit.core.judged import arrived, judged, run
from tests.unit.core.line import ORDER, Line, tool, turn

END = T0 + 10 * SECOND
SKEW = 5 * MINUTE
OK, BAD = {"settled": True}, {"settled": False}
PAID: dict[str, Any] = {"correlation": {"order": "k"}}


def order(number: int = 1, start: int = T0, conversation: str = "c", **more: Any) -> list[OSpan]:
    """A run that places an order: complete, if the payment settles."""
    return trace(number, start, conversation, tool="place_order", family=("order",), **more)


def completion(*events: OOutcome) -> str:
    (session,) = arrived(*order(), *events).verdicts().values()
    return session.completion.value


# -- 32: one identity, one version -------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "the other way round"])
@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param([(1, "evidence", BAD), (2, "evidence", OK)], "complete", id="the highest version"),
        pytest.param([(1, "evidence", OK), (9, "evidence", BAD)], "incomplete", id="however much higher"),
        pytest.param([(0, "evidence", OK), (1, "evidence", BAD)], "incomplete", id="from nought on"),
        pytest.param([(1, "evidence", OK), (2, "retract", {})], "incomplete", id="a retraction is a version"),
        pytest.param([(1, "evidence", OK), (1, "retract", {})], "incomplete", id="which wins at equal versions"),
        pytest.param([(1, "evidence", OK), (0, "retract", {})], "complete", id="and loses as an older one"),
        pytest.param([(2, "retract", {}), (3, "evidence", OK)], "complete", id="a later version revives"),
    ],
)
def test_rule_32_of_one_identity_the_highest_version_counts(
    versions: list[tuple[int, str, dict[str, Any]]], expected: str, turned: bool
) -> None:
    events = [outcome("e", END + HOUR, kind, event_version=n, data=data) for n, kind, data in versions]
    assert completion(*(reversed(events) if turned else events)) == expected


def test_rule_32_at_equal_versions_the_greater_digest_holds_and_the_tie_is_counted() -> None:
    events = [outcome("e", END + HOUR, data=data) for data in (OK, BAD)]
    expected = "complete" if event_hash(events[0]) > event_hash(events[1]) else "incomplete"
    for pair in (events, events[::-1]):
        pipeline = arrived(*order(), *pair)
        (session,) = pipeline.verdicts().values()
        assert session.completion.value == expected
        superseded = pipeline.count(Stage.CORRELATE, "dropped", "superseded")
        assert pipeline.count(Stage.CORRELATE, "noted", "equal_versions") + superseded == 1


def test_rule_32_sources_and_tenants_do_not_share_identities() -> None:
    told = outcome("e", END + HOUR, data=OK)
    assert completion(told, outcome("e", END, "retract", source="erp", event_version=9)) == "complete"
    assert completion(told, outcome("e", END, "retract", tenant="other", event_version=9)) == "complete"


def test_rule_32_a_retraction_needs_no_address_and_takes_back_from_wherever_it_went() -> None:
    spans = [*order(1, T0, "a", keys={"order": ("k",)}), *order(2, T0, "b", keys={"order": ("k",)})]
    told = outcome("e", END + HOUR, data=OK, **PAID)
    back = outcome("e", END + HOUR, "retract", event_version=2)
    for events in ((told, back), (back, told)):
        verdicts = arrived(*spans, *events).verdicts()
        assert {one.completion.value for one in verdicts.values()} == {"incomplete"}
    revived = replace(told, event_version=3)
    verdicts = arrived(*spans, told, back, revived).verdicts()
    assert {one.completion.value for one in verdicts.values()} == {"complete"}


@pytest.mark.parametrize("turned", [False, True])
def test_rule_32_a_version_with_another_address_is_nowhere_else(turned: bool) -> None:
    spans = [*order(1, T0, "a"), *order(2, T0, "b", keys={"order": ("k",)})]
    events = [
        outcome("e", END + HOUR, data=OK, session_id="a"),
        outcome("e", END + HOUR, data=OK, event_version=2, **PAID),
        outcome("e", END + HOUR, data=OK, event_version=3, trace_id=trace_id(1)),
    ]
    for last, where in ((2, "b"), (3, "a")):
        sent = events[:last]
        verdicts = arrived(*spans, *(reversed(sent) if turned else sent)).verdicts()
        done = {name for (_, name, _), one in verdicts.items() if one.completion.value == "complete"}
        assert done == {where}


def test_rule_32_an_event_with_its_defaults_written_out_is_the_same_event() -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}))
    line.outcome("e", END + HOUR, session_id="c", data=OK)
    line.outcome("e", END + HOUR, session_id="c", data=OK, event_version=1, tenant="default", trace_id=None)
    assert line.counted("dropped", "duplicate", Stage.CORRELATE) == 1
    assert line.counted("noted", "equal_versions") == 0


# -- 33: a clock that runs ahead ---------------------------------------------------------------------------------------


def told_at(event_time: int, *record_times: int) -> dict[str, Any]:
    """A session whose payment settles, by an event of that time, written at those times."""
    placed = {**ORDER, "session.id": "c"}
    line = Line().spans(*turn(1, T0, placed), *turn(2, T0, {**tool("place_order"), "session.id": "c"}))
    event = {"event_id": "e", "source": "crm", "kind": "evidence", "session_id": "c", "data": OK}
    event["event_time"] = to_datetime(event_time).isoformat()
    for record_time in record_times:
        line.runner.feed(Topic.OUTCOMES, json.dumps(event).encode(), record_time)
    found = line.until(max(event_time, *record_times) + 60 * HOUR).only()
    return {"at": found["evidence"]["settled"]["at"], "ahead": line.counted("noted", "clock_ahead")}


def test_rule_33_an_event_time_may_run_ahead_of_its_record_by_the_skew_and_no_more() -> None:
    record = END + HOUR
    assert told_at(record + SKEW, record) == {"at": to_text(record + SKEW), "ahead": 0}
    assert told_at(record + SKEW + SECOND, record) == {"at": to_text(record), "ahead": 1}


@pytest.mark.parametrize("turned", [False, True])
def test_rule_33_of_equal_copies_the_earliest_record_says_when_it_was(turned: bool) -> None:
    times = [END + HOUR, END + 2 * HOUR]
    found = told_at(END + 9 * HOUR, *(reversed(times) if turned else times))
    assert found == {"at": to_text(END + HOUR), "ahead": 2}


def test_rule_33_a_copy_that_was_written_in_time_does_not_undo_an_earlier_one() -> None:
    assert told_at(END + 9 * HOUR, END + 9 * HOUR, END + HOUR)["at"] == to_text(END + HOUR)


# -- 34: the address ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [" 7 ", 7, 7.0, "7"])
def test_rule_34_ids_are_compared_as_on_spans(name: Any) -> None:
    (session,) = judged(order(1, T0, "7"), [outcome("e", END + HOUR, data=OK, session_id=name)], conversation="7")
    assert session.completion.value == "complete"


@pytest.mark.parametrize("value", ["8", 8, 8.0])
def test_rule_34_values_of_keys_are_text_whatever_they_were(value: Any) -> None:
    spans = order(1, T0, keys={"order": (8,)})
    (session,) = judged(spans, [outcome("e", END + HOUR, data=OK, correlation={"order": value})])
    assert session.completion.value == "complete"


def test_rule_34_a_pseudo_conversation_is_an_address_of_its_trace_wherever_that_goes() -> None:
    told = outcome("e", END + HOUR, "resolution", data={"confirmed": True}, session_id=f"trace:{trace_id(1)}")
    alone = arrived(*trace(1, T0, None), told).verdicts()
    assert [(one.conversation, one.confirmed) for one in alone.values()] == [(f"trace:{trace_id(1)}", True)]
    (known,) = judged(order(), [told])
    assert known.confirmed is True


def test_rule_34_what_we_print_is_never_parsed() -> None:
    pipeline = run(order(), [outcome("e", END + HOUR, data=OK, session_id="c#1")])
    assert pipeline.waiting() == 1
    assert [one.completion.value for one in pipeline.verdicts().values()] == ["incomplete"]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param({}, "exactly one of", id="none"),
        pytest.param({"session_id": "c", "trace_id": trace_id(1)}, "exactly one of", id="two"),
        pytest.param({"correlation": {"order": "k", "parcel": 7}}, "exactly one correlation key", id="two keys"),
        pytest.param({"trace_id": trace_id(1), "ordinal": 1}, "ordinal goes with", id="an ordinal of a trace"),
    ],
)
def test_rule_34_an_event_with_another_address_than_one_is_refused_with_the_reason(
    address: dict[str, Any], why: str
) -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}))
    line.outcome("e", END + HOUR, "reopen", **address).outcome("f", END + HOUR, "reopen", session_id="c")
    (letter,) = line.until(END + 60 * HOUR).letters()
    assert why in letter.detail
    assert line.only()["reopened"] is True
