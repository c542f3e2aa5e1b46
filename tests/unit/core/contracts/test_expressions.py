"""What an expression comes to, what a missing field makes of it (RULES.md 25), and what it may cost."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st

from pipeline.core.contracts.expressions import MAX_STEPS, MAX_TEXT, Expression, Truth
from pipeline.core.contracts.scan import MAX_DEPTH, MAX_LENGTH, MAX_LOOPS, MAX_PATTERN, MAX_TOKENS, BadExpression

SECONDS = 2.0
"""More than the dearest expression that is let through may take, on a busy machine."""


def given(**more: Any) -> dict[str, Any]:
    return {"state": {}, "evidence": {}, "tools": {}, "resource": {}, "session": {}} | more


@pytest.mark.parametrize(
    ("source", "truth"),
    [
        ("state.no == 1", Truth.UNKNOWN),
        ("state.no == 1 && false", Truth.FALSE),
        ("false && state.no == 1", Truth.FALSE),
        ("state.no == 1 || true", Truth.TRUE),
        ("true || state.no == 1", Truth.TRUE),
        ("state.no == 1 || false", Truth.UNKNOWN),
        ("!(state.no == 1)", Truth.UNKNOWN),
        ("has(state.no)", Truth.FALSE),
        ("has(state.x)", Truth.TRUE),
        ("state['x'] == 1", Truth.TRUE),
        ("state.x == '1'", Truth.FALSE),
        ("state.x > 'a'", Truth.RAISED),
        ("state.x", Truth.RAISED),
        ("1 / (state.x - 1) > 0", Truth.RAISED),
        ("tools['never'].calls == 0", Truth.TRUE),
    ],
)
def test_rule_25_a_missing_field_is_unknown_and_anything_else_that_fails_raises(source: str, truth: Truth) -> None:
    assert Expression(source).holds(given(state={"x": 1})) is truth


MISSING, RAISES = "state.z == 1", "1 / 0 == 1"


@pytest.mark.parametrize(
    ("source", "truth"),
    [
        ("[1, 2].exists(i, i == 2 || state.z == i)", Truth.TRUE),
        ("[2, 1].exists(i, i == 2 || state.z == i)", Truth.TRUE),
        ("[1, 2].exists(i, state.z == i)", Truth.UNKNOWN),
        ("[1, 2].all(i, i == 1 && state.z == i)", Truth.FALSE),
        ("[1, 2].all(i, i > 0 || state.z == i)", Truth.TRUE),
        ("[1, 2].all(i, i == 1 || state.z == i)", Truth.UNKNOWN),
        ("[1, 2].exists(i, i / 0 == 1 || i == 2)", Truth.TRUE),
        ("[1, 2].exists(i, i / 0 == 1 || state.z == i)", Truth.RAISED),
        ("[1, 2].exists(i, i / 0 == 1)", Truth.RAISED),
        ("state.l.exists(i, [1, 3].exists(j, j == i || state.z == j))", Truth.TRUE),
        ("!state.l.all(i, i != 3 && state.z == i)", Truth.TRUE),
        ("state.l.filter(i, i > 1).exists(i, state.z == i || i == 3)", Truth.TRUE),
        ("state.z.exists(i, i == 1)", Truth.UNKNOWN),
        ("state.x.exists(i, i == 1)", Truth.RAISED),
        ("size(state.l) == 2 && state.l.exists(i, state.z == i || i == 3)", Truth.TRUE),
        ("true ? state.l.exists(i, state.z == i || i == 3) : 1 / 0 == 1", Truth.TRUE),
        ("state.x == 2 ? false : (state.z == 1 ? true : false) || state.l.exists(i, i == 3 || state.z == i)",
         Truth.TRUE),
        ("state.l.exists(i, state.z == i || double(i) / 1e-3 > 2e+3 - -1.0)", Truth.TRUE),
        ("state.x in [1, 2] && state.l.exists(i, state.z == i || i == 3)", Truth.TRUE),
    ],
)  # fmt: skip
def test_rule_25_what_decides_a_list_decides_it_whatever_else_is_missing(source: str, truth: Truth) -> None:
    assert Expression(source).holds(given(state={"x": 1, "l": [1, 3]})) is truth


@pytest.mark.parametrize(
    ("one", "other", "either", "both"),
    [
        (MISSING, RAISES, Truth.RAISED, Truth.RAISED),
        (MISSING, "true", Truth.TRUE, Truth.UNKNOWN),
        (MISSING, "false", Truth.UNKNOWN, Truth.FALSE),
        (RAISES, "true", Truth.TRUE, Truth.RAISED),
        (RAISES, "false", Truth.RAISED, Truth.FALSE),
        (f"!({MISSING})", f"({RAISES} || false)", Truth.RAISED, Truth.RAISED),
        (MISSING, "state.x", Truth.RAISED, Truth.RAISED),
        (f"({RAISES}) && true", f"{MISSING} && true", Truth.RAISED, Truth.RAISED),
    ],
)
def test_rule_25_the_order_of_parts_makes_no_difference(one: str, other: str, either: Truth, both: Truth) -> None:
    for first, second in ((one, other), (other, one)):
        assert Expression(f"({first}) || ({second})").holds(given(state={"x": 1})) is either
        assert Expression(f"({first}) && ({second})").holds(given(state={"x": 1})) is both
        assert Expression(f"{first} || {second}").holds(given(state={"x": 1})) is either


LEAVES = {"true": Truth.TRUE, "false": Truth.FALSE, MISSING: Truth.UNKNOWN, RAISES: Truth.RAISED}
NOT = {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE}


def together(sign: str, parts: list[tuple[str, Truth]]) -> tuple[str, Truth]:
    decides = Truth.TRUE if sign == "||" else Truth.FALSE
    order = (decides, Truth.RAISED, Truth.UNKNOWN, NOT[decides])
    found = {truth for _, truth in parts}
    return f" {sign} ".join(f"({text})" for text, _ in parts), next(one for one in order if one in found)


EXPRESSIONS = st.recursive(
    st.sampled_from(list(LEAVES.items())),
    lambda inner: (
        st.builds(together, st.sampled_from(("||", "&&")), st.lists(inner, min_size=2, max_size=3))
        | inner.map(lambda one: (f"!({one[0]})", NOT.get(one[1], one[1])))
        | inner.map(lambda one: (f"[1, 2].exists(i, {one[0]})", one[1]))
        | inner.map(lambda one: (f"[1, 2].all(i, {one[0]})", one[1]))
    ),
    max_leaves=6,
)


@given_any(EXPRESSIONS)
@settings(deadline=None, derandomize=True)
def test_rule_25_any_expression_is_what_its_parts_are(expression: tuple[str, Truth]) -> None:
    source, truth = expression
    try:
        one = Expression(source)
    except BadExpression:
        return  # macros too deep within macros
    assert one.holds(given(state={"x": 1})) is truth


def test_what_an_expression_reads_is_known_before_it_runs() -> None:
    one = Expression("state.a == 'state.b' && evidence['c d'] > tools[\"t\"].ok && [1].exists(x, x == resource.r)")
    assert one.fields == {
        "state": frozenset({"a"}),
        "evidence": frozenset({"c d"}),
        "tools": frozenset({"t"}),
        "resource": frozenset({"r"}),
    }
    assert one.variables == {"state", "evidence", "tools", "resource"}


# -- limits of the text ------------------------------------------------------------------------------------------------


def longest(characters: int) -> str:
    return "state.x == '" + "x" * (characters - len("state.x == ''")) + "'"


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        (longest(MAX_LENGTH), longest(MAX_LENGTH + 1)),
        ("!" * (MAX_TOKENS - 1) + "true", "!" * MAX_TOKENS + "true"),
        ("(" * MAX_DEPTH + "true" + ")" * MAX_DEPTH, "(" * (MAX_DEPTH + 1) + "true" + ")" * (MAX_DEPTH + 1)),
        ("[1].all(a, [1].all(b, a == b))", "[1].all(a, [1].all(b, [1].all(c, a == b)))"),
        (f"state.x.matches('{'a' * MAX_PATTERN}')", f"state.x.matches('{'a' * (MAX_PATTERN + 1)}')"),
        ("state.x.matches('a{200}')", "state.x.matches('a{2000}')"),
    ],
    ids=["length", "words", "depth", "loops", "pattern", "repetitions"],
)
def test_the_text_is_limited(fits: str, too_much: str) -> None:
    Expression(fits)
    with pytest.raises(ValueError, match=r"too large|longer|more than|lists within"):
        Expression(too_much)
    assert MAX_LOOPS == 2


@pytest.mark.parametrize(
    "source",
    ["state.x.matches(state.y)", "state.x.matches('a' + 'b')", "matches(state.x, state.y)", "state.x.matches('(a')"],
)
def test_a_pattern_is_written_out_and_is_one(source: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Expression(source)


@pytest.mark.parametrize("source", ["state.l.exists(state, true)", "state.l.map(true, 1)", "state.l.all(x)"])
def test_a_macro_binds_a_name_of_its_own(source: str) -> None:
    with pytest.raises(ValueError, match=r"binds|variable"):
        Expression(source)


def test_deep_and_wide_text_never_breaks_the_process() -> None:
    for source in (
        "(" * 5000,
        "[" * 5000,
        "-" * 4000 + "1 == 1",
        "!" * 4000 + "true",
        "state" + ".m" * 2000,
        "'" * 4001,
    ):
        with pytest.raises(ValueError):
            Expression(source)


# -- limits of what it is given ----------------------------------------------------------------------------------------


def test_a_loop_over_too_much_raises_and_one_over_less_does_not() -> None:
    one = Expression("state.l.exists(x, state.l.exists(y, x + y < 0))")
    most = int(MAX_STEPS**0.5)
    assert one.holds(given(state={"l": [1] * most})) is Truth.FALSE
    assert one.holds(given(state={"l": [1] * (most + 1)})) is Truth.RAISED


def test_a_long_text_raises_where_it_would_be_matched_or_added_to_and_nowhere_else() -> None:
    text = "a" * (MAX_TEXT + 1)
    for source in ("state.t.matches('b')", "state.t + 'b' == 'c'"):
        assert Expression(source).holds(given(state={"t": text[1:]})) is Truth.FALSE
        assert Expression(source).holds(given(state={"t": text})) is Truth.RAISED
    assert Expression("state.t == 'b'").holds(given(state={"t": text})) is Truth.FALSE
    assert Expression("has(state.t)").holds(given(state={"t": text})) is Truth.TRUE


@pytest.mark.parametrize(
    "source",
    [
        "state.t.matches('(a*)*b')",
        "state.t.matches('(a|a)*(a|a)*c')",
        r"state.t.matches('(\\w{20}){5}b.*c')",
        "state.l.exists(x, state.l.exists(y, x + y < 0))",
        "size(state.l.map(x, x + 1)) == 0",
        "size(" + " + ".join(["state.t"] * 120) + ") == 0",
    ],
)
def test_what_is_let_through_takes_no_time_to_speak_of(source: str) -> None:
    expression = Expression(source)
    for items in (316, 1000, 10_000):
        values = given(state={"t": "a" * MAX_TEXT, "l": list(range(items))})
        started = time.process_time()
        expression.holds(values)
        assert time.process_time() - started < SECONDS


def test_what_an_expression_comes_to_is_the_same_whatever_it_was_asked_before() -> None:
    one = Expression("state.l.exists(x, x > 3)")
    large, small = given(state={"l": [1] * (MAX_STEPS + 1)}), given(state={"l": [4]})
    assert [one.holds(values) for values in (large, small, large)] == [Truth.RAISED, Truth.TRUE, Truth.RAISED]
