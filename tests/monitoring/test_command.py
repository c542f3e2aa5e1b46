"""`make test-monitoring` names what it lacks, and never passes with nothing to test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tools import monitoring


def test_without_promtool_and_without_root_the_package_is_named_and_the_status_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert monitoring.main() == 2
    assert f"`{monitoring.PACKAGE}`" in capsys.readouterr().out


def test_no_rules_is_a_failure_and_not_a_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(monitoring, "ROOT", tmp_path)
    monkeypatch.setattr(monitoring, "RULES", tmp_path)

    assert monitoring.main() == 1


def test_a_failing_step_fails_the_whole_and_the_others_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def succeeds(command: list[str]) -> bool:
        ran.append(command[1])
        return command[1] != "test"

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(monitoring, "succeeds", succeeds)

    assert monitoring.main() == 1
    assert ran == ["check", "test", "-m"]
