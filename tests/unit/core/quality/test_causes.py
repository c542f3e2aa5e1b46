"""Why a session is incomplete: its earliest cause, the stage in which it broke, and who owns that."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from tests.builders import T0
from tests.unit.core.line import CHAT, Line, sent, tool, turn
from tests.unit.core.quality.sale import END, FAMILY, FAR, SALE, book, counts, sold

ERROR: dict[str, Any] = {"code": 2}
PAID_FAILS = {"state_price": 3}


def broken(line: Line, *more: dict[str, Any], claim: str | None = None, root: Any = None, **state: Any) -> Line:
    """A sale with more spans below its agent; without `done` nothing of it is reported."""
    said = {**FAMILY, "gen_ai.conversation.id": "c1", "trueup.task.outcome": claim}
    said |= {f"trueup.state.{name}": value for name, value in state.items()}
    agent, answer = turn(1, T0, {name: value for name, value in said.items() if value is not None})
    return line.spans({**agent, **(root or {})}, answer, *more)


def call(number: int, start: int, name: str, failed: bool = False, **said: Any) -> dict[str, Any]:
    status = {"status": ERROR} if failed else {}
    return sent(1, 110 + number, start, start + SECOND, tool(name) | said, 100, **status)


def failure(line: Line, watermark: int = FAR) -> dict[str, Any] | None:
    found: dict[str, Any] | None = line.until(watermark).only()["failure"]
    return found


def said(line: Line, watermark: int = FAR) -> tuple[str, str, str]:
    found = failure(line, watermark)
    assert found is not None
    return found["stage"], found["cause"], found["agent"]


def test_what_is_complete_or_may_still_be_has_no_cause() -> None:
    assert failure(sold(Line(book=book()))) is None
    assert failure(sold(Line(book=book()), **PAID_FAILS), END + 3 * HOUR) is None
    assert failure(broken(Line(book=book())), END + 30 * MINUTE) is None, "it is open"


def test_a_criterion_is_the_cause_in_its_own_stage_with_the_agent_that_owns_it() -> None:
    assert said(broken(Line(book=book()), done=False)) == ("execution", "done", "seller")
    line = sold(Line(book=book()), **PAID_FAILS)
    assert said(line) == ("verification", "paid", "cashier")


def test_a_criterion_without_a_stage_failed_in_verification() -> None:
    text = 'family: sale\nversion: 1\ncriteria:\n  - {id: done, check: "state.done"}\n'
    assert said(broken(Line(book=book(text)), done=False)) == ("verification", "done", "")


def test_of_two_criteria_the_earlier_and_of_equal_ones_the_first_in_the_contract() -> None:
    line = broken(Line(book=book()), done=False, price=3)
    line.outcome("p", END + HOUR, session_id="c1", data={"paid": False})
    assert said(line)[1] == "done"
    two = SALE.replace("  - {id: paid", '  - {id: seen, check: "state.seen", stage: planning}\n  - {id: paid')
    assert said(broken(Line(book=book(two)), done=False))[1] == "done"
    assert said(broken(Line(book=book(two)), done=True))[:2] == ("planning", "seen")


def test_the_time_of_the_cause_is_when_it_happened() -> None:
    line = sold(Line(book=book()), **PAID_FAILS).outcome("p", END + HOUR, session_id="c1", data={"paid": False})
    found = failure(line)
    assert found is not None
    assert found["at"] == line.only()["criteria"][1]["failed_at"] == line.only()["resolution_failed_at"]


def test_a_tool_that_failed_for_good_goes_before_what_the_agent_did_not_do() -> None:
    line = broken(Line(book=book()), call(1, T0, "stock", failed=True, **{"gen_ai.agent.name": "picker"}))
    assert said(line) == ("execution", "tool stock", "picker")


def test_a_tool_belongs_to_the_nearest_agent_above_it() -> None:
    assert said(broken(Line(book=book()), call(1, T0, "stock", failed=True))) == ("execution", "tool stock", "helper")


def test_of_two_tools_that_failed_the_first() -> None:
    calls = [call(2, T0 + 2 * SECOND, "stock", failed=True), call(1, T0, "price", failed=True)]
    assert said(broken(Line(book=book()), *calls))[1] == "tool price"


def test_a_tool_that_was_called_again_and_worked_is_no_cause() -> None:
    calls = [call(1, T0, "stock", failed=True), call(2, T0 + 2 * SECOND, "stock")]
    assert said(broken(Line(book=book()), *calls)) == ("execution", "done", "seller")
    worse = [call(1, T0, "stock"), call(2, T0 + 2 * SECOND, "stock", failed=True)]
    assert said(broken(Line(book=book()), *worse))[1] == "tool stock"


def test_a_tool_is_no_cause_of_what_others_say_later() -> None:
    line = broken(Line(book=book()), call(1, T0, "stock", failed=True), done=True, price=3)
    assert said(line) == ("verification", "paid", "cashier")


@pytest.mark.parametrize("more", [{"root": {"status": ERROR}}, {"claim": "refused"}], ids=["a run", "a refusal"])
def test_nothing_in_the_spans_is_a_cause_of_what_others_say_later(more: dict[str, Any]) -> None:
    assert said(broken(Line(book=book()), done=True, price=3, **more)) == ("verification", "paid", "cashier")


def test_a_criterion_that_names_its_tools_fails_for_want_of_those_alone() -> None:
    text = SALE.replace('check: "state.done"', "check: \"tools['wrap'].ok > 0\"")
    calls = [call(1, T0, "stock", failed=True), call(2, T0 + SECOND, "wrap", failed=True)]
    assert said(broken(Line(book=book(text)), *calls))[1] == "tool wrap"
    assert said(broken(Line(book=book(text)), calls[0]))[1] == "done"


def test_a_model_that_did_not_answer_in_the_end_is_infrastructure() -> None:
    model = sent(1, 120, END - SECOND, END, CHAT | {"gen_ai.request.model": "big"}, 100, status=ERROR)
    model["spanId"] = f"{199:016x}"
    assert said(broken(Line(book=book()), model)) == ("infrastructure", "model", "helper")


def test_a_run_that_broke_without_a_leaf_is_infrastructure() -> None:
    assert said(broken(Line(book=book()), root={"status": ERROR})) == ("infrastructure", "run", "helper")


def test_an_expression_that_raises_in_the_end_is_infrastructure() -> None:
    text = SALE.replace('check: "state.done"', "check: \"state.done > 'a'\"")
    assert said(broken(Line(book=book(text)), done=True)) == ("infrastructure", "done", "seller")


def test_a_refusal_that_only_the_agent_claims_is_policy() -> None:
    assert said(broken(Line(book=book()), claim="refused")) == ("policy", "refusal", "")
    assert said(broken(Line(book=book()), call(1, T0, "stock", failed=True), claim="refused"))[1] == "tool stock"


def test_a_criterion_that_is_not_required_is_no_cause_and_is_counted() -> None:
    text = SALE.replace("stage: verification, agent: cashier", "required: false")
    line = sold(Line(book=book(text)), **PAID_FAILS).until(FAR)
    assert (line.only()["failure"], line.only()["completion"]) == (None, "complete")
    assert counts(line, "criterion") == {"paid": 1}
    assert counts(line, "stage") == {}


@pytest.mark.parametrize("cube", ["system", "family"])
def test_failures_are_counted_once_by_stage_and_by_each_criterion(cube: str) -> None:
    line = Line(book=book())
    sold(line, 1)
    sold(line, 2, state_done=False, **PAID_FAILS)
    sold(line, 3, **PAID_FAILS)
    line.until(FAR)
    assert counts(line, "stage", cube) == {"execution": 1, "verification": 1}
    assert counts(line, "criterion", cube) == {"done": 1, "paid": 2}


def test_what_is_healed_is_no_failure_any_more() -> None:
    line = sold(Line(book=book()), **PAID_FAILS).until(FAR)
    assert counts(line, "stage") == {"verification": 1}
    line.outcome("p", END + HOUR, session_id="c1", data={"paid": True}).until(FAR + MINUTE)
    assert (counts(line, "stage"), counts(line, "criterion")) == ({}, {})


def test_the_store_has_the_cause_in_columns() -> None:
    line = broken(Line(book=book()), call(1, T0, "stock", failed=True)).until(FAR)
    row = max(line.rows("verdicts"), key=lambda one: one["version"])
    assert (row["failure_stage"], row["failure_cause"], row["failure_agent"], row["failure_at"]) == (
        "execution", "tool stock", "helper", T0 + SECOND,
    )  # fmt: skip
