"""The exporter: everything is made at scrape time from what this worker owns now.

The rule this file keeps: no series outlives what it speaks of. A partition that was handed over, a segment that fell
silent and a rate without a denominator are simply not there at the next scrape, and nobody has to remove them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from pipeline import metrics
from pipeline.sinks.summaries import families as summary_families
from schemas.segment import CountReading, Dimensions, MeanReading, RateReading

LABEL_LENGTH = 128
BAD = "\N{REPLACEMENT CHARACTER}"

GAUGES_OF_A_RATE: tuple[tuple[metrics.Metric, Callable[[RateReading], float | None]], ...] = (
    (metrics.RATE_NUMERATOR, lambda r: r.numerator),
    (metrics.RATE_DENOMINATOR, lambda r: r.denominator),
    (metrics.RATE_RATIO, lambda r: r.ratio),
    (metrics.RATE_LOWER, lambda r: None if r.ratio is None else r.lower),
    (metrics.RATE_UPPER, lambda r: None if r.ratio is None else r.upper),
    (metrics.RATE_EFFECTIVE_N, lambda r: None if r.ratio is None else r.effective_n),
    (metrics.RATE_MATURITY, lambda r: r.maturity),
    (metrics.RATE_TARGET, lambda r: r.target),
)


class Readings(Protocol):
    """What a worker has to say of itself at a scrape."""

    def rates(self) -> Iterable[RateReading]: ...

    def summaries(self) -> tuple[list[MeanReading], list[CountReading]]:
        """Means, and sessions by state, stage and criterion."""

    def records(self) -> Iterable[tuple[str, str, str, int]]:
        """Stage, result, reason, how many since the process began."""

    def watermarks(self) -> Iterable[tuple[str, int, int]]:
        """Stage, partition, ns."""

    def owned(self) -> Iterable[tuple[str, int]]:
        """Stage, partition; only once it is restored."""

    def partitions(self) -> Iterable[tuple[str, int]]:
        """Stage, how many partitions it has."""

    def caught_up(self) -> Iterable[tuple[str, str, int]]:
        """Stage, topic, how many messages were read past the engine."""

    def commit_ages(self) -> Iterable[tuple[str, int, float]]:
        """Topic, partition, seconds."""

    def session_like(self) -> Iterable[tuple[str, int]]:
        """Unknown attributes that look as if they held conversation ids, and of how many spans."""

    def gauges(self) -> Mapping[str, float]:
        """By name, of `metrics.PLAIN_GAUGES`."""

    def contracts(self) -> dict[str, Any]:
        """The contracts in force, and the files that are refused and why."""


class Exporter(Collector):
    """The `/metrics` of one worker.

    Args:
        version: trueup's own, for the build info.
        label_budget: segments that a cube may show; those beyond are added up as `__other__`.

    Attributes:
        outcome_delays: from an outcome's Kafka record to the gauges, in seconds; the worker observes it.
    """

    def __init__(self, readings: Readings, version: str, label_budget: int = 1000) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._readings = readings
        self._version = version
        self._budget = label_budget
        self._shown: dict[str, set[Dimensions]] = {}
        self._labels: dict[str, dict[Dimensions, dict[str, str]]] = {}
        self.registry = CollectorRegistry(auto_describe=False)
        self.outcome_delays = Histogram(
            metrics.OUTCOME_TO_GAUGE.name,
            metrics.OUTCOME_TO_GAUGE.help,
            buckets=metrics.OUTCOME_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.registry.register(self)

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type: OpenMetrics where the reader takes it, else the older text."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterator[Family]:
        yield from self._rates()
        yield from summary_families(*self._readings.summaries(), self._labels_of)
        yield _counter(metrics.RECORDS, (((s, r, why), n) for s, r, why, n in self._readings.records()))
        yield _counter(metrics.SESSION_LIKE, (((key,), n) for key, n in self._readings.session_like()))
        yield _gauge(
            metrics.WATERMARK,
            (((s, str(p)), ns / 1_000_000_000) for s, p, ns in self._readings.watermarks() if ns),
        )
        yield _gauge(metrics.PARTITION_OWNED, (((s, str(p)), 1) for s, p in self._readings.owned()))
        yield _gauge(metrics.PARTITIONS, (((s,), n) for s, n in self._readings.partitions()))
        yield _counter(metrics.CAUGHT_UP, (((s, t), n) for s, t, n in self._readings.caught_up()))
        yield _gauge(metrics.COMMIT_AGE, (((t, str(p)), age) for t, p, age in self._readings.commit_ages()))
        for name, value in self._readings.gauges().items():
            yield _gauge(metrics.PLAIN_GAUGES[name], [((), value)])
        yield _gauge(metrics.BUILD_INFO, [((self._version,), 1)])

    def _rates(self) -> Iterator[Family]:
        families = {m.name: GaugeMetricFamily(m.name, m.help) for m, _ in GAUGES_OF_A_RATE}
        by_cube: dict[str, list[RateReading]] = {}
        for reading in self._readings.rates():
            if reading.denominator > 0:
                by_cube.setdefault(reading.cube, []).append(reading)
        self._labels = {}
        other = GaugeMetricFamily(metrics.OTHER_SEGMENTS.name, metrics.OTHER_SEGMENTS.help, labels=["cube"])
        for cube, readings in by_cube.items():
            beyond = self._add(families, cube, readings)
            other.add_metric([cube], beyond)
        self._shown = {cube: shown for cube, shown in self._shown.items() if cube in by_cube}
        yield from families.values()
        yield other

    def _labels_of(self, cube: str, dimensions: Dimensions) -> dict[str, str]:
        """The labels that a segment has at this scrape, as its rates have them; it may have no rate and yet room."""
        admitted = self._labels.get(cube, {})
        if dimensions in admitted:
            return admitted[dimensions]
        labels = {name: clean(value) for name, value in dimensions}
        room = len(admitted) < self._budget and labels not in admitted.values()
        return labels if room else dict.fromkeys(labels, metrics.OTHER)

    def _add(self, families: Mapping[str, GaugeMetricFamily], cube: str, readings: list[RateReading]) -> int:
        """Add one cube's samples; how many of its segments went into `__other__`."""
        admitted = self._admitted(cube, readings)
        beyond: set[Dimensions] = set()
        rest: dict[tuple[tuple[str, ...], str, str], list[int]] = {}
        for reading in readings:
            labels = admitted.get(reading.dimensions)
            if labels is None:
                beyond.add(reading.dimensions)
                key = (tuple(name for name, _ in reading.dimensions), reading.rate, reading.window)
                counts = rest.setdefault(key, [0, 0])
                counts[0] += reading.numerator
                counts[1] += reading.denominator
                continue
            fixed = {**labels, "rate": reading.rate, "window": reading.window, "cube": cube}
            for metric, value_of in GAUGES_OF_A_RATE:
                value = value_of(reading)
                if value is not None:
                    families[metric.name].add_sample(metric.name, fixed, value)
        for (names, rate, window), (numerator, denominator) in rest.items():
            fixed = {**dict.fromkeys(names, metrics.OTHER), "rate": rate, "window": window, "cube": cube}
            families[metrics.RATE_NUMERATOR.name].add_sample(metrics.RATE_NUMERATOR.name, fixed, numerator)
            families[metrics.RATE_DENOMINATOR.name].add_sample(metrics.RATE_DENOMINATOR.name, fixed, denominator)
        return len(beyond)

    def _admitted(self, cube: str, readings: list[RateReading]) -> dict[Dimensions, dict[str, str]]:
        """The segments that have series of their own, with their labels.

        Who is shown stays shown while it has sessions, so that no series flickers; free places go to the greatest. Two
        segments whose labels are equal once cleaned cannot both have them: a page with a double series is refused.
        """
        size: dict[Dimensions, int] = {}
        for reading in readings:
            size[reading.dimensions] = max(size.get(reading.dimensions, 0), reading.denominator)
        before = self._shown.get(cube, set())
        ranked = sorted(size, key=lambda d: (d not in before, -size[d], d))
        admitted: dict[Dimensions, dict[str, str]] = {}
        taken: set[tuple[str, ...]] = set()
        for dimensions in ranked:
            labels = {name: clean(value) for name, value in dimensions}
            values = tuple(labels.values())
            if len(admitted) < self._budget and values not in taken and metrics.OTHER not in values:
                admitted[dimensions] = labels
                taken.add(values)
        self._shown[cube], self._labels[cube] = set(admitted), admitted
        return admitted


def clean(value: str) -> str:
    """A label value that every parser takes: valid UTF-8, no control characters, not endless.

    One bad value would cost the whole page. Quotes, backslashes and newlines are the encoder's to escape.
    """
    if len(value) > LABEL_LENGTH:
        value = value[: LABEL_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    if value.isascii() and value.isprintable():
        return value
    return "".join(c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") else BAD for c in value)


def _gauge(metric: metrics.Metric, samples: Iterable[tuple[tuple[str, ...], float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric([clean(label) for label in labels], value)
    return family


def _counter(metric: metrics.Metric, samples: Iterable[tuple[tuple[str, ...], float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric([clean(label) for label in labels], value)
    return family
