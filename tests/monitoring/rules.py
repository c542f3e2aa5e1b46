"""The rules files as data: which series they record, which they ask for, which alerts they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
ALERTS_FOLDER = ROOT / "grafana" / "alerts"
RULES_FILE = ALERTS_FOLDER / "trueup.rules.yml"
TESTS_FILE = ALERTS_FOLDER / "trueup.rules_test.yml"
RUNBOOKS = ROOT / "grafana" / "runbooks"

Rule = dict[str, Any]


def rules() -> list[Rule]:
    document = yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts() -> list[Rule]:
    return [rule for rule in rules() if "alert" in rule]


def recorded() -> dict[str, str]:
    return {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
