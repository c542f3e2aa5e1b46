from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pipeline import metrics
from pipeline.sinks.prometheus import Exporter
from schemas.segment import CountReading, Dimensions, MeanReading, RateReading

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
ROOT = Path(__file__).parents[3]


def reading(family: str = "returns", numerator: int = 1, denominator: int = 2, **given: object) -> RateReading:
    values: dict[str, object] = {
        "cube": "family",
        "dimensions": (("family", family),),
        "rate": "completion",
        "window": "24h",
        "numerator": numerator,
        "denominator": denominator,
        "ratio": 0.5,
        "lower": 0.25,
        "upper": 0.75,
        "effective_n": 2.0,
        "maturity": 0.9,
        "target": 0.8,
        "as_of": 1,
    }
    return RateReading(**(values | given))  # type: ignore[arg-type]


@dataclass
class Fake:
    """A worker that says what it is told to say."""

    of_rates: list[RateReading] = field(default_factory=list)
    of_records: list[tuple[str, str, str, int]] = field(default_factory=list)
    of_watermarks: list[tuple[str, int, int]] = field(default_factory=list)
    of_owned: list[tuple[str, int]] = field(default_factory=list)
    of_means: list[MeanReading] = field(default_factory=list)
    of_counts: list[CountReading] = field(default_factory=list)

    def rates(self) -> Iterable[RateReading]:
        return self.of_rates

    def contracts(self) -> dict[str, Any]:
        return {"in_force": [], "refused": []}

    def summaries(self) -> tuple[list[MeanReading], list[CountReading]]:
        return self.of_means, self.of_counts

    def records(self) -> Iterable[tuple[str, str, str, int]]:
        return self.of_records

    def watermarks(self) -> Iterable[tuple[str, int, int]]:
        return self.of_watermarks

    def owned(self) -> Iterable[tuple[str, int]]:
        return self.of_owned

    def partitions(self) -> Iterable[tuple[str, int]]:
        return [("judge", 8)]

    def caught_up(self) -> Iterable[tuple[str, str, int]]:
        return [("judge", "trueup.session-events", 3)]

    def commit_ages(self) -> Iterable[tuple[str, int, float]]:
        return [("trueup.rows", 2, 12.5)]

    def session_like(self) -> Iterable[tuple[str, int]]:
        return [("acme.sessionId", 5)]

    def gauges(self) -> Mapping[str, float]:
        return {"trueup_open_sessions": 4.0}


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(page: Iterable[Metric]) -> Samples:
    found: Samples = {}
    for family in page:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"twice: {key}"
            assert sample.timestamp is None
            found[key] = sample.value
    return found


def scraped(exporter: Exporter) -> Samples:
    body, content_type = exporter.scrape(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    found = samples(parse_openmetrics(body.decode()))
    older, older_type = exporter.scrape("")
    assert older_type.startswith("text/plain")
    assert samples(parse_text(older.decode())) == found
    return found


def named(found: Samples, name: str) -> dict[str, float]:
    """Values by family label."""
    return {dict(labels).get("family", ""): value for (n, labels), value in found.items() if n == name}


def test_a_rate_is_told_whole_with_its_window_and_cube() -> None:
    found = scraped(Exporter(Fake([reading(numerator=0)]), "1.2.3"))

    labels = frozenset({("family", "returns"), ("rate", "completion"), ("window", "24h"), ("cube", "family")})
    told = {name: value for (name, at), value in found.items() if at == labels}
    assert told == {
        "trueup_rate_numerator_sessions": 0,
        "trueup_rate_denominator_sessions": 2,
        "trueup_rate_ratio": 0.5,
        "trueup_rate_lower_ratio": 0.25,
        "trueup_rate_upper_ratio": 0.75,
        "trueup_rate_effective_n": 2,
        "trueup_rate_maturity_ratio": 0.9,
        "trueup_rate_target_ratio": 0.8,
    }
    assert found["trueup_build_info", frozenset({("version", "1.2.3")})] == 1


def test_without_a_denominator_there_is_no_sample_and_without_an_estimate_no_interval() -> None:
    empty = reading("empty", 0, 0, ratio=None, maturity=None)
    unknown = reading("unknown", 0, 5, ratio=None, maturity=None, target=None)
    found = scraped(Exporter(Fake([empty, unknown]), "1"))

    names = {name for name, labels in found if ("family", "unknown") in labels}
    assert names == {"trueup_rate_numerator_sessions", "trueup_rate_denominator_sessions"}
    assert not [key for key in found if ("family", "empty") in key[1]]


def test_a_partition_that_went_away_has_no_series() -> None:
    worker = Fake(of_owned=[("judge", 0), ("judge", 1)], of_watermarks=[("judge", 0, 1_500_000_000), ("judge", 1, 0)])
    exporter = Exporter(worker, "1")
    before = scraped(exporter)
    worker.of_owned, worker.of_watermarks = [("judge", 1)], []
    after = scraped(exporter)

    owned = "trueup_partition_owned"
    assert [dict(labels)["partition"] for name, labels in before if name == owned] == ["0", "1"]
    assert [dict(labels)["partition"] for name, labels in after if name == owned] == ["1"]
    watermarks = {labels: v for (name, labels), v in before.items() if name == "trueup_watermark_timestamp_seconds"}
    assert watermarks == {frozenset({("stage", "judge"), ("partition", "0")}): 1.5}
    assert not [name for name, _ in after if name == "trueup_watermark_timestamp_seconds"]


def test_the_pipelines_own_numbers_are_told() -> None:
    worker = Fake(of_records=[("ingest", "dropped", "duplicate", 7)])
    exporter = Exporter(worker, "1")
    exporter.outcome_delays.observe(4)
    found = scraped(exporter)

    dropped = frozenset({("stage", "ingest"), ("result", "dropped"), ("reason", "duplicate")})
    assert found["trueup_records_total", dropped] == 7
    assert (
        found["trueup_caught_up_records_total", frozenset({("stage", "judge"), ("topic", "trueup.session-events")})]
        == 3
    )
    assert found["trueup_session_like_attributes_total", frozenset({("attribute", "acme.sessionId")})] == 5
    waits = frozenset({("topic", "trueup.rows"), ("partition", "2")})
    assert found["trueup_commit_age_seconds", waits] == 12.5
    assert found["trueup_open_sessions", frozenset()] == 4
    assert found["trueup_partitions", frozenset({("stage", "judge")})] == 8
    assert found["trueup_outcome_to_gauge_seconds_bucket", frozenset({("le", "5.0")})] == 1
    assert found["trueup_outcome_to_gauge_seconds_bucket", frozenset({("le", "3.0")})] == 0
    assert not [name for name, _ in found if name.endswith("_created")]


def test_segments_beyond_the_budget_are_added_up() -> None:
    worker = Fake([reading(f"f{n}", n, 10 * n) for n in range(1, 6)])
    exporter = Exporter(worker, "1", label_budget=2)

    found = scraped(exporter)
    assert named(found, "trueup_rate_denominator_sessions") == {"f5": 50, "f4": 40, "__other__": 60}
    assert named(found, "trueup_rate_numerator_sessions") == {"f5": 5, "f4": 4, "__other__": 6}
    assert set(named(found, "trueup_rate_ratio")) == {"f5", "f4"}
    assert found["trueup_other_segments", frozenset({("cube", "family")})] == 3

    worker.of_rates = [reading("f1", 1, 10), reading("f4", 1, 11), reading("f2", 2, 99), reading("f3", 3, 98)]
    found = scraped(exporter)
    assert set(named(found, "trueup_rate_ratio")) == {"f4", "f2"}  # f4 stays, f5 is silent, f2 is the greatest now


def test_segments_that_look_alike_once_cleaned_do_not_make_a_double_series() -> None:
    found = scraped(Exporter(Fake([reading("a\x00", 1, 9), reading("a\x01", 2, 3), reading("__other__", 1, 4)]), "1"))

    assert named(found, "trueup_rate_denominator_sessions") == {"a\N{REPLACEMENT CHARACTER}": 9, "__other__": 7}


NASTY = [
    'MacBook Pro 14" R/W',
    "back\\slash",
    "new\nline",
    "\\n",
    "nul\0",
    "\udcfftest-api",
    "\r",
    "\x85",
    "\u2028",
    " ",
    "{}=",
]


@pytest.mark.parametrize("label", NASTY, ids=ascii)
def test_a_nasty_label_blinds_nobody(label: str) -> None:
    found = scraped(Exporter(Fake([reading(label, 1, 2), reading("good", 1, 3)]), "1"))

    assert named(found, "trueup_rate_denominator_sessions")["good"] == 3
    assert sorted(named(found, "trueup_rate_denominator_sessions").values()) == [2, 3]


any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@given(
    st.lists(st.tuples(any_text, st.integers(0, 5), st.integers(0, 5)), max_size=8),
    st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_a_real_parser_reads_every_page(rates: list[tuple[str, int, int]], budget: int) -> None:
    segments: dict[Dimensions, RateReading] = {}
    for family, numerator, denominator in rates:
        one = reading(family, numerator, denominator)
        segments[one.dimensions] = one
    exporter = Exporter(Fake(list(segments.values())), "1", budget)

    found = scraped(exporter)

    total = sum(r.denominator for r in segments.values())
    assert sum(named(found, "trueup_rate_denominator_sessions").values()) == total
    shown = named(found, "trueup_rate_ratio")
    assert len(shown) <= budget


def test_no_series_is_told_that_is_not_declared() -> None:
    means = [MeanReading("system", (), "score", "24h", 0.5, 2, 0.9, 1)]
    counts = [CountReading("system", (), what, "x", "24h", 1, 1) for what in ("state", "stage", "criterion")]
    records = [("ingest", "used", "", 1)]
    exporter = Exporter(Fake([reading()], records, [("judge", 0, 1)], [("judge", 0)], means, counts), "1")
    exporter.outcome_delays.observe(1)
    declared = {m.name: set(m.labels) for m in metrics.METRICS}

    names = {name for name, _ in scraped(exporter)}
    histogram = metrics.OUTCOME_TO_GAUGE.name
    told = {histogram if name.startswith(f"{histogram}_") else name for name in names}

    assert told <= declared.keys()
    plain = {"trueup_unresolved_traces", "trueup_waiting_outcomes", "trueup_sink_pending_rows"}
    assert declared.keys() - told <= plain | {metrics.CONTRACTS_IN_FORCE.name, metrics.CONTRACTS_REFUSED.name}


def test_the_page_of_metrics_is_fresh() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text("utf-8") == metrics.render()


def of(found: Samples, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Values of a metric by its labels without window and cube, in order."""
    return {
        tuple(sorted((key, value) for key, value in labels if key not in ("window", "cube"))): value
        for (n, labels), value in found.items()
        if n == name
    }


def test_a_mean_goes_with_its_count_and_its_target() -> None:
    means = [
        MeanReading("system", (), "coherence", "24h", 8.25, 4, 9.0, 1),
        MeanReading("system", (), "score", "24h", 0.5, 2, None, 1),
    ]
    found = scraped(Exporter(Fake(of_means=means), "1.2.3"))

    coherence, score = (("measure", "coherence"),), (("measure", "score"),)
    assert of(found, "trueup_mean") == {coherence: 8.25, score: 0.5}
    assert of(found, "trueup_mean_count") == {coherence: 4, score: 2}
    assert of(found, "trueup_mean_target") == {coherence: 9.0}


def test_failures_are_told_by_stage_and_by_criterion() -> None:
    dimensions = (("family", "order"),)
    counts = [
        CountReading("family", dimensions, "stage", "execution", "24h", 3, 1),
        CountReading("family", dimensions, "criterion", "paid", "24h", 5, 1),
        CountReading("family", dimensions, "state", "eligible", "24h", 9, 1),
    ]
    found = scraped(Exporter(Fake(of_counts=counts), "1.2.3"))

    family = ("family", "order")
    assert of(found, "trueup_window_failures") == {(family, ("stage", "execution")): 3}
    assert of(found, "trueup_window_criterion_failures") == {(("criterion", "paid"), family): 5}
    assert of(found, "trueup_window_sessions") == {(family, ("state", "eligible")): 9}


def test_segments_beyond_the_budget_have_one_mean_of_all_their_sessions() -> None:
    sizes = {"a": (1.0, 9), "b": (2.0, 2), "c": (5.0, 1)}
    rates = [reading(name, denominator=n) for name, (_, n) in sizes.items()]
    means = [
        MeanReading("family", (("family", name),), "turns", "24h", mean, n, None, 1)
        for name, (mean, n) in sizes.items()
    ]
    found = scraped(Exporter(Fake(rates, of_means=means), "1.2.3", label_budget=1))

    assert named(found, "trueup_mean") == {"a": 1.0, "__other__": 3.0}
    assert named(found, "trueup_mean_count") == {"a": 9, "__other__": 3}
