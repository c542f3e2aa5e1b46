"""Scenario sessions: precision and recall of tool names and arguments, and reliability."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.core.timeline import HOUR
from tests.builders import T0
from tests.unit.core.line import Line, sent, tool, turn
from tests.unit.core.quality.sale import FAMILY, FAR, book, means

CONTRACT = """
family: sale
version: 1
criteria:
  - {id: done, check: "state.done", required: false}
expected_tool_calls:
  - scenario: ticket
    calls:
      - {tool: create, arguments: {title: Network latency, priority: 2, customer_visible: true, department: }}
      - {tool: assign, arguments: {assignee: "{action.assignee}", due: 2026-04-01}}
  - scenario: nothing
    calls: []
"""
ARGUMENTS = {"title": "Network latency", "priority": "2", "customer_visible": "true", "department": "IT"}
ASSIGNED = {"assignee": "kim", "due": "2026-04-01"}


def played(
    *calls: tuple[str, Any], scenario: str | None = "ticket", on: str = "resource", text: str = CONTRACT, **more: Any
) -> Line:
    """A sale that plays a scenario and makes these calls: name and arguments."""
    told = {"trueup.scenario": scenario, "trueup.trial": 7} if scenario is not None else {}
    spans = turn(1, T0, {**FAMILY, "gen_ai.conversation.id": "c1", **(told if on == "root" else {}), **more})
    for index, (name, arguments) in enumerate(calls):
        given = {"gen_ai.tool.call.arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
        said = tool(name) | (given if arguments is not None else {}) | (told if on == "tool" else {})
        spans.append(sent(1, 110 + index, T0 + index, T0 + index + 1, said, 100))
    return Line(book=book(text)).spans(*spans, resource=told if on == "resource" else None).until(FAR)


def scores(line: Line) -> tuple[float | None, ...]:
    trial = line.only()["trial"]
    names = ("name_precision", "name_recall", "argument_precision", "argument_recall", "reliability")
    return tuple(trial[name] for name in names)


def test_a_trial_that_did_all_that_was_expected() -> None:
    line = played(("create", ARGUMENTS), ("assign", ASSIGNED))
    assert scores(line) == (1.0, 1.0, 1.0, 1.0, 1.0)
    trial = line.only()["trial"]
    assert (trial["scenario"], trial["trial"], trial["expected"], trial["made"]) == ("ticket", "7", 2, 2)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("create", ARGUMENTS)], (1.0, 0.5, 1.0, 4 / 6, (0.5 + 4 / 6) / 2)),
        ([("create", ARGUMENTS), ("assign", ASSIGNED), ("look", {})], (2 / 3, 1.0, 1.0, 1.0, 1.0)),
        ([("create", ARGUMENTS), ("assign", ASSIGNED), ("create", {})], (2 / 3, 1.0, 1.0, 1.0, 1.0)),
        ([("create", {**ARGUMENTS, "parent": "1"}), ("assign", ASSIGNED)], (1.0, 1.0, 6 / 7, 1.0, 1.0)),
        ([("create", {**ARGUMENTS, "priority": 3}), ("assign", ASSIGNED)], (1.0, 1.0, 5 / 6, 5 / 6, 11 / 12)),
        ([("create", {"titel": "Network latency"}), ("assign", ASSIGNED)], (1.0, 1.0, 2 / 3, 2 / 6, 2 / 3)),
        ([("creat", ARGUMENTS), ("assign", ASSIGNED)], (0.5, 0.5, 1.0, 2 / 6, 5 / 12)),
        ([], (1.0, 0.0, 1.0, 0.0, 0.0)),
    ],
    ids=[
        "one is missing", "one too many", "one twice", "an argument too many", "a wrong value", "a misspelt argument",
        "a misspelt name", "none at all",
    ],
)  # fmt: skip
def test_precision_and_recall_of_names_and_arguments(calls: list[tuple[str, Any]], expected: tuple[float, ...]) -> None:
    assert scores(played(*calls)) == pytest.approx(expected, abs=1e-6)


def test_of_two_calls_of_a_tool_the_one_that_fits_is_compared_whichever_came_first() -> None:
    for calls in ([("create", {}), ("create", ARGUMENTS)], [("create", ARGUMENTS), ("create", {})]):
        assert scores(played(*calls, ("assign", ASSIGNED)))[2:4] == (1.0, 1.0)


@pytest.mark.parametrize("value", [2, "2", 2.0, " 2 "])
def test_numbers_and_text_are_one(value: Any) -> None:
    assert scores(played(("create", {**ARGUMENTS, "priority": value}), ("assign", ASSIGNED)))[3] == 1.0


def test_where_nothing_is_expected_a_call_is_one_too_many() -> None:
    assert scores(played(scenario="nothing")) == (1.0, 1.0, 1.0, 1.0, 1.0)
    assert scores(played(("create", {}), scenario="nothing")) == (0.0, 1.0, 1.0, 1.0, 1.0)


def test_a_scenario_of_which_nothing_is_said_has_no_scores() -> None:
    line = played(("create", ARGUMENTS), scenario="other")
    assert scores(line) == (None,) * 5
    assert line.only()["trial"]["made"] == 1
    general = CONTRACT.replace("scenario: ticket", 'scenario: ""')
    assert scores(played(("create", ARGUMENTS), ("assign", ASSIGNED), scenario="other", text=general))[4] == 1.0


def test_a_session_that_plays_no_scenario_is_no_trial_and_keeps_no_arguments() -> None:
    line = played(("create", ARGUMENTS), scenario=None)
    assert line.only()["trial"] is None
    assert "Network latency" not in str(line.runner.verdicts())
    assert all("Network latency" not in str(row) for table in ("verdicts", "agent_steps") for row in line.rows(table))


def test_arguments_are_kept_of_spans_that_say_themselves_that_they_play() -> None:
    calls = (("create", ARGUMENTS), ("assign", ASSIGNED))
    assert scores(played(*calls, on="tool"))[4] == 1.0
    assert scores(played(*calls, on="root")) == (1.0, 1.0, None, None, None), "their root alone says it"


@pytest.mark.parametrize("arguments", [None, '{"title": "Netw', "[1, 2]", "plain"])
def test_arguments_that_cannot_be_read_are_no_score(arguments: Any) -> None:
    assert scores(played(("create", arguments), ("assign", ASSIGNED))) == (1.0, 1.0, None, None, None)


def test_a_retried_call_is_one_and_has_the_arguments_of_the_attempt_that_decides() -> None:
    said = {"gen_ai.tool.call.id": "1", "gen_ai.tool.call.arguments": "{}"}
    line = Line(book=book(CONTRACT))
    told = {"trueup.scenario": "ticket"}
    spans = turn(1, T0, {**FAMILY, "gen_ai.conversation.id": "c1"})
    spans.append(sent(1, 110, T0, T0 + 1, tool("create") | said, 100, status={"code": 2}))
    again = {**said, "gen_ai.tool.call.arguments": json.dumps(ARGUMENTS)}
    spans.append(sent(1, 111, T0 + 2, T0 + 3, tool("create") | again, 100))
    line.spans(*spans, resource=told).until(FAR)
    assert scores(line)[:4] == pytest.approx((1.0, 0.5, 1.0, 4 / 6), abs=1e-6)


def test_reliability_is_a_mean_over_trials() -> None:
    line = played(("create", ARGUMENTS), ("assign", ASSIGNED))
    again = turn(2, FAR, {**FAMILY, "gen_ai.conversation.id": "c2"})
    line.spans(*again, resource={"trueup.scenario": "ticket"}).until(FAR + 4 * HOUR)
    found = means(line)
    assert found["reliability"] == (0.5, 2)
    assert found["tool_name_recall"] == (0.5, 2)
    row = next(one for one in line.rows("verdicts") if one["conversation"] == "c2")
    assert (row["scenario"], row["reliability"]) == ("ticket", 0.0)
