"""Who is counted in which rate, in which row, and when what is delayed happened (RULES.md 45 to 47)."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import load
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from schemas.segment import Rate
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import CHAT, Line, sent, tool, turn

END = T0 + 10 * SECOND
FAR = END + 10 * DAY

SALE = """
family: sale
version: 1
criteria:
  - {id: done, check: "state.done"}
  - {id: paid, check: "evidence.paid == true", fails_when: "evidence.paid == false", trust: independent, deadline: 24h}
escalated_when: {tools: [call_a_person]}
refused_when: "tools['refuse'].calls > 0"
invalid_when: "tools['test'].calls > 0"
reopen_window: 48h
"""
ALIKE = (
    'family: {}\nversion: 1\napplies_when: "tools[\'both\'].calls > 0"\ncriteria:\n  - {{id: a, check: "state.a"}}\n'
)
DERIVED = (
    'family: ask\nversion: 1\napplies_when: "tools[\'ask\'].calls > 0"\ncriteria:\n  - {id: a, check: "state.a"}\n'
)


def book() -> ContractBook:
    texts = (SALE, ALIKE.format("one"), ALIKE.format("two"), DERIVED)
    return load([(f"{index}.yaml", text) for index, text in enumerate(texts)], TimeRules())


def sale(
    line: Line, trace: int = 1, start: int = T0, tools: tuple[str, ...] = (), said: dict[str, Any] | None = None
) -> Line:
    """A sale of ten seconds in a conversation of its own; `said` goes on its agent span."""
    given = {
        "trueup.task.family": "sale",
        "gen_ai.conversation.id": f"c{trace}",
        "trueup.state.done": True,
        **(said or {}),
    }
    spans = turn(trace, start, {name: value for name, value in given.items() if value is not None})
    first = trace * 100
    for index, name in enumerate(tools):
        spans.insert(1, sent(trace, first + 50 + index, start, start + SECOND, tool(name), first))
    return line.spans(*spans)


def paid(line: Line, trace: int = 1, time: int = END + HOUR, value: bool = True) -> Line:
    return line.outcome(f"p{trace}-{time}", time, session_id=f"c{trace}", data={"paid": value})


def rates(line: Line) -> dict[str, tuple[int, int]]:
    return {name.value: found for name in Rate if (found := line.rate(name.value))[1]}


# -- 45: who is eligible -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "said", "counted"),
    [
        ((), {}, True),
        (("refuse",), {}, False),
        (("test",), {}, False),
        ((), {"trueup.task.family": None}, False),
        ((), {"trueup.task.family": "unknown"}, False),
        (("both",), {"trueup.task.family": None}, False),
        (("ask",), {"trueup.task.family": None}, True),
        ((), {"trueup.task.outcome": "refused"}, True),
        ((), {"trueup.task.outcome": "failed"}, True),
    ],
    ids=[
        "judged by one contract", "refused by evidence", "invalid", "no family", "a family without contract",
        "two contracts", "one that is derived", "refused by its own word", "failed by its own word",
    ],
)  # fmt: skip
def test_rule_45_only_what_one_contract_judged_is_eligible(
    tools: tuple[str, ...], said: dict[str, Any], counted: bool
) -> None:
    line = sale(Line(book=book()), tools=tools, said=said).until(FAR)
    assert line.only()["eligible"] is counted
    assert line.rate("completion")[1] == int(counted)
    assert line.rate("attribution")[1] == int("test" not in tools)


def test_rule_45_an_open_session_is_in_no_rate_and_one_that_ended_is() -> None:
    line = sale(Line(book=book())).until(END + 30 * MINUTE)
    assert rates(line) == {}
    assert "completion" in rates(line.until(END + 30 * MINUTE + 1))


def test_rule_45_an_inherited_family_is_judged_and_not_counted() -> None:
    line = sale(Line(book=book()), said={"trueup.task.outcome": "completed"})
    line.spans(*turn(2, END + HOUR * 3, {"gen_ai.conversation.id": "c1"})).until(FAR)
    first, second = line.sessions()
    assert (second["family"], second["family_source"], second["eligible"]) == ("sale", "inherited", False)
    assert second["contract"] == "sale@1"
    assert first["reopened"], "it reopens all the same"
    assert line.rate("completion")[1] == 1
    assert line.rate("attribution") == (2, 2)


def test_rule_45_what_is_pending_is_in_the_denominators_and_in_no_numerator() -> None:
    line = sale(Line(book=book())).until(END + 3 * HOUR)
    found = rates(line)
    assert {name: found[name] for name in ("completion", "verified_completion", "resolution")} == {
        "completion": (0, 1), "verified_completion": (0, 1), "resolution": (0, 1),
    }  # fmt: skip
    assert found["claimed_completion"] == (1, 1), "the others do not ask for completion"
    assert found["containment"] == (1, 1)
    assert rates(paid(line).until(FAR))["completion"] == (1, 1)


def test_rule_45_reopen_is_of_the_claimed_and_confirmation_of_those_who_answered() -> None:
    line = Line(book=book())
    sale(line, 1, said={"trueup.task.outcome": "completed"})
    sale(line, 2, said={"trueup.task.outcome": "failed"})
    for trace in (1, 2):
        line.outcome(f"r{trace}", END + HOUR, "reopen", session_id=f"c{trace}")
    line.outcome("a1", END + HOUR, "resolution", session_id="c1", data={"confirmed": False})
    line.until(FAR)
    assert line.rate("reopen") == (1, 1)
    assert line.rate("confirmed_resolution") == (0, 1)
    assert line.rate("completion")[1] == 2


def test_rule_45_tool_success_is_of_calls_of_sessions_that_are_not_invalid() -> None:
    line = Line(book=book())
    sale(line, 1, tools=("look", "look", "refuse"))
    sale(line, 2, tools=("look", "test"))
    line.until(FAR)
    assert line.rate("tool_success") == (3, 3)
    assert line.rate("attribution") == (1, 1)


# -- 46: containment and rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "contained", "escalated"),
    [(None, 1, 0), ("attempted", 0, 0), ("failed", 0, 0), ("accepted", 0, 1)],
)
def test_rule_46_containment_fails_by_any_attempt(outcome: str | None, contained: int, escalated: int) -> None:
    line = sale(Line(book=book()))
    if outcome is not None:
        line.outcome("e", END + HOUR, "escalation", session_id="c1", data={"state": outcome})
    line.until(FAR)
    assert (line.rate("containment"), line.rate("escalation")) == ((contained, 1), (escalated, 1))


def test_rule_46_containment_fails_by_abandonment() -> None:
    line = Line(book=book())
    asks = {**CHAT, "exception.type": "GraphInterrupt"}
    spans = turn(1, T0, {"trueup.task.family": "sale", "gen_ai.conversation.id": "c1"})
    event = {"name": "exception", "timeUnixNano": str(END), "attributes": [
        {"key": "exception.type", "value": {"stringValue": "langgraph.errors.GraphInterrupt"}}]}  # fmt: skip
    waits = sent(1, 150, T0, END, asks, 100, status={"code": 2}, events=[event])
    line.spans(*spans, waits).until(FAR)
    assert line.only()["terminal_reason"] == "abandoned"
    assert line.rate("containment") == (0, 1)
    assert line.rate("escalation") == (0, 1)


def rows(line: Line) -> dict[str, set[str]]:
    """Rates with a denominator, by row."""
    found: dict[str, set[str]] = {}
    newest: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in sorted(line.rows("segment_metrics"), key=lambda one: one["version"]):
        newest[row["dimensions"].get("family", ""), row["rate"], row["bucket"]] = row
    for (family, rate, _), row in newest.items():
        if row["denominator"]:
            found.setdefault(family, set()).add(rate)
    return found


def test_rule_46_each_family_has_a_row_and_the_unknown_count_in_the_system_row_alone() -> None:
    line = Line(book=book())
    sale(line, 1)
    sale(line, 2, said={"trueup.task.family": "unheard"}, tools=("look",))
    sale(line, 3, said={"trueup.task.family": None})
    sale(line, 4, said={"trueup.task.family": None}, tools=("both",))
    line.until(FAR)
    found = rows(line)
    assert found.keys() == {"", "sale", "unheard"}
    assert found["unheard"] == {"tool_success", "attribution"}
    assert line.rate("attribution") == (4, 4)


def test_rule_46_the_system_row_is_over_all_tenants() -> None:
    line = Line(book=book())
    for tenant, trace in (("a", 1), ("b", 2)):
        said = {"trueup.task.family": "sale", "gen_ai.conversation.id": "c"}
        line.spans(*turn(trace, T0, said), resource={"trueup.tenant": tenant})
    line.until(FAR)
    assert {one["tenant"] for one in line.sessions()} == {"a", "b"}
    assert line.rate("completion")[1] == 2


# -- 47: when it happened ----------------------------------------------------------------------------------------------


def ages(line: Line, rate: str) -> list[int]:
    """Of the events of a rate the lower ends of their age buckets, as stage 5 holds them, in hours."""
    contract = book().named("sale@1")
    assert contract is not None
    grid = [0, *contract.age_grid]
    found: list[int] = []
    for step in line.runner.steps(Stage.MEASURE).values():
        assert isinstance(step, MeasureStep)
        partials = [one for one in step.partials() if one.cube == "system"]
        for cell in (cell for one in partials for cell in one.cells if cell.rate == rate):
            for age, events in enumerate(cell.events):
                found += [grid[age] // HOUR] * events
    return found


@pytest.mark.parametrize(
    ("time", "age"),
    [(T0 - MINUTE, 0), (END + HOUR, 0), (END + HOUR + SECOND, 1), (END + 24 * HOUR, 18)],
    ids=["before the end", "at the first limit", "past it", "at the deadline"],
)
def test_rule_47_completion_happened_when_the_last_required_check_began_to_hold(time: int, age: int) -> None:
    line = paid(sale(Line(book=book())), time=time).until(FAR)
    assert line.rate("completion") == (1, 1)
    assert ages(line, "completion") == [age]


def test_rule_47_escalation_and_reopen_happened_when_the_earliest_that_counts_did() -> None:
    line = sale(Line(book=book()), said={"trueup.task.outcome": "completed"})
    for hours in (30, 3):
        line.outcome(f"e{hours}", END + hours * HOUR, "escalation", session_id="c1", data={"state": "accepted"})
        line.outcome(f"r{hours}", END + hours * HOUR, "reopen", session_id="c1")
    line.until(FAR)
    assert (ages(line, "escalation"), ages(line, "reopen"), ages(line, "containment")) == ([2], [2], [2])


@pytest.mark.parametrize(
    ("events", "age"),
    [
        ([("paid", 2, False)], 1),
        ([("paid", 2, False), ("paid", 5, True), ("paid", 20, False)], 18),
        ([], 18),
        ([("paid", 2, True), ("reopen", 6, None)], 4),
        ([("paid", 9, False), ("escalation", 3, None)], 2),
    ],
    ids=["refuted", "refuted again", "at the deadline", "reopened", "the earliest failure that stands"],
)
def test_rule_47_resolution_failed_when_the_earliest_failure_that_stands_did(
    events: list[tuple[str, int, Any]], age: int
) -> None:
    line = sale(Line(book=book()))
    for kind, hours, value in events:
        if kind == "paid":
            paid(line, time=END + hours * HOUR, value=value)
        else:
            data = {"state": "accepted"} if kind == "escalation" else {}
            line.outcome(f"{kind}{hours}", END + hours * HOUR, kind, session_id="c1", data=data)
    line.until(FAR)
    assert line.rate("resolution") == (0, 1)
    assert ages(line, "resolution") == [age]


def test_rule_47_a_check_without_deadline_failed_at_the_end() -> None:
    line = sale(Line(book=book()), said={"trueup.state.done": False}).until(FAR)
    assert ages(line, "resolution") == [0]
