"""Sales that are judged, evaluated and measured, through all stages."""

from __future__ import annotations

from typing import Any

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import load
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import DAY, HOUR, SECOND, TimeRules
from schemas.segment import CountReading, MeanReading
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import Line, turn

END = T0 + 10 * SECOND
FAR = END + 6 * DAY
"""Within a window of seven days after the end, and past every deadline."""

SALE = """
family: sale
version: 1
criteria:
  - {id: done, check: "state.done", stage: execution, agent: seller}
  - {id: paid, check: "evidence.paid == true", fails_when: "evidence.paid == false", trust: independent, deadline: 24h,
     applies: "has(state.price)", stage: verification, agent: cashier}
goal_achievement:
  information_accuracy: {max: 3, weight: 0.3}
  action_correctness:   {max: 4, weight: 0.4}
  effort_minimization:  {max: 3, weight: 0.3}
refused_when: "tools['refuse'].calls > 0"
targets: {goal_achievement: 8.5, coherence: 9.0}
"""
FAMILY = {"trueup.task.family": "sale"}


def book(text: str = SALE) -> ContractBook:
    return load([("sale.yaml", text)], TimeRules())


def sold(line: Line, trace: int = 1, start: int = T0, **said: Any) -> Line:
    """A sale in a conversation of its own; `state_x` is a field of its state."""
    state = {f"trueup.state.{name.removeprefix('state_')}": value for name, value in said.items()}
    given = {**FAMILY, "gen_ai.conversation.id": f"c{trace}", "trueup.state.done": True, **state}
    return line.spans(*turn(trace, start, {name: value for name, value in given.items() if value is not None}))


def evaluated(line: Line, event_id: str, name: str, trace: int = 1, time: int = END + HOUR, **data: Any) -> Line:
    return line.outcome(event_id, time, "evaluation", session_id=f"c{trace}", data={"name": name, **data})


def summaries(line: Line) -> tuple[list[MeanReading], list[CountReading]]:
    means: list[MeanReading] = []
    counts: list[CountReading] = []
    for step in line.runner.steps(Stage.MEASURE).values():
        assert isinstance(step, MeasureStep)
        more_means, more_counts = step.summaries()
        means += more_means
        counts += more_counts
    return means, counts


def means(line: Line, cube: str = "system") -> dict[str, tuple[float, int]]:
    """Measure -> (mean, count), over seven days."""
    return {one.measure: (one.mean, one.count) for one in summaries(line)[0] if (one.cube, one.window) == (cube, "7d")}


def counts(line: Line, what: str, cube: str = "system") -> dict[str, int]:
    found = [one for one in summaries(line)[1] if (one.cube, one.window, one.what) == (cube, "7d", what)]
    return {one.name: one.count for one in found}
