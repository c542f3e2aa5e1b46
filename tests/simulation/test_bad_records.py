"""Live: records that break a stage cost two restores each and not one number."""

from __future__ import annotations

import json
from pathlib import Path

from tests.started import Start

PATIENCE = 300.0
BURIED = "a record makes its step raise; it becomes a dead letter"


def test_records_that_break_a_stage_leave_every_number_exact(trueup: Start, tmp_path: Path) -> None:
    process = trueup("demo", "--exit", "--sessions", "60", "--preload", "tests.simulation.faults.step_breaks")
    said, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, said + complained
    assert json.loads((tmp_path / "data" / "demo" / "summary.json").read_text())["exact"] is True
    told = "".join(log.read_text() for log in (tmp_path / "data" / "logs").iterdir())
    assert told.count(BURIED) >= 2
    assert "stage=resolve" in told[told.index(BURIED) :]
    assert "a span that stage 2 cannot bear" in told
