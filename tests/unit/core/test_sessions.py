"""Where sessions begin and end (RULES.md 9 to 13), at each limit and one nanosecond beyond."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from tests.builders import T0, session, span, trace
from tests.oracle.model import OSpan
from tests.unit.core.judged import judged

END = T0 + 10 * SECOND
"""Of the first trace of every case."""


def order(**more: Any) -> list[OSpan]:
    """The first trace: ten seconds that state the family `order` (resume window 1 h, wait window 6 h, grace 10 min)."""
    return trace(1, T0, family=("order",), **more)


def waiting() -> list[OSpan]:
    """The first trace, which ends with a question to the customer."""
    stopped = span(1, 103, END - SECOND, END, "tool", 100, tool="ask_customer", interrupted=True)
    return [*order(), stopped]


def cut(spans: list[OSpan]) -> list[int]:
    """How many traces each session has."""
    return [len(one.trace_ids) for one in judged(spans)]


def test_rule_09_a_run_that_states_another_family_begins_the_next_session() -> None:
    assert cut([*order(), *trace(2, END + 1, family=("search",))]) == [1, 1]


def test_rule_09_a_run_that_states_the_same_family_stays() -> None:
    assert cut([*order(), *trace(2, END + 1, family=("order",))]) == [2]


def test_rule_09_a_derived_family_is_cut_by_a_stated_one() -> None:
    assert cut([*trace(1, T0, tool="search"), *trace(2, END + 1, family=("order",))]) == [1, 1]


def test_rule_09_a_session_without_family_takes_the_stated_one_over() -> None:
    (only,) = judged([*trace(1, T0), *trace(2, END + 1, family=("order",))])
    assert (only.family, only.family_source, only.contract) == ("order", "stated", "order@1")


def test_rule_13_the_family_nearest_the_root_is_the_traces() -> None:
    spans = trace(1, T0, family=("order", "search"))
    inner = span(1, 109, T0, T0 + 1, "tool", 101, family=("search",))
    assert judged([*spans, inner])[0].family == "order"


@pytest.mark.parametrize(("late", "sessions"), [(0, [2]), (1, [1, 1])], ids=["at the limit", "one ns later"])
class TestLimits:
    def test_rule_12_quiet_for_the_resume_window(self, late: int, sessions: list[int]) -> None:
        assert cut([*order(), *trace(2, END + HOUR + late)]) == sessions

    def test_rule_10_an_answer_is_awaited_for_the_wait_window(self, late: int, sessions: list[int]) -> None:
        assert cut([*waiting(), *trace(2, END + 6 * HOUR + late)]) == sessions

    def test_rule_10_a_tool_call_resumes_what_did_not_end_in_an_answer(self, late: int, sessions: list[int]) -> None:
        first = order(finish="length")
        assert cut([*first, *trace(2, END + 6 * HOUR + late, tool="lookup")]) == sessions

    def test_rule_11_work_after_a_claim_belongs_to_it_for_the_closing_grace(
        self, late: int, sessions: list[int]
    ) -> None:
        assert cut([*order(claim="completed"), *trace(2, END + 10 * MINUTE + late, tool="lookup")]) == sessions

    def test_rule_11_thanks_after_a_claim_belong_to_it_for_the_resume_window(
        self, late: int, sessions: list[int]
    ) -> None:
        assert cut([*order(claim="completed"), *trace(2, END + HOUR + late)]) == sessions

    def test_rule_13_a_family_is_inherited_within_the_reopen_window(self, late: int, sessions: list[int]) -> None:
        second = judged([*order(), *trace(2, END + 48 * HOUR + late)])[1]
        assert (second.family, second.family_source) == (("", "no_contract") if late else ("order", "inherited"))
        assert not second.eligible
        assert len(sessions) == 1 + late


def test_rule_07_runs_a_minute_apart_are_turns_of_one_session() -> None:
    (only,) = judged(session(1, T0, turns=3, family=("order",)))
    assert (only.runs, only.turns, only.family) == (3, 3, "order")


def test_rule_10_a_run_that_resumes_is_no_new_turn() -> None:
    (resumed,) = judged([*waiting(), *trace(2, END + HOUR)])
    assert (resumed.runs, resumed.turns) == (2, 1)


def test_rule_17_an_interrupt_waits_no_more_when_a_leaf_starts_after_it() -> None:
    after = span(1, 104, END + 1, END + 1, "inference", 100, finish_reasons=("length",))
    assert cut([*waiting(), after, *trace(2, END + 2 * HOUR)]) == [1, 1]


def test_rule_17_what_was_asked_for_and_not_begun_waits_for_a_person() -> None:
    asking = span(1, 104, END, END, "inference", 100, finish_reasons=("tool_calls",), asked_tools=2)
    (only,) = judged([*order(), asking])
    assert only.terminal_reason == "timed_out"


def test_rule_17_a_finish_reason_alone_does_not_say_that_a_call_is_open() -> None:
    assert judged(order(finish="tool_calls"))[0].terminal_reason == "completed"


def test_rule_13_several_families_that_could_be_meant_are_none() -> None:
    spans = trace(1, T0, tool="search")
    spans.append(span(1, 105, T0, T0, "tool", 100, tool="lookup"))
    (only,) = judged(spans)
    assert (only.family, only.family_source, only.eligible) == ("", "ambiguous_contract", False)


def test_rule_31_the_version_in_force_at_the_start_judges() -> None:
    later = T0 + 3 * HOUR
    assert [judged(trace(1, start, family=("order",)))[0].contract for start in (later - 1, later)] == [
        "order@1",
        "order@2",
    ]


def test_rule_06_a_trace_without_work_belongs_to_no_session() -> None:
    idle = span(2, 200, T0, T0, "step", id="c", claim="failed", state={"told": True})
    (only,) = judged([*order(), idle])
    assert (only.claim, len(only.trace_ids)) == ("", 1)


def test_rule_04_the_id_nearest_the_root_is_the_traces() -> None:
    spans = trace(1, T0, conversation="c")
    spans[1] = span(1, 102, T0, END, "inference", 100, id="other")
    assert len(judged(spans)) == 1
    assert judged(spans, conversation="other") == []
