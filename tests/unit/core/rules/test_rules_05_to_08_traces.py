"""Where traces without an id lead, what is work, what is a run, and how many spans count (RULES.md 5 to 8)."""

from __future__ import annotations

import pytest

from pipeline.core.resolving.leads import LONGEST_CHAIN, Way, candidates, way_of
from pipeline.core.timeline import HOUR, MINUTE, SECOND, TimeRules, to_text
from schemas.span import Answer
from tests.builders import T0, outcome, span, trace, trace_id
from tests.oracle.model import OSpan
from tests.unit.core.judged import arrived, judged, run
from tests.unit.core.line import CHAT, Line, sent, turn

END = T0 + 10 * SECOND
GAP = 30 * MINUTE


def linked(number: int, start: int, *to: int, name: str | None = None) -> list[OSpan]:
    """A run that links to other traces."""
    return trace(number, start, name, links=tuple(trace_id(one) for one in to))


def answer(number: int, length: int = 0, own_id: bool = False) -> Answer:
    """What trace `number` says of its way: it starts at `number`, and `length` steps on the chain ends."""
    way = (number, number.to_bytes(16, "big"))
    return Answer("default", b"", b"", "", way[1], 1, number, own_id, "c", b"end", length, way)


# -- 5: traces without an id -------------------------------------------------------------------------------------------


def test_rule_05_a_trace_without_an_id_belongs_to_what_its_chain_leads_to() -> None:
    spans = [*trace(1, T0), *linked(2, END + 1, 1), *linked(3, END + 12 * SECOND, 2)]
    (only,) = judged(spans)
    assert (len(only.trace_ids), only.runs, only.attributed) == (3, 1, True)


def test_rule_05_a_chain_without_an_id_is_named_by_its_end_and_not_attributed() -> None:
    (key,) = run([*linked(2, T0 + 1, 1), *trace(1, T0, None)]).verdicts()
    assert key == ("default", f"trace:{trace_id(1)}", 1)


def test_rule_05_a_circle_ends_at_its_earliest_trace() -> None:
    spans = [*linked(1, T0 + 1, 2), *linked(2, T0, 3), *linked(3, T0 + 2, 1), *linked(4, T0 - 1, 1)]
    (key,) = run(spans).verdicts()
    assert key == ("default", f"trace:{trace_id(2)}", 1)


def test_rule_05_a_linked_trace_with_an_id_goes_before_an_earlier_one_without() -> None:
    assert len(judged([*trace(1, T0, None), *trace(2, T0 + 1), *linked(3, END, 1, 2)])[0].trace_ids) == 2


def test_rule_05_a_trace_with_an_id_pulls_in_nobody() -> None:
    spans = [*linked(1, T0, 2, name="c"), *trace(2, T0 + 1, None)]
    assert judged(spans)[0].trace_ids == (trace_id(1),)


def test_rule_05_the_eight_smallest_trace_ids_are_looked_at_seen_or_not() -> None:
    me = (99).to_bytes(16, "big")
    for number, found in ((8, 1), (9, 0)):
        links = {one.to_bytes(16, "big") for one in range(1, number + 1)}
        seen = {number.to_bytes(16, "big"): answer(number, own_id=True)}
        assert len(candidates(me, 0, links, seen, {})) == found


@pytest.mark.parametrize(("unseen", "conversation"), [(7, "c"), (8, f"trace:{trace_id(99)}")])
def test_rule_05_the_ninth_of_a_trace_s_links_leads_nowhere(unseen: int, conversation: str) -> None:
    spans = [*trace(9, T0), *linked(99, END + 1, *range(1, unseen + 1), 9)]
    found = {name: one for (_, name, _), one in run(spans).verdicts().items()}
    assert trace_id(99) in found[conversation].trace_ids


def test_rule_05_a_chain_ends_at_its_end_up_to_ten_thousand_traces_and_at_its_earliest_beyond() -> None:
    me = b"\xff" * 16
    assert way_of(me, 9, "", [answer(5, LONGEST_CHAIN - 2)]) == Way(
        "c", b"end", LONGEST_CHAIN - 1, (5, b"\0" * 15 + b"\5")
    )
    longer = way_of(me, 9, "", [answer(5, LONGEST_CHAIN - 1)])
    assert longer.conversation == f"trace:{5:032x}"


def test_rule_05_a_link_that_comes_later_moves_all_that_led_here_outcomes_included() -> None:
    first, second = trace(1, T0 - MINUTE, "c"), linked(3, T0 + MINUTE, 2)
    told = outcome("e", END + HOUR, "escalation", data={"state": "accepted"}, trace_id=trace_id(3))
    late = span(2, 209, END, END + HOUR, "step", 200, links=(trace_id(1),))
    pipeline = arrived(*first, *trace(2, T0, None), *second, told, late)
    assert list(pipeline.verdicts()) == [("default", "c", 1)]
    assert pipeline.verdicts()["default", "c", 1].escalated
    gone = pipeline.documents()[f"default\0trace:{trace_id(2)}\x001".encode()]
    assert [one["deleted"] for one in gone][-1]


# -- 6: work -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sessions"),
    [("agent", 1), ("tool", 1), ("handoff", 1), ("inference", 1), ("embedding", 1), ("guardrail", 0), ("step", 0)],
)
def test_rule_06_agents_tools_hand_offs_and_models_work_and_nothing_else_does(kind: str, sessions: int) -> None:
    assert len(judged([*trace(2, T0, "d"), span(1, 1, T0, END, kind, id="c")])) == sessions


def test_rule_06_a_traces_time_is_that_of_its_work() -> None:
    spans = [*trace(1, T0), span(1, 99, T0 - HOUR, END + HOUR, "step", id="c", claim="completed")]
    (only,) = judged(spans)
    assert (only.start, only.end, only.claim) == (T0, END, "completed")


# -- 7: runs and turns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "runs"), [(0, 1), (1, 2)], ids=["at the gap", "one ns later"])
def test_rule_07_what_leads_to_a_trace_is_its_run_up_to_the_session_gap(late: int, runs: int) -> None:
    (only,) = judged([*trace(1, T0, family=("order",)), *linked(2, END + GAP + late, 1)])
    assert (only.runs, only.turns) == (runs, runs)


@pytest.mark.parametrize(("start", "session"), [(-1, 0), (0, 1)], ids=["one ns before", "at the same instant"])
def test_rule_07_a_trace_without_work_goes_with_the_run_begun_last_before_it(start: int, session: int) -> None:
    second = END + 3 * HOUR
    idle = span(3, 301, second + start, second + start, "step", links=(trace_id(1),), issues=("i",))
    sessions = judged([*trace(1, T0), *linked(2, second, 1), idle])
    assert [one.issues for one in sessions] == [("i",) if index == session else () for index in range(2)]


# -- 8: the limit of a trace -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "left_out"), [(4, 0), (5, 1), (7, 3)], ids=["at the limit", "one more", "three more"]
)
def test_rule_08_of_a_trace_the_spans_that_start_first_count_up_to_the_limit(spans: int, left_out: int) -> None:
    line = Line(TimeRules(max_spans_per_trace=4)).spans(*turn(1, T0, {"session.id": "c"}))
    for number in range(2, spans):
        line.spans(sent(1, 100 + number, T0 + number, END + number, CHAT, 100))
    found = line.until(END + HOUR).only()
    assert found["end"] == to_text(END + min(spans, 4) - 1)
    assert found["flags"] == (["truncated"] if left_out else [])
    assert line.counted("noted", "truncated") == left_out
    assert sum(not row["is_deleted"] for row in line.rows("agent_steps")) == 4


def test_rule_08_of_spans_that_start_together_those_with_the_smaller_ids_count() -> None:
    line = Line(TimeRules(max_spans_per_trace=2)).spans(*turn(1, T0, {"session.id": "c"}))
    line.spans(sent(1, 99, T0, END + MINUTE, CHAT, 100))
    assert line.until(END + HOUR).only()["end"] == to_text(END + MINUTE)
    assert line.counted("noted", "truncated") == 1
