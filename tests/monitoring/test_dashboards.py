"""Dashboards: generated, known to Grafana's typed model, and kept to our rules; seeded faults are found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from grafana.build.__main__ import main as build
from tests.monitoring.dashboards import Json, faults, lost_in_round_trip, panels

FOLDER = Path(__file__).resolve().parents[2] / "grafana" / "dashboards"


@pytest.fixture
def system() -> Json:
    loaded: Json = json.loads((FOLDER / "trueup-system.json").read_text(encoding="utf-8"))
    return loaded


def test_the_committed_dashboards_are_what_the_code_builds() -> None:
    assert build(["--check"]) == 0


def test_every_dashboard_file_is_one_that_the_code_builds() -> None:
    assert [file.name for file in FOLDER.glob("*.json")] == ["trueup-system.json"]


def test_grafanas_typed_model_knows_every_option(system: Json) -> None:
    assert lost_in_round_trip(system) == []


def test_the_dashboard_keeps_the_rules(system: Json) -> None:
    assert faults(system) == []


def test_the_dashboard_is_classic_so_that_file_provisioning_takes_it(system: Json) -> None:
    assert system["schemaVersion"] == 42
    assert system["uid"] == "trueup-system"


def _panel(dashboard: Json, kind: str) -> Json:
    return next(panel for panel in panels(dashboard) if panel["type"] == kind)


def _target(dashboard: Json, kind: str) -> Json:
    target: Json = _panel(dashboard, kind)["targets"][0]
    return target


SEEDED: dict[str, Callable[[Json], object]] = {
    "misspelt option": lambda d: _panel(d, "stat")["fieldConfig"]["defaults"].update(decimal=1),
    "broken PromQL": lambda d: _target(d, "stat").update(expr="sum(a"),
    "undefined variable": lambda d: _target(d, "stat").update(expr='up{a="$nope"}'),
    "undefined variable in a title": lambda d: _panel(d, "table").update(title="of $nope"),
    "no unit": lambda d: _panel(d, "timeseries")["fieldConfig"]["defaults"].pop("unit"),
    "no description": lambda d: _panel(d, "timeseries").update(description="A rate."),
    "no cohort time": lambda d: _panel(d, "table").update(description="word " * 20),
    "no words for no data": lambda d: _panel(d, "table")["fieldConfig"]["defaults"].pop("noValue"),
    "unknown data source": lambda d: _target(d, "stat").update(datasource={"uid": "elsewhere"}),
    "override of a gone series": lambda d: _panel(d, "timeseries")["fieldConfig"]["overrides"][-1]["matcher"].update(
        options="hihg"
    ),
    "counter without rate": lambda d: _target(d, "stat").update(expr="sum(trueup_records_total)"),
    "fixed range": lambda d: _target(d, "stat").update(expr="sum(rate(trueup_records_total[3m]))"),
    "windows mixed": lambda d: _target(d, "timeseries").update(expr="max by (rate) (trueup_rate_ratio)"),
    "workers summed": lambda d: _target(d, "timeseries").update(
        expr="sum by (rate, window, cube, family) (trueup_rate_denominator_sessions)"
    ),
    "overlapping panels": lambda d: _panel(d, "table")["gridPos"].update(y=0),
    "too wide": lambda d: _panel(d, "table")["gridPos"].update(x=20),
    "one id twice": lambda d: _panel(d, "table").update(id=1),
    "editable": lambda d: d.update(editable=True),
    "no uid": lambda d: d.update(uid=""),
    "variable that is not refreshed": lambda d: d["templating"]["list"][2].update(refresh=0),
}


@pytest.mark.parametrize("fault", SEEDED)
def test_a_seeded_fault_is_found(system: Json, fault: str) -> None:
    broken = copy.deepcopy(system)
    SEEDED[fault](broken)

    assert faults(broken) or lost_in_round_trip(broken)
