"""Alerts: named, documented and tested; and their promtool tests find a rule that was broken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from grafana.build import queries, system
from schemas.segment import GOOD_DOWN, WINDOWS, Rate
from tests.monitoring import promql
from tests.monitoring.dashboards import variables
from tests.monitoring.rules import ROOT, RULES_FILE, RUNBOOKS, TESTS_FILE, Rule, alerts, recorded, rules

NAMES = sorted({rule["alert"] for rule in alerts()})
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    assert sorted(file.stem for file in RUNBOOKS.glob("*.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_says_what_it_means_what_it_costs_how_to_look_and_what_to_do(name: str) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")

    assert text.splitlines()[0] == f"# {name}"
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert all(len(section.split()) > 10 for section in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_that_a_runbook_names_is_on_the_dashboard(name: str) -> None:
    dashboard = json.loads((ROOT / "grafana" / "dashboards" / f"{system.UID}.json").read_text("utf-8"))
    titles = " | ".join(panel["title"] for panel in dashboard["panels"])
    named = re.findall(r'"([^"]+)"', (RUNBOOKS / f"{name}.md").read_text("utf-8").replace("\n", " "))

    assert named
    assert [panel for panel in named if " ".join(panel.split()) not in titles] == []


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: f"{rule['alert']}-{rule['labels'].get('cause', '')}")
def test_an_alert_says_how_bad_it_is_what_it_means_and_where_to_look(rule: Rule) -> None:
    labels, notes = rule["labels"], rule["annotations"]

    assert labels["severity"] in {"page", "ticket"}
    assert labels["component"] in {"agents", "pipeline"}
    assert "cube" in labels or all(s.name.startswith("cube_family:") for s in promql.selectors(rule["expr"]))
    assert set(notes) == {"summary", "description", "runbook_url", "dashboard_url"}
    assert notes["runbook_url"] == f"grafana/runbooks/{rule['alert']}.md"
    assert "for" in rule


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: f"{rule['alert']}-{rule['labels'].get('cause', '')}")
def test_the_link_of_an_alert_opens_a_dashboard_that_knows_its_variables(rule: Rule) -> None:
    path, _, query = rule["annotations"]["dashboard_url"].partition("?")
    dashboard = json.loads((ROOT / "grafana" / "dashboards" / f"{path.removeprefix('/d/')}.json").read_text("utf-8"))

    assert dashboard["uid"] == system.UID
    assert set(re.findall(r"var-(\w+)=", query)) <= variables(dashboard).keys()


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [
        c for test in yaml.safe_load(TESTS_FILE.read_text("utf-8"))["tests"] for c in test.get("alert_rule_test", [])
    ]

    assert sorted({case["alertname"] for case in cases if case["exp_alerts"]}) == NAMES
    assert sorted({case["alertname"] for case in cases if not case["exp_alerts"]}) == NAMES


def test_every_cause_of_no_data_fires_in_a_test() -> None:
    causes = {rule["labels"]["cause"] for rule in alerts() if "cause" in rule["labels"]}
    fired = re.findall(r"cause: (\w+)", TESTS_FILE.read_text("utf-8"))

    assert causes == set(fired)


def test_the_dashboard_lists_exactly_the_alerts_there_are() -> None:
    assert sorted(queries.ALERTS) == NAMES


def test_names_follow_prometheus_practice_and_what_is_recorded_is_used_or_shown() -> None:
    asked = {s.name for rule in rules() for s in promql.selectors(rule["expr"])}
    asked |= set(re.findall(r"[a-z_]+:trueup_rate:\w+", RULES_FILE.read_text("utf-8").split("trueup-alerts")[1]))

    assert all(re.fullmatch(r"[a-z_]+:trueup_[a-z_]+:[a-z_]+", name) for name in recorded())
    assert set(recorded()) <= asked


def test_rules_and_dashboard_know_which_rates_are_better_low() -> None:
    better_low = {value for rule in rules() for s in promql.selectors(rule["expr"]) for value in _better_low(s)}

    assert better_low == {"|".join(sorted(GOOD_DOWN, reverse=True))}
    assert f'rate=~"{better_low.pop()}"' == queries.BETTER_LOW


def test_the_dashboard_offers_every_rate_and_window() -> None:
    assert set(system.RATES.split(",")) == set(Rate)
    assert set(system.WINDOWS.split(",")) == set(WINDOWS)


def _better_low(selector: promql.Selector) -> list[str]:
    return [value for label, operator, value in selector.matchers if label == "rate" and operator in {"=~", "!~"}]


BROKEN = {
    "fires at once": ("for: 15m", "for: 0s"),
    "forgets at once": ("keep_firing_for: 15m", "keep_firing_for: 0s"),
    "takes the wrong end of the interval": (
        '- cube_family:trueup_rate:upper_ratio{rate!~"reopen|escalation"}',
        '- cube_family:trueup_rate:lower_ratio{rate!~"reopen|escalation"}',
    ),
    "reads a bad rate as a good one": ('rate=~"reopen|escalation"', 'rate=~"reopen"'),
    "trusts few sessions": (
        'effective_n{window="24h"} >= 30\n        for',
        'effective_n{window="24h"} >= 1\n        for',
    ),
    "week accuses a good day": ("unless on (rate, cube, family)", "and on (rate, cube, family)"),
    "takes the narrowest interval of two owners": (
        "expr: max by (rate, window, cube, family) (trueup_rate_upper_ratio)",
        "expr: min by (rate, window, cube, family) (trueup_rate_upper_ratio)",
    ),
    "sums two owners": (
        "expr: min by (rate, window, cube, family) (trueup_rate_effective_n)",
        "expr: sum by (rate, window, cube, family) (trueup_rate_effective_n)",
    ),
    "counts a partition twice": (
        "count by (stage) (max by (stage, partition) (trueup_partition_owned) == 1)",
        "count by (stage) (trueup_partition_owned == 1)",
    ),
    "never misses a worker": ("absent(trueup_partition_owned)", "absent(vector(1))"),
    "never misses records": ("(sum(rate(trueup_records_total[1h])) > 0)", "(sum(trueup_records_total) > 0)"),
    "never misses sessions": (
        'max(trueup_rate_denominator_sessions{cube="system",window="7d"}) > 0',
        "vector(1) > 0",
    ),
    "measures the watermark by the clock": (
        'changes(stage_partition:trueup_watermark_timestamp_seconds:max{stage!="ingest"}[15m]) == 0',
        'time() - stage_partition:trueup_watermark_timestamp_seconds:max{stage!="ingest"} > 900',
    ),
    "calls a finished demo stuck": ("sum(rate(trueup_records_total[15m])) > 0\n", "vector(1) > 0\n"),
    "calls a new worker stuck": (
        'stage_partition:trueup_watermark_timestamp_seconds:max{stage!="ingest"} offset 15m',
        'stage_partition:trueup_watermark_timestamp_seconds:max{stage!="ingest"}',
    ),
    "calls a partition without spans stuck": ('{stage!="ingest"}', ""),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_rule_tests_find_a_broken_rule(tmp_path: Path, fault: str) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: `make test-monitoring` installs it or names its package"
    before, after = BROKEN[fault]
    original = RULES_FILE.read_text("utf-8")
    assert before in original
    (tmp_path / RULES_FILE.name).write_text(original.replace(before, after), "utf-8")
    shutil.copy(TESTS_FILE, tmp_path)

    checked = subprocess.run([promtool, "check", "rules", tmp_path / RULES_FILE.name], capture_output=True, check=False)
    tested = subprocess.run([promtool, "test", "rules", tmp_path / TESTS_FILE.name], capture_output=True, check=False)

    assert checked.returncode == 0, "the fault must be one that only the tests can find"
    assert tested.returncode == 1
