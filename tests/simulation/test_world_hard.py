"""The hard world: exact to every session, through the core in seconds; a seeded fault is found, and where it bites."""

from __future__ import annotations

import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.judging import judge
from pipeline.core.resolving.step import ResolveStep
from pipeline.simulation.hard.kinds import KINDS
from pipeline.simulation.world import build_hard
from tests.simulation.hard import through_the_core
from tests.started import Start

SESSIONS, ONE_ROUND = 400, 150
PATIENCE = 300.0


@pytest.mark.parametrize(("seed", "in_any_order"), [(1, False), (2, True)])
def test_every_session_ends_as_its_scene_says(seed: int, in_any_order: bool) -> None:
    world = build_hard(seed, SESSIONS, datetime.now(UTC))
    found = through_the_core(world, Random(seed) if in_any_order else None)

    assert [str(one) for one in found.differences] == []
    assert found.rates == {}
    assert found.refused == {"settled", "sealed"}
    assert set(world.kinds) == set(KINDS)
    assert min(world.kinds.values()) >= 1


@pytest.mark.parametrize(
    ("fault", "scenes"),
    [
        pytest.param("dedup_off", {"unequal_copies", "unequal_tools"}, id="dedup off"),
        pytest.param("reopen_broken", {"reopen_twice", "reopen_behind", "recut_bridged"}, id="reopen broken"),
        pytest.param("late_dropped", {"settled"}, id="late outcomes dropped"),
    ],
)
def test_a_broken_rule_is_found_in_the_scenes_that_need_it(
    fault: str, scenes: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a fault replaces is put back afterwards.
    monkeypatch.setattr(ResolveStep, "apply", ResolveStep.apply)
    monkeypatch.setattr(CorrelateStep, "apply", CorrelateStep.apply)
    monkeypatch.setattr(judge, "reopened_by", judge.reopened_by)  # type: ignore[attr-defined]
    name = f"tests.simulation.faults.{fault}"
    sys.modules.pop(name, None)
    importlib.import_module(name)
    found = through_the_core(build_hard(3, ONE_ROUND, datetime.now(UTC)))

    assert scenes <= found.scenes()
    assert found.rates


def test_the_demo_holds_it_session_by_session(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--world", "hard", "--exit", "--sessions", str(ONE_ROUND), "--kill-worker", "1")
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, said + complained
    found = json.loads((tmp_path / "data" / "demo" / "summary.json").read_text())
    assert found["exact"] is True
    assert found["kinds"].keys() == KINDS.keys()
    assert min(found["kinds"].values()) >= 1
    assert found["differences"] == {"verdicts": [], "list": []}
    assert found["sources"] == ["metrics", "state", "store", "verdicts"]
    system = {row["rate"]: row for row in found["system"]}
    assert system["follow_up"]["numerator"] > 0
    assert system["reopen_elsewhere"]["numerator"] > 0


def test_a_fault_shows_in_the_demo_by_the_names_of_sessions(trueup: Start, tmp_path: Path) -> None:
    process = trueup(
        "demo", "--world", "hard", "--exit", "--sessions", str(ONE_ROUND),
        "--preload", "tests.simulation.faults.reopen_broken",
    )  # fmt: skip
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1, said + complained
    found = json.loads((tmp_path / "data" / "demo" / "summary.json").read_text())
    wrong = {
        row["rate"]
        for row in found["rows"]
        if (row["numerator"], row["denominator"]) != (row["true_numerator"], row["true_denominator"])
    }
    assert {"reopen", "resolution"} <= wrong
    assert any("reopen_twice" in one for one in found["differences"]["list"])
    assert "differs: verdicts: default/" in said
    assert "sessions differ by list" in said
