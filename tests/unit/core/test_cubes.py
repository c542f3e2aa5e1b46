"""Segments of several dimensions: a session counts once under each value, and totals come from cubes without it."""

from __future__ import annotations

from typing import Any

from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import HOUR, MINUTE
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import AGENT, CHAT, Line, sent, tool

CUBES = ("system", "family", "agent", "tool", "family+agent")
END = T0 + MINUTE
LATER = END + 5 * HOUR


def session(
    trace: int, name: str, family: str, agents: tuple[str, ...], tools: tuple[str, ...]
) -> list[dict[str, Any]]:
    """A run: one agent over the others, each tool and a model below the first."""
    first = trace * 100
    said = {"gen_ai.conversation.id": name, "trueup.task.family": family, "trueup.task.outcome": "completed"}
    spans = [sent(trace, first, T0, END, {**AGENT, **said, "gen_ai.agent.name": agents[0]})]
    below = [{**AGENT, "gen_ai.agent.name": agent} for agent in agents[1:]] + [tool(one) for one in tools] + [CHAT]
    return spans + [sent(trace, first + n, T0, END, one, first) for n, one in enumerate(below, start=1)]


def sessions(line: Line, rate: str = "claimed_completion") -> dict[str, dict[tuple[str, ...], int]]:
    """Cube -> values -> sessions in the denominator of a rate, as the gauges have them."""
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for step in line.runner.steps(Stage.MEASURE).values():
        assert isinstance(step, MeasureStep)
        for one in step.readings(LATER):
            if (one.rate, one.window) == (rate, "24h") and one.denominator:
                values = tuple(value for _, value in one.dimensions)
                found.setdefault(one.cube, {})[values] = one.denominator
    return found


def test_a_session_counts_once_under_each_of_its_values() -> None:
    line = Line(cubes=CUBES)
    line.spans(*session(1, "a", "order", ("clerk", "helper", "clerk"), ("place_order", "place_order", "search")))
    line.spans(*session(2, "b", "search", ("clerk",), ()))
    line.until(LATER)
    assert sessions(line) == {
        "system": {(): 2},
        "family": {("order",): 1, ("search",): 1},
        "agent": {("clerk",): 2, ("helper",): 1},
        "tool": {("place_order",): 1, ("search",): 1},
        "family+agent": {("order", "clerk"): 1, ("order", "helper"): 1, ("search", "clerk"): 1},
    }


def test_what_a_late_span_adds_counts_under_its_value_from_then_on() -> None:
    line = Line(cubes=CUBES)
    line.spans(*session(1, "a", "order", ("clerk",), ("search",))).until(LATER)
    assert sessions(line)["tool"] == {("search",): 1}
    line.spans(sent(1, 190, T0, END, tool("notify"), 100), record_time=END + MINUTE).until(LATER)
    assert sessions(line)["tool"] == {("search",): 1, ("notify",): 1}
    assert sessions(line)["system"] == {(): 1}


def test_a_cube_that_nobody_asked_for_is_not_counted() -> None:
    line = Line()
    line.spans(*session(1, "a", "order", ("clerk",), ("search",))).until(LATER)
    assert set(sessions(line)) == {"system", "family"}
    assert {row["cube"] for row in line.rows("segment_metrics")} == {"system", "family"}


def test_a_restatement_reaches_every_cube() -> None:
    line = Line(cubes=CUBES)
    line.spans(*session(1, "a", "order", ("clerk", "helper"), ())).until(LATER)
    assert sessions(line, "confirmed_resolution") == {}
    line.outcome("yes", END + HOUR, "resolution", session_id="a", data={"confirmed": True}).until(LATER)
    found = sessions(line, "confirmed_resolution")
    assert found["agent"] == {("clerk",): 1, ("helper",): 1}
    assert found["family+agent"] == {("order", "clerk"): 1, ("order", "helper"): 1}
