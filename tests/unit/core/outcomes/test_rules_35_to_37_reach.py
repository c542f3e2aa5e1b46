"""Whom an outcome reaches, by conversation, trace or business key, and what becomes of one that reaches nobody
(RULES.md 35 to 37)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.correlating.keys import MOST_TRACES
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from schemas.topics import Stage
from schemas.verdict import Verdict
from tests.builders import T0, outcome, span, trace, trace_id
from tests.oracle.model import OOutcome, OSpan
from tests.property.driver import Pipeline
from tests.unit.core.judged import arrived, run, together
from tests.unit.core.line import ORDER, Line, turn

END = T0 + 10 * SECOND
SKEW = 5 * MINUTE
RETENTION = TimeRules().retention
ACCEPTED = {"state": "accepted"}


def order(number: int, start: int = T0, conversation: str | None = "c", **more: Any) -> list[OSpan]:
    return trace(number, start, conversation, tool="place_order", family=("order",), **more)


def said(kind: str, time: int, event_id: str = "e", **more: Any) -> OOutcome:
    return outcome(event_id, time, kind, data={"settled": True} if kind == "evidence" else ACCEPTED, **more)


def has_it(one: Verdict) -> bool:
    return one.escalated or "settled" in one.evidence


def reached(pipeline: Pipeline) -> list[tuple[str, int]]:
    return [(name, ordinal) for (_, name, ordinal), one in sorted(pipeline.verdicts().items()) if has_it(one)]


# -- 35: by conversation and by trace ----------------------------------------------------------------------------------

SECOND_START = T0 + 10 * HOUR
TWO = [*order(1), *order(2, SECOND_START)]


@pytest.mark.parametrize(
    ("time", "address", "expected"),
    [
        pytest.param(END, {}, [("c", 1)], id="the last begun by then"),
        pytest.param(SECOND_START - SKEW - 1, {}, [("c", 1)], id="not one that begins later than the skew"),
        pytest.param(SECOND_START - SKEW, {}, [("c", 2)], id="one that begins within the skew"),
        pytest.param(T0 - SKEW, {}, [("c", 1)], id="the first, told before it began"),
        pytest.param(T0 - SKEW - 1, {}, [], id="nobody had begun"),
        pytest.param(END, {"session_id": "c", "ordinal": 2}, [("c", 2)], id="an ordinal, whenever it was"),
        pytest.param(END, {"session_id": "c", "ordinal": 3}, [], id="an ordinal that is not there"),
        pytest.param(END, {"trace_id": trace_id(2)}, [("c", 2)], id="a trace, whenever it was"),
        pytest.param(SECOND_START, {"trace_id": trace_id(1)}, [("c", 1)], id="a trace of an earlier session"),
        pytest.param(END, {"trace_id": trace_id(7)}, [], id="a trace that never came"),
    ],
)
@pytest.mark.parametrize("kind", ["evidence", "escalation"])
def test_rule_35_a_conversation_its_ordinal_and_a_trace(
    kind: str, time: int, address: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert reached(run(TWO, [said(kind, time, **address)])) == expected


def test_rule_35_a_trace_takes_its_outcomes_along_when_it_goes_elsewhere() -> None:
    named = span(1, 190, T0, END, "step", 100, conversation_ids=((0, "d"),))
    early = [replace(one, conversation_ids=()) for one in order(1)]
    told = said("escalation", END + 20 * MINUTE, trace_id=trace_id(1))
    other = order(9, T0 + HOUR, "e")  # event time goes past the wait for an id
    assert reached(arrived(*early, told, *other, named)) == [("d", 1)]


def test_rule_35_an_outcome_of_a_conversation_follows_a_session_that_is_cut_anew() -> None:
    told = said("escalation", SECOND_START + HOUR, session_id="c")
    between = order(3, T0 + 5 * HOUR)
    assert reached(arrived(*TWO, told, *between)) == [("c", 3)]


# -- 36: by key --------------------------------------------------------------------------------------------------------

KEYED = [
    *order(1, T0, "a", keys={"order": (7,)}),
    *order(2, T0 + 10 * HOUR, "a", keys={"order": ("7",)}),
    *order(3, T0 + 20 * HOUR, "b", keys={"order": ("8", "7"), "ticket": ("t",)}),
    *order(4, T0 + 30 * HOUR, "a", keys={"order": ("9",)}),
]


@pytest.mark.parametrize(
    ("time", "keys", "expected"),
    [
        pytest.param(END, {"order": "7"}, [("a", 1)], id="begun by then"),
        pytest.param(T0 + 10 * HOUR - SKEW, {"order": 7}, [("a", 1), ("a", 2)], id="within the skew"),
        pytest.param(T0 + 10 * HOUR - SKEW - 1, {"order": 7}, [("a", 1)], id="and not past it"),
        pytest.param(T0 + 21 * HOUR, {"order": 7.0}, [("a", 1), ("a", 2), ("b", 1)], id="every session"),
        pytest.param(T0 + 31 * HOUR, {"order": "9", "ticket": "t"}, [("a", 3), ("b", 1)], id="any of the keys"),
        pytest.param(T0 + 31 * HOUR, {"order": "none"}, [], id="a key that nobody states"),
        pytest.param(T0 - SKEW - 1, {"order": "7"}, [], id="before all of them"),
    ],
)
def test_rule_36_evidence_goes_to_every_session_that_acted_on_any_of_the_keys(
    time: int, keys: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    reaching = said("evidence", time, correlation=keys)
    pipeline = run(KEYED, [reaching])
    rows = {(row["conversation"], row["via"]) for row in pipeline.rows("outcomes", "conversation", "via")}
    assert {name for name, _ in expected} <= {name for name, _ in rows}
    within = [one for one in expected if time <= pipeline.verdicts()["default", *one].end + 24 * HOUR]
    assert [one for one in reached(pipeline) if one in within] == within
    assert not set(reached(pipeline)) - set(expected)


@pytest.mark.parametrize("turned", [False, True], ids=["spans first", "outcomes first"])
def test_rule_36_each_session_judges_evidence_within_its_own_deadline(turned: bool) -> None:
    paid = [outcome("e", T0 + 23 * HOUR, data={"settled": True, "score": 3}, correlation={"order": "7"})]
    first, second = (KEYED, paid) if not turned else (paid, KEYED)
    verdicts = arrived(*first, *second).verdicts()
    completions = {(name, ordinal): one.completion.value for (_, name, ordinal), one in verdicts.items()}
    assert completions["a", 1] == "complete"  # within a day of its end
    assert completions["a", 2] == "incomplete"  # by the version in force then it has half a day
    assert completions["b", 1] == "complete"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param(T0 + 15 * HOUR, [("a", 2)], id="the latest that had begun"),
        pytest.param(T0 + 20 * HOUR - SKEW - 1, [("a", 2)], id="just before the next"),
        pytest.param(T0 + 20 * HOUR - SKEW, [("b", 1)], id="the next, of another conversation"),
        pytest.param(T0 - SKEW, [("a", 1)], id="the first, told before it began"),
        pytest.param(T0 - SKEW - 1, [], id="none begun: the earliest's conversation, where none has begun"),
    ],
)
def test_rule_36_another_kind_goes_to_one_session(time: int, expected: list[tuple[str, int]]) -> None:
    pipeline = run(KEYED, [said("escalation", time, correlation={"order": "7"})])
    assert reached(pipeline) == expected
    assert pipeline.waiting() == (not expected)


@pytest.mark.parametrize("kind", ["evidence", "escalation"])
def test_rule_36_a_session_begun_by_then_has_it_though_its_trace_states_the_key_later(kind: str) -> None:
    spans = [*order(1), *order(2, T0 + 50 * MINUTE, keys={"order": ("7",)})]
    pipeline = run(spans, [said(kind, END, correlation={"order": "7"})])
    assert reached(pipeline) == [("c", 1)]
    assert pipeline.waiting() == 0


def test_rule_36_a_trace_without_work_states_nothing() -> None:
    idle = [span(5, 500, T0 + HOUR, T0 + HOUR, "step", keys={"order": ("7",)}, id="b")]
    spans = [*order(1, T0, "a", keys={"order": ("7",)}), *idle]
    assert reached(run(spans, [said("escalation", T0 + 2 * HOUR, correlation={"order": "7"})])) == [("a", 1)]


SHOP = {"shop": ("1",)}


def crowd(traces: int, start: int = T0) -> list[OSpan]:
    """Traces that state one key, two in each conversation."""
    made = (order(n, start, f"c{n // 2:03}", keys=SHOP) for n in range(1, traces + 1))
    return [one for each in made for one in each]


@pytest.mark.parametrize("turned", [False, True], ids=["spans first", "outcome first"])
@pytest.mark.parametrize(("traces", "too_broad"), [(MOST_TRACES, False), (MOST_TRACES + 1, True)])
def test_rule_36_a_key_that_more_than_two_hundred_traces_state_is_left_out(
    traces: int, too_broad: bool, turned: bool
) -> None:
    told = said("evidence", END + HOUR, correlation={"shop": 1, "order": "7"})
    also = order(999, T0, "z", keys={"order": ("7",)})
    groups: list[list[OSpan | OOutcome]] = [[*also, *crowd(traces - 1)], [*order(traces, T0, "y", keys=SHOP)], [told]]
    pipeline = together(*(reversed(groups) if turned else groups))
    sessions = {name for name, _ in reached(pipeline)}
    assert "z" in sessions
    assert len(sessions) == (1 if too_broad else traces // 2 + 2)  # two traces a conversation, and two alone
    assert pipeline.count(Stage.CORRELATE, "noted", "too_broad") == too_broad
    assert pipeline.waiting() == 0


def test_rule_36_traces_that_begin_later_do_not_make_a_key_too_broad() -> None:
    later = crowd(MOST_TRACES + 1, END + 2 * HOUR)
    first = order(999, T0, "z", keys=SHOP)
    told = [said(kind, END + HOUR, kind, correlation={"shop": "1"}) for kind in ("evidence", "escalation")]
    pipeline = together(first, told, later)
    assert reached(pipeline) == [("z", 1)]
    assert pipeline.verdicts()["default", "z", 1].escalated
    assert "settled" in pipeline.verdicts()["default", "z", 1].evidence


def test_rule_36_a_key_is_no_longer_too_broad_when_a_trace_goes() -> None:
    told = said("escalation", END + HOUR, correlation={"shop": "1"})
    spans = crowd(MOST_TRACES + 1)
    moves = replace(spans[0], keys={}, attribute_count=1)  # a fuller copy, which states no key
    assert reached(together(spans, [told])) == []
    assert len(reached(together(spans, [told], [moves]))) == 1


# -- 37: nobody has it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        pytest.param({"session_id": "late"}, id="by conversation"),
        pytest.param({"trace_id": trace_id(9)}, id="by trace"),
        pytest.param({"correlation": {"order": "7", "parcel": "p", "ticket": "t"}}, id="by three keys"),
    ],
)
def test_rule_37_an_outcome_waits_as_one_is_counted_and_attaches_when_its_session_comes(
    address: dict[str, Any],
) -> None:
    told = said("evidence", END + HOUR, **address)
    others = order(1)
    assert run(others, [told]).waiting() == 1
    late = order(9, T0, "late", keys={"parcel": ("p",)})
    pipeline = arrived(*others, told, *late)
    assert reached(pipeline) == [("late", 1)]
    assert pipeline.waiting() == 0


@pytest.mark.parametrize(
    "address",
    [
        pytest.param({"session_id": "nobody"}, id="by conversation"),
        pytest.param({"session_id": "c", "ordinal": 7}, id="by an ordinal that is not there"),
        pytest.param({"trace_id": trace_id(9)}, id="by trace"),
        pytest.param({"correlation": {"order": "7", "parcel": "p", "ticket": "t"}}, id="by three keys"),
    ],
)
def test_rule_37_it_expires_past_retention_and_not_at_it_with_one_letter(address: dict[str, Any]) -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}))
    line.outcome("e", END, data={"settled": True}, **address)
    line.until(END + RETENTION)
    assert (line.waiting(), line.letters()) == (1, [])
    line.until(END + RETENTION + 1)
    assert line.waiting() == 0
    assert [one.reason for one in line.letters()] == ["no_session"]
    assert line.counted("dead_lettered", "no_session") == 1


def test_rule_37_evidence_that_reaches_a_session_by_one_of_its_keys_does_not_wait_for_the_others() -> None:
    said_key = {**ORDER, "session.id": "c", "trueup.correlation.order": "7"}
    line = Line().spans(*turn(1, T0, said_key))
    line.outcome("e", END, data={"settled": True}, correlation={"order": "7", "parcel": "p"})
    assert line.waiting() == 0
    line.until(END + 2 * RETENTION)
    assert line.letters() == []


def test_rule_37_it_waits_again_when_its_session_goes() -> None:
    early = [replace(one, conversation_ids=((0, "c"),)) for one in order(1)]
    told = said("escalation", END + 20 * MINUTE, session_id="c")
    moved = span(1, 90, T0, END, "step", None, conversation_ids=((0, "d"),))  # nearer the root: a smaller id
    pipeline = arrived(*early, told, moved)
    assert reached(pipeline) == []
    assert pipeline.waiting() == 1


def test_rule_37_an_outcome_older_than_retention_is_refused_and_one_at_its_edge_is_taken() -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"})).until(END + RETENTION)
    line.outcome("e", END, "reopen", session_id="c").until(END + RETENTION)
    line.outcome("f", END - 1, "reopen", session_id="c").until(END + RETENTION)
    assert [one.reason for one in line.letters()] == ["sealed"]
    assert line.only()["reopened"] is True


def test_rule_37_whatever_was_told_is_joined_waits_was_retracted_or_is_in_a_letter() -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "session.id": "c"}))
    line.outcome("joined", END, session_id="c").outcome("again", END + DAY, session_id="nobody")
    line.outcome("lost", END, session_id="nobody").outcome("back", END, session_id="c")
    line.outcome("back", END, "retract", event_version=2)
    line.until(END + RETENTION + HOUR)
    told = {row["event_id"] for row in line.rows("outcomes") if row["conversation"] == "c"}
    assert told == {"joined", "back"}
    assert (line.waiting(), line.counted("dead_lettered", "no_session")) == (1, 1)
