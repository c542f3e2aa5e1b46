"""Every series that the dashboard and the rules ask for is one that a running demo exposes, with these labels."""

from __future__ import annotations

import json
import re

import pytest

from pipeline.core.effects import Result
from pipeline.metrics import CAUGHT_UP, METRICS, SESSION_LIKE, Type
from schemas.segment import WINDOWS, Rate
from schemas.topics import Stage
from tests.monitoring import promql
from tests.monitoring.dashboards import expressions, variables
from tests.monitoring.exposition import Exposed, exposed
from tests.monitoring.rules import ROOT, alerts, recorded, rules

DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
PROMETHEUS_OWN = {"ALERTS"}
# Counted only when it happens: of these alone a healthy demo may have no series.
ONLY_IN_TROUBLE = {CAUGHT_UP.name, SESSION_LIKE.name}
# Labels whose values are a closed set of the code: one that no session of the demo had is still a right one.
CLOSED = {
    "rate": {str(rate) for rate in Rate},
    "window": set(WINDOWS),
    "cube": {"system", "family"},
    "stage": {str(stage) for stage in Stage},
    "result": {str(result) for result in Result},
}
IDS = re.compile(r"(session|trace|span|user|conversation|event|subject)(_id)?$")


def asked() -> list[promql.Selector]:
    queries = [query for file in DASHBOARDS for query in expressions(json.loads(file.read_text("utf-8")))]
    queries += [rule["expr"] for rule in rules()]
    found = [selector for query in queries for selector in promql.selectors(query)]
    return [selector for selector in found if selector.name not in PROMETHEUS_OWN | recorded().keys()]


def misses(metrics: Exposed, selector: promql.Selector) -> str | None:
    """Why this selector would find nothing in what is exposed."""
    if selector.name not in metrics.declared:
        return f"{selector.name} is not exposed"
    exists = selector.name in metrics.series or selector.name not in ONLY_IN_TROUBLE
    known = metrics.labels_of(selector.name) if exists else declared_labels()[selector.name]
    if strange := selector.labels - known:
        return f"{selector.name} has no label {', '.join(sorted(strange))}"
    for label, operator, value in selector.matchers:
        values = {labels.get(label, "") for labels in metrics.series.get(selector.name, [])} | CLOSED.get(label, set())
        if operator in {"=", "=~"} and not any(re.fullmatch(value, there) for there in values):
            return f"{selector.name} has no {label} {operator} {value}"
    return None


def declared_labels() -> dict[str, set[str]]:
    """Of every series that the exporter can make; `family` is the one dimension of the dashboards."""
    labels: dict[str, set[str]] = {}
    for metric in METRICS:
        own = set(metric.labels) | ({"family"} if metric.dimensions else set())
        if metric.type is Type.HISTOGRAM:
            labels |= {f"{metric.name}_bucket": own | {"le"}, f"{metric.name}_count": own, f"{metric.name}_sum": own}
        else:
            labels[metric.name] = own
    return labels


def wanted() -> list[object]:
    every = {f"{s.name}{{{','.join(map(''.join, s.matchers))}}} by {s.kept}": s for s in asked()}
    return [pytest.param(every[name], id=name) for name in sorted(every)]


@pytest.mark.parametrize("selector", wanted())
def test_a_series_that_is_asked_for_is_declared(selector: promql.Selector) -> None:
    assert selector.labels <= declared_labels()[selector.name]


@pytest.mark.parametrize("selector", wanted())
def test_a_series_that_is_asked_for_is_exposed_with_these_labels(metrics: Exposed, selector: promql.Selector) -> None:
    assert misses(metrics, selector) is None


def test_a_recorded_series_keeps_the_labels_by_which_alerts_ask_for_it() -> None:
    kept = {
        name: {label for _, labels, _ in promql.aggregations(expr) for label in labels}
        for name, expr in recorded().items()
    }
    derived = {label for labels in kept.values() for label in labels}
    for rule in alerts():
        for selector in promql.selectors(rule["expr"]):
            if selector.name in kept:
                assert selector.labels <= (kept[selector.name] or derived)


def test_the_values_of_the_closed_labels_are_ours(metrics: Exposed) -> None:
    for name, every in metrics.series.items():
        for label, allowed in CLOSED.items():
            strange = {
                labels[label] for labels in every if label in labels and name.startswith("trueup_rate_")
            } - allowed
            assert not strange, f"{name} has {label} {strange}"


def test_no_label_is_an_id_and_no_sample_has_a_timestamp(metrics: Exposed) -> None:
    ours = {name for name in metrics.series if name.startswith("trueup_")}

    assert not {label for name in ours for label in metrics.labels_of(name) if IDS.fullmatch(label)}
    assert not metrics.timestamped & ours


def test_rates_carry_no_partition_and_the_family_only_in_its_cube(metrics: Exposed) -> None:
    for name, every in metrics.series.items():
        if name.startswith("trueup_rate_"):
            assert "partition" not in metrics.labels_of(name)
            assert {(labels["cube"] == "family") == ("family" in labels) for labels in every} == {True}


def test_every_number_of_a_rate_lies_where_it_can(metrics: Exposed) -> None:
    ratios = {(d["rate"], d["window"], d["cube"], d.get("family")) for d in metrics.series["trueup_rate_ratio"]}
    for bound in ("trueup_rate_lower_ratio", "trueup_rate_upper_ratio", "trueup_rate_effective_n"):
        assert ratios <= {(d["rate"], d["window"], d["cube"], d.get("family")) for d in metrics.series[bound]}


def test_the_first_choice_of_every_variable_exists() -> None:
    for file in DASHBOARDS:
        chosen = variables(json.loads(file.read_text("utf-8")))
        assert chosen["window"] in WINDOWS
        assert chosen["rate"] in set(Rate)


SAMPLE = """# TYPE trueup_rate_ratio gauge
trueup_rate_ratio{rate="completion",window="7d",cube="system"} 0.5
# TYPE trueup_records counter
trueup_records_total{stage="judge",result="used",reason=""} 3
# EOF
"""


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        pytest.param("trueup_rate_ration", "trueup_rate_ration is not exposed", id="misspelt name"),
        pytest.param(
            'trueup_rate_ratio{agent="x"}', "trueup_rate_ratio has no label agent", id="label that is not there"
        ),
        pytest.param(
            "max by (partition) (trueup_rate_ratio)",
            "trueup_rate_ratio has no label partition",
            id="label kept by by()",
        ),
        pytest.param(
            'trueup_rate_ratio{rate="completeness"}',
            "trueup_rate_ratio has no rate = completeness",
            id="value of no rate",
        ),
        pytest.param(
            'rate(trueup_records_total{result="dead_letter"}[5m])',
            "trueup_records_total has no result = dead_letter",
            id="value of no result",
        ),
    ],
)
def test_a_wrong_name_label_or_value_is_found(query: str, reason: str) -> None:
    sample = exposed(SAMPLE, "application/openmetrics-text")

    assert [misses(sample, selector) for selector in promql.selectors(query)] == [reason]
    assert misses(sample, promql.selectors('trueup_rate_ratio{rate="completion",window="24h"}')[0]) is None
