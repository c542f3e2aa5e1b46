"""The demo from end to end, as a process: exact on its own, exact over kills, and not fooled by broken rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.started import Start, started_in

SESSIONS = "250"
PATIENCE = 300.0


def summary(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "data" / "demo" / "summary.json").read_text())
    return read


def test_every_number_is_exact_over_two_kills(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--exit", "--sessions", SESSIONS, "--seed", "5", "--kill-worker", "2")
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, said + complained
    found = summary(tmp_path)
    assert found["exact"] is True
    assert found["seed"] == 5
    assert found["sessions"] >= int(SESSIONS)
    assert min(found["late"], found["duplicates"], found["reordered"]) > 0
    assert found["sources"] == ["metrics", "state", "store"]
    assert found["kills"] == 2
    rates = {row["rate"] for row in found["rows"]}
    assert len({row["family"] for row in found["rows"]}) == 5
    assert len(found["rows"]) == 5 * len(rates)
    for row in found["rows"]:
        assert (row["numerator"], row["denominator"]) == (row["true_numerator"], row["true_denominator"])
    assert "number 1: after the outputs of a checkpoint, before its marker" in said
    assert "number 2: after a marker, before the acknowledgement" in said
    assert said.count("re-read") == 2
    assert "revision 2" in said
    assert "Claimed complete, and later found otherwise" in said
    assert complained == ""
    assert started_in(tmp_path) == []


@pytest.mark.parametrize(
    ("fault", "rates"),
    [
        pytest.param("dedup_off", {"tool_success"}, id="dedup off"),
        pytest.param("late_dropped", {"verified_completion"}, id="late outcomes dropped"),
    ],
)
def test_a_broken_rule_is_found(fault: str, rates: set[str], trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--exit", "--sessions", SESSIONS, "--preload", f"tests.simulation.faults.{fault}")
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1, said + complained
    found = summary(tmp_path)
    assert found["exact"] is False
    wrong = {
        row["rate"]
        for row in found["rows"]
        if (row["numerator"], row["denominator"]) != (row["true_numerator"], row["true_denominator"])
    }
    assert rates <= wrong
    assert f"differs: all families {min(rates)}" in said


def test_without_exit_the_status_says_only_that_it_ran(trueup: Start) -> None:
    process = trueup("demo", "--sessions", "40", "--preload", "tests.simulation.faults.reopen_broken")
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, said + complained
    assert "numbers are wrong" in said


def test_a_half_failed_start_leaves_nothing(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--exit", "--sessions", "40", "--preload", "tests.simulation.faults.no_such_module")
    _, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 2
    assert complained.count("\n") == 1
    assert "the worker-1 ended with" in complained
    assert "no_such_module" in complained
    assert started_in(tmp_path) == []


def test_children_die_with_a_parent_that_is_killed(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--keep", "--sessions", "40")
    assert process.stdout is not None
    for line in process.stdout:
        if "are up after" in line:
            break
    children = started_in(tmp_path)
    process.kill()
    process.wait()

    assert len(children) == 2, children
    for _ in range(50):
        if not started_in(tmp_path):
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError(started_in(tmp_path))
