"""Where sessions begin and end, and what happens when they are cut anew (RULES.md 9 to 14).

The limits of rules 9 to 13 have their cases in `test_sessions.py`; here are the ones that need several things at once.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from schemas.verdict import Verdict
from tests.builders import T0, span, trace, trace_id
from tests.oracle.model import OSpan
from tests.property.driver import Pipeline
from tests.unit.core.judged import arrived, judged

END = T0 + 10 * SECOND


def order(number: int = 1, start: int = T0, **more: Any) -> list[OSpan]:
    """Ten seconds of the family `order` (resume window 1 h, wait window 6 h, closing grace 10 min)."""
    return trace(number, start, family=("order",), **more)


def sessions(pipeline: Pipeline) -> list[Verdict]:
    return [verdict for _, verdict in sorted(pipeline.verdicts().items())]


def cut(spans: list[OSpan]) -> list[int]:
    """How many traces each session has."""
    return [len(one.trace_ids) for one in judged(spans)]


# -- 9: another family -------------------------------------------------------------------------------------------------


def test_rule_09_an_inherited_family_does_not_cut_and_gives_way_to_the_stated_one() -> None:
    spans = [*order(), *trace(2, END + 2 * HOUR), *trace(3, END + 2 * HOUR + MINUTE, family=("search",))]
    assert [one.family for one in judged(spans)] == ["order", "search"]


def test_rule_09_a_family_that_is_derived_only_does_not_cut() -> None:
    assert cut([*order(), *trace(2, END + MINUTE, tool="search")]) == [2]


# -- 10: what waits ----------------------------------------------------------------------------------------------------


def test_rule_10_a_claim_ends_the_wait() -> None:
    stopped = span(1, 103, END - SECOND, END, "tool", 100, tool="ask_customer", interrupted=True)
    assert cut([*order(claim="failed"), stopped, *trace(2, END + 2 * HOUR)]) == [1, 1]


def test_rule_10_without_a_model_span_nothing_is_resumed() -> None:
    first = [
        span(1, 100, T0, END, "agent", id="c", family=("order",)),
        span(1, 101, T0, END, "tool", 100, tool="lookup"),
    ]
    second = [span(2, 200, END + 2 * HOUR, END + 2 * HOUR, "tool", tool="lookup", id="c")]
    assert cut([*first, *second]) == [1, 1]
    model = span(2, 201, END + 2 * HOUR + 1, END + 3 * HOUR, "inference")
    assert cut([*first, *second, model]) == [2]


def test_rule_10_a_session_that_waits_again_and_again_lasts_for_days() -> None:
    spans: list[OSpan] = []
    for number in range(1, 15):
        start = T0 + number * 6 * HOUR
        asks = span(
            number,
            number * 100 + 3,
            start,
            start + 10 * SECOND,
            "tool",
            number * 100,
            tool="ask_customer",
            interrupted=True,
        )
        spans += [*order(number, start, finish="tool_calls"), asks]
    (only,) = judged(spans)
    assert (only.runs, only.turns, only.end - only.start) == (14, 1, 13 * 6 * HOUR + 10 * SECOND)


# -- 11: after a claim -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [{"keys": {"order": ("k",)}}, {"issues": ("i",)}, {"family": ("order",)}, {"claim": "completed"}],
    ids=["a key", "an issue", "a family", "a claim"],
)
def test_rule_11_what_states_something_is_no_mere_thanks(said: dict[str, Any]) -> None:
    assert cut([*order(claim="completed"), *trace(2, END + 10 * MINUTE + 1, **said)]) == [1, 1]


def test_rule_11_the_grace_runs_from_the_end_of_the_span_that_claimed() -> None:
    early = span(1, 109, T0, T0 + SECOND, "step", 100, claim="completed")
    limit = T0 + SECOND + 10 * MINUTE
    assert cut([*order(), early, *trace(2, limit, tool="lookup")]) == [2]
    assert cut([*order(), early, *trace(2, limit + 1, tool="lookup")]) == [1, 1]


# -- 12: quiet ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "found"), [(0, [2]), (1, [1, 1])], ids=["at the gap", "one ns later"])
def test_rule_12_the_session_gap_holds_where_the_resume_window_is_shorter(late: int, found: list[int]) -> None:
    first = trace(1, T0, family=("search",))  # resume window 10 min, session gap 30 min
    assert cut([*first, *trace(2, END + 30 * MINUTE + late)]) == found


def test_rule_12_quiet_is_counted_from_the_sessions_latest_end() -> None:
    long = span(1, 105, T0, END + HOUR, "inference", 100, finish_reasons=("stop",))
    assert cut([*order(), long, *trace(2, T0 + MINUTE), *trace(3, END + 2 * HOUR)]) == [3]


# -- 13: the family ----------------------------------------------------------------------------------------------------


def test_rule_13_a_stated_family_without_a_contract_keeps_its_name() -> None:
    (only,) = judged(trace(1, T0, family=("gardening",)))
    assert (only.family, only.family_source, only.contract, only.eligible) == ("gardening", "stated", "", False)


def test_rule_13_of_an_array_the_first_and_of_a_run_the_earliest_trace_is_meant() -> None:
    late = trace(2, T0 + SECOND, None, family=("ask",), links=(trace_id(1),))
    (only,) = judged([*trace(1, T0, family=("search", "order")), *late])
    assert only.family == "search"


# -- 14: cut anew ------------------------------------------------------------------------------------------------------


def test_rule_14_a_claim_that_comes_late_cuts_one_session_in_two() -> None:
    work = [*order(), *order(2, END + 20 * MINUTE, tool="place_order")]
    claim = span(1, 109, END, END, "step", 100, claim="completed")
    pipeline = arrived(*work, claim)
    assert [(one.ordinal, one.trace_ids) for one in sessions(pipeline)] == [(1, (trace_id(1),)), (2, (trace_id(2),))]
    assert sessions(pipeline)[0].reopened


def test_rule_14_an_earlier_first_span_joins_two_sessions_and_withdraws_the_second() -> None:
    first, second = order(), order(2, END + 90 * MINUTE)
    between = span(1, 105, END, END + 45 * MINUTE, "tool", 100, tool="lookup")
    pipeline = arrived(*first, *second, between)
    assert [one.runs for one in sessions(pipeline)] == [2]
    *_, before, gone = pipeline.documents()[b"default\0c\x002"]
    assert (gone["deleted"], gone["revision"]) == (True, before["revision"] + 1)
    assert "cut anew" in gone["reason"]


def test_rule_14_an_earlier_session_renumbers_those_behind_it() -> None:
    late = order(1, T0 - 5 * HOUR, tool="place_order")
    pipeline = arrived(*order(2, T0), *order(3, END + 5 * HOUR), *late)
    assert [one.trace_ids for one in sessions(pipeline)] == [(trace_id(number),) for number in (1, 2, 3)]
    told = pipeline.told()
    assert [told["default", "c", ordinal]["trace_ids"] for ordinal in (1, 2, 3)] == [[trace_id(n)] for n in (1, 2, 3)]


def test_rule_14_a_family_that_comes_late_cuts_and_the_rows_follow() -> None:
    said = span(2, 209, END + MINUTE, END + MINUTE, "step", 200, family=("search",))
    pipeline = arrived(*order(), *trace(2, END + MINUTE), said)
    assert [one.family for one in sessions(pipeline)] == ["order", "search"]
    rows = pipeline.rows("verdicts", "tenant", "conversation", "ordinal")
    assert sorted((row["ordinal"], row["family"]) for row in rows) == [(1, "order"), (2, "search")]
