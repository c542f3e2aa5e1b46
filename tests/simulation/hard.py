"""The hard world through the core alone: every stage in this process, no broker, no clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from pipeline.core.contracts.parse import load
from pipeline.core.ingest import Ingest
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import TimeRules, from_datetime
from pipeline.demo.verdicts import Difference, differences, facts_of_verdict, place_of
from pipeline.runners.local_runner import LocalRunner
from pipeline.simulation.deliver import requests
from pipeline.simulation.world import World
from pipeline.topology import STAGES, Setup
from schemas.topics import Stage, Topic
from tests.started import ROOT

PARTITIONS = 3
REQUESTS = 10  # until the stages have their turn


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the core made of a world. `rates`: those that are wrong; `refused`: reasons of dead letters."""

    differences: list[Difference]
    rates: dict[tuple[str, str], tuple[int, int]]
    refused: set[str]

    def scenes(self) -> set[str]:
        """The kinds of scene that came out otherwise; `conv` and `trace` are of the usual week."""
        return {one.where[1].replace(":", "-").split("-")[0] for one in self.differences}


def through_the_core(world: World, shuffle: Random | None = None) -> Outcome:
    """Feed everything in order; the stages interleave as they would live, or at random."""
    rules = TimeRules()
    files = [(path.name, path.read_text()) for path in sorted((ROOT / "contracts").glob("*.yaml"))]
    ingest = Ingest(PARTITIONS, rules, subject_key=b"any")
    runner = LocalRunner(STAGES, Setup(load(files, rules), rules, PARTITIONS), PARTITIONS, ingest, shuffle=shuffle)
    now = from_datetime(world.now)
    for number, item in enumerate(requests(world), start=1):
        if isinstance(item, bytes):
            runner.feed(Topic.OTLP_SPANS, item, now)
        else:
            runner.feed(Topic.OUTCOMES, json.dumps(item).encode(), now)
        if number % REQUESTS == 0:
            runner.drain()
    runner.drain()
    runner.end_of_input(now)
    verdicts = _newest(runner)
    seen = {place_of(one): facts_of_verdict(one) for one in verdicts}
    rates = {
        (dict(one.dimensions).get("family", ""), str(one.rate)): (one.numerator, one.denominator)
        for step in runner.steps(Stage.MEASURE).values()
        if isinstance(step, MeasureStep)
        for one in step.readings(now)
        if one.window == "7d"
    }
    places = {*world.truth, *rates}
    wrong = {at: rates.get(at, (0, 0)) for at in places if rates.get(at, (0, 0)) != world.truth.get(at, (0, 0))}
    return Outcome(differences(world.verdicts, seen), wrong, {one.reason for one in runner.dead_letters()})


def _newest(runner: LocalRunner) -> list[dict[str, Any]]:
    newest: dict[bytes, dict[str, Any]] = {}
    for key, value in runner.verdicts():
        verdict = json.loads(value or b"null")
        if verdict is not None and verdict["version"] > newest.get(key, {"version": 0})["version"]:
            newest[key] = verdict
    return [one for one in newest.values() if not one["deleted"]]
