"""Rules 9 to 14, each by hand: where a conversation is cut, and the family of a session."""

from __future__ import annotations

import pytest

from tests.unit.oracle.small_world import DAYS, HOURS, MIN, contract, cut, judge, only, span, tool_turn, turn

WAITING = [
    span(1, "1", 0, 10, "agent", id="c"),
    span(1, "2", 1, 9, "inference", parent="1", asked_tools=1, finish_reasons=("tool_calls",)),
]


def test_rule_9_another_stated_family_starts_the_next_session_at_once():
    assert cut(judge([*turn(1, 0, family=("order",)), *turn(2, 20, family=("return",))])) == [[1], [2]]


def test_rule_9_a_session_without_a_family_takes_it_over():
    session = only(judge([*turn(1, 0), *turn(2, 20, family=("return",))]))

    assert (session.family, session.family_state) == ("return", "stated")


def test_rule_9_a_derived_family_is_cut_by_a_stated_one_and_never_cuts():
    derived = contract(applies_when="'x' in session.tools")

    assert cut(judge([*tool_turn(1, 0, "x"), *turn(2, 20, family=("return",))], contracts=[derived])) == [[1], [2]]
    assert cut(judge([*turn(1, 0, family=("return",)), *tool_turn(2, 20, "x")], contracts=[derived])) == [[1, 2]]


def test_rule_9_an_inherited_family_is_not_cut():
    spans = [*turn(1, 0, family=("order",)), *turn(2, 5 * HOURS), *turn(3, 5 * HOURS + 60, family=("return",))]
    world = judge(spans)

    assert cut(world) == [[1], [2, 3]]
    assert [s.family for s in world.sessions] == ["order", "return"]


@pytest.mark.parametrize(
    ("start", "sessions"), [(10 + 24 * HOURS, [[1, 2]]), (11 + 24 * HOURS, [[1], [2]])], ids=["at", "past"]
)
def test_rule_10_what_waits_is_resumed_within_the_wait_window(start, sessions):
    world = judge([*WAITING, *turn(2, start)])

    assert cut(world) == sessions
    assert all(s.turns == 1 for s in world.sessions)


def test_rule_10_a_run_whose_first_leaf_is_a_tool_resumes_what_had_no_known_answer():
    open_end = [*turn(1, 0)[:1], span(1, "2", 1, 9, "inference", parent="1", finish_reasons=("length",))]

    assert only(judge([*open_end, *tool_turn(2, 10 * HOURS, "x")])).turns == 1
    assert cut(judge([*turn(1, 0), *tool_turn(2, 10 * HOURS, "x")])) == [[1], [2]]


def test_rule_10_nothing_resumes_without_a_model_span():
    interrupted = [span(1, "1", 0, 10, id="c"), span(1, "2", 1, 9, "tool", parent="1", tool="x", interrupted=True)]
    again = [span(2, "1", 9000, 9010, id="c"), span(2, "2", 9001, 9009, "tool", parent="1", tool="x")]

    assert cut(judge([*interrupted, *again])) == [[1], [2]]
    assert cut(judge([*interrupted, *turn(2, 9000)])) == [[1, 2]]


def test_rule_10_nothing_resumes_after_an_explicit_claim():
    claimed = [*WAITING, span(1, "3", 9, 10, "step", parent="1", claim="completed")]

    assert cut(judge([*claimed, *turn(2, 3 * HOURS)])) == [[1], [2]]


@pytest.mark.parametrize(
    ("second", "sessions", "turns"),
    [
        pytest.param(tool_turn(2, 10 + 5 * MIN, "x"), [[1, 2]], [2], id="within the grace"),
        pytest.param(tool_turn(2, 11 + 5 * MIN, "x"), [[1], [2]], [1, 1], id="past the grace"),
        pytest.param(turn(2, 10 + 2 * HOURS), [[1, 2]], [2], id="thanks"),
        pytest.param(turn(2, 11 + 2 * HOURS), [[1], [2]], [1, 1], id="thanks, past the resume window"),
        pytest.param(turn(2, 20 * MIN, issues=("i",)), [[1], [2]], [1, 1], id="states an issue"),
        pytest.param(turn(2, 20 * MIN, keys={"order": (1,)}), [[1], [2]], [1, 1], id="states a key"),
        pytest.param(turn(2, 20 * MIN, claim="Completed"), [[1], [2]], [1, 1], id="claims"),
        pytest.param(turn(2, 20 * MIN, claim="nonsense"), [[1, 2]], [2], id="a claim that is none"),
    ],
)
def test_rule_11_after_an_explicit_claim(second, sessions, turns):
    world = judge([*turn(1, 0, claim="completed"), *second])

    assert cut(world) == sessions
    assert [s.turns for s in world.sessions] == turns


@pytest.mark.parametrize(
    ("window", "start", "sessions"),
    [
        pytest.param(2 * HOURS, 10 + 2 * HOURS, [[1, 2]], id="at the resume window"),
        pytest.param(2 * HOURS, 11 + 2 * HOURS, [[1], [2]], id="past it"),
        pytest.param(0, 10 + 30 * MIN, [[1, 2]], id="at the session gap"),
        pytest.param(0, 11 + 30 * MIN, [[1], [2]], id="past both"),
    ],
)
def test_rule_12_quiet(window, start, sessions):
    order = contract(resume_window=window * 10**9)

    assert cut(judge([*turn(1, 0, family=("order",)), *turn(2, start)], contracts=[order])) == sessions


def test_rule_12_runs_that_overlap_are_one_session():
    assert cut(judge([*turn(1, 0), span(2, "1", -5, 9000, id="c"), *turn(3, 9001)])) == [[1, 2, 3]]


def test_rule_13_nearest_the_root_then_earliest_and_of_an_array_the_first():
    spans = [
        span(1, "1", 0, 10, id="c"),
        span(1, "2", 3, 9, parent="1", family=("late",)),
        span(1, "3", 2, 9, parent="1", family=("early", "other")),
        span(1, "4", 1, 9, parent="3", family=("deep",)),
    ]

    assert only(judge(spans)).family == "early"


@pytest.mark.parametrize(
    ("families", "expected"),
    [(["order"], ("order", "derived")), (["order", "return"], (None, "ambiguous")), ([], (None, "none"))],
)
def test_rule_13_derived_ambiguous_or_none(families, expected):
    contracts = [contract(family=f, applies_when="'x' in session.tools") for f in families]
    session = only(judge(tool_turn(1, 0, "x"), contracts=contracts))

    assert (session.family, session.family_state) == expected
    assert session.eligible == (expected[1] == "derived")


@pytest.mark.parametrize(
    ("start", "expected"),
    [(10 + 3 * DAYS, ("order", "inherited")), (11 + 3 * DAYS, (None, "none"))],
    ids=["at the reopen window", "past it"],
)
def test_rule_13_a_family_is_inherited_within_the_reopen_window(start, expected):
    second = judge([*turn(1, 0, family=("order",)), *turn(2, start)], contracts=[contract()]).session("c", 2)

    assert (second.family, second.family_state) == expected
    assert second.contract_version == (1 if expected[0] else None)
    assert not second.eligible


def test_rule_13_a_stated_family_without_a_contract_keeps_its_name():
    world = judge(turn(1, 0, family=("unheard",)), contracts=[contract()])

    assert (only(world).family, only(world).contract_version, only(world).eligible) == ("unheard", None, False)
    assert world.rates["unheard", "attribution"] == (1, 1)
    assert world.rates["unheard", "completion"] == (0, 0)


def test_rule_14_ordinals_are_dense_and_follow_event_time():
    spans = [*turn(3, 20 * HOURS), *turn(1, 0), *turn(2, 10 * HOURS)]

    assert [(s.ordinal, s.trace_ids[0][-1]) for s in judge(spans).sessions] == [(1, "1"), (2, "2"), (3, "3")]
