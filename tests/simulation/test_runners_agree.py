"""Both runners agree: the same world through the local runner, and through Kafka and Faust, gives the same rates."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.ingest import Ingest
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import TimeRules, from_datetime
from pipeline.runners.local_runner import LocalRunner
from pipeline.simulation.deliver import requests
from pipeline.simulation.world import World, build
from pipeline.topology import STAGES, Setup
from schemas.topics import Stage, Topic
from tests.started import ROOT, Start

SESSIONS, SEED, PATIENCE = 150, 9, 200.0
Rates = dict[tuple[str, str], tuple[int, int]]


def locally(world: World, random: Random | None) -> Rates:
    """The rates of the 7d window; every record is of today, as in the demo."""
    rules = TimeRules()
    files = [(path.name, path.read_text()) for path in sorted((ROOT / "contracts").glob("*.yaml"))]
    runner = LocalRunner(
        STAGES, Setup(load(files, rules), rules, 3), 3, Ingest(3, rules, subject_key=b"any"), shuffle=random
    )
    now = from_datetime(world.now)
    for item in requests(world):
        if isinstance(item, bytes):
            runner.feed(Topic.OTLP_SPANS, item, now)
        else:
            runner.feed(Topic.OUTCOMES, json.dumps(item).encode(), now)
    runner.end_of_input(now)
    steps = [step for step in runner.steps(Stage.MEASURE).values() if isinstance(step, MeasureStep)]
    return {
        (dict(one.dimensions).get("family", ""), one.rate): (one.numerator, one.denominator)
        for step in steps
        for one in step.readings(now)
        if one.window == "7d"
    }


def told(world: World) -> Rates:
    return {(family, str(rate)): counts for (family, rate), counts in world.truth.items() if counts[1]}


def test_the_local_runner_and_faust_come_to_the_same_rates(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--exit", "--sessions", str(SESSIONS), "--seed", str(SEED))
    said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said + complained
    summary = json.loads((tmp_path / "data" / "demo" / "summary.json").read_text())
    by_faust: Rates = {
        (row["family"], row["rate"]): (row["numerator"], row["denominator"])
        for row in summary["rows"]
        if row["denominator"]
    }

    in_order = locally(build(SEED, SESSIONS, datetime.now(UTC)), None)
    assert {key: counts for key, counts in in_order.items() if key[0]} == by_faust


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_local_runner_knows_the_truth_in_any_order(seed: int) -> None:
    world = build(seed, SESSIONS, datetime.now(UTC))

    assert locally(world, Random(seed)) == told(world)
