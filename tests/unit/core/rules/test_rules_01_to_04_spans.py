"""Which copy of a span holds, whose it is, when it was, and which conversation its trace names (RULES.md 1 to 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.timeline import MINUTE, SECOND, to_text
from tests.builders import T0, span, trace
from tests.oracle.model import OSpan
from tests.unit.core.judged import arrived, judged, run
from tests.unit.core.line import ORDER, Line, sent, turn

END = T0 + 10 * SECOND
SKEW = 5 * MINUTE


# -- 1: copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param({"conversation_ids": ((0, "c"),)}, {"end": END + 9, "attribute_count": 9}, id="one with an id"),
        pytest.param({"end": END + 1}, {"attribute_count": 9}, id="the later end, by a nanosecond"),
        pytest.param({"attribute_count": 2}, {"attribute_count": 1}, id="more attributes"),
    ],
)
@pytest.mark.parametrize("turned", [False, True], ids=["it comes first", "it comes last"])
def test_rule_01_of_unequal_copies_the_better_holds(
    better: dict[str, Any], worse: dict[str, Any], turned: bool
) -> None:
    call = span(1, 104, T0, END, "tool", 100, tool="lookup")
    copies = [replace(call, **better), replace(call, **{"failed": True, **worse})]
    (only,) = arrived(*trace(1, T0), *(reversed(copies) if turned else copies)).verdicts().values()
    assert (only.tool_calls, only.tool_calls_ok) == (1, 1)


@pytest.mark.parametrize("turned", [False, True])
def test_rule_01_of_copies_that_needed_the_records_time_the_earliest_holds(turned: bool) -> None:
    times = [T0 + MINUTE, T0 + 2 * MINUTE]
    line = Line()
    for time in reversed(times) if turned else times:
        line.spans(sent(1, 1, 0, 0, {**ORDER, "session.id": "c"}), record_time=time)
    assert line.until(T0 + 10 * MINUTE).only()["start"] == to_text(times[0])


def test_rule_01_a_copy_whose_times_needed_no_record_holds_over_one_that_did() -> None:
    line = Line()
    line.spans(sent(1, 1, 0, 0, {**ORDER, "session.id": "c"}), record_time=T0)
    line.spans(sent(1, 1, T0 + 1, END, {**ORDER, "session.id": "c"}), record_time=END)
    found = line.until(T0 + 10 * MINUTE).only()
    assert (found["end"], found["flags"]) == (to_text(END), [])


def test_rule_01_the_same_span_in_another_tenant_is_another_span() -> None:
    spans = trace(1, T0)
    pipeline = run([*spans, *(replace(one, tenant="other") for one in spans)])
    assert {tenant for tenant, _, _ in pipeline.verdicts()} == {"default", "other"}
    assert pipeline.dropped() == 0


# -- 2: tenants --------------------------------------------------------------------------------------------------------


def test_rule_02_tenants_share_no_conversation() -> None:
    pipeline = run([*trace(1, T0), *(replace(one, tenant="other") for one in trace(2, END))])
    assert [one.runs for one in pipeline.verdicts().values()] == [1, 1]


def test_rule_02_the_resources_own_word_goes_before_the_configured_attribute() -> None:
    line = Line(tenant_from="team")
    line.spans(*turn(1, T0, {"session.id": "c"}), resource={"team": "blue", "trueup.tenant": "acme"})
    line.spans(*turn(2, T0, {"session.id": "c"}), resource={"team": "blue"})
    line.spans(*turn(3, T0, {"session.id": "c"}))
    assert sorted(one["tenant"] for one in line.until(T0 + SKEW).sessions()) == ["acme", "blue", "default"]


# -- 3: times ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "end", "flags"),
    [
        pytest.param(SKEW, END + SKEW, [], id="by all that is allowed"),
        pytest.param(SKEW + 1, END, ["clamped", "record_time"], id="one ns more"),
    ],
)
def test_rule_03_a_clock_may_run_ahead_by_the_skew(ahead: int, end: int, flags: list[str]) -> None:
    line = Line().spans(sent(1, 1, T0, END + ahead, {**ORDER, "session.id": "c"}), record_time=END)
    found = line.until(END + SKEW).only()
    assert (found["start"], found["end"], found["flags"]) == (to_text(T0), to_text(end), flags)


def test_rule_03_a_clamped_span_ends_its_trace_no_later_than_its_sound_work() -> None:
    late = END + 4 * MINUTE
    line = Line().spans(*turn(1, T0, {"session.id": "c"}))
    line.spans(sent(1, 199, T0, late + 9 * MINUTE, {"gen_ai.operation.name": "chat"}, 100), record_time=late)
    assert line.until(late).only()["end"] == to_text(END)


def test_rule_03_a_start_of_zero_is_the_records_time_and_its_sound_end_counts() -> None:
    line = Line().spans(*turn(1, T0, {"session.id": "c"}))
    line.spans(sent(1, 199, 0, END + MINUTE, {"gen_ai.operation.name": "chat"}, 100), record_time=END)
    found = line.until(END + MINUTE).only()
    assert (found["end"], found["flags"]) == (to_text(END + MINUTE), ["record_time"])


def test_rule_03_an_end_before_its_start_is_no_duration_and_flagged() -> None:
    line = Line().spans(sent(1, 1, END, T0, {**ORDER, "session.id": "c"}), record_time=END)
    found = line.until(END).only()
    assert (found["start"], found["end"], found["flags"]) == (to_text(END), to_text(END), ["negative_duration"])
    assert line.counted("noted", "negative_duration") == 1


# -- 4: conversation ids -----------------------------------------------------------------------------------------------


def test_rule_04_a_true_root_goes_before_a_span_whose_parent_is_unknown() -> None:
    orphan = span(1, 90, T0 - 1, END, "tool", 9_999, tool="lookup", id="other")
    assert len(judged([*trace(1, T0), orphan])) == 1


def test_rule_04_of_equally_near_ones_the_earlier_start_then_the_smaller_id_holds() -> None:
    spans = [span(1, 100, T0, END, "agent"), span(1, 101, T0, END, "tool", 100, tool="a", id="later id")]
    assert len(judged([*spans, span(1, 99, T0, END, "tool", 100, tool="b", id="c")])) == 1
    assert judged([*spans, span(1, 99, T0 + 1, END, "tool", 100, tool="b", id="c")]) == []


@pytest.mark.parametrize("first", [0, 1, 2])
def test_rule_04_what_hangs_below_a_circle_of_parents_is_further_from_the_root_than_the_circle(first: int) -> None:
    circle = [
        span(1, 101, T0 + 5, END, "tool", 102, tool="a", id="c"),
        span(1, 102, T0 + 6, END, "tool", 101, tool="b"),
        span(1, 103, T0, END, "tool", 101, tool="c", id="other"),
    ]
    turned: list[OSpan] = [*circle[first:], *circle[:first]]
    ((_, conversation, _),) = arrived(*turned).verdicts()
    assert conversation == "c"


def test_rule_04_each_other_id_of_a_trace_is_a_conflict_once_and_the_session_says_so() -> None:
    line = Line().spans(*turn(1, T0, {"session.id": "c"}))
    for number, name in ((150, "d"), (151, "d"), (152, "e")):
        line.spans(sent(1, number, T0, END, {"session.id": name}, 100))
    found = line.until(END + SKEW).only()
    assert (found["conversation"], found["flags"]) == ("c", ["conflicting_ids"])
    assert line.counted("noted", "id_conflict") == 2


def test_rule_04_numbers_and_text_are_one_id_and_a_missing_one_is_none() -> None:
    line = Line()
    for number, given in enumerate((123, 123.0, "123", " 123 "), start=1):
        line.spans(*turn(number, T0 + number * MINUTE, {"session.id": given}))
    line.spans(*turn(5, T0, {"session.id": "undefined"}))
    names = [one["conversation"] for one in line.until(T0 + 30 * MINUTE).sessions()]
    assert names == ["123", f"trace:{5:032x}"]
