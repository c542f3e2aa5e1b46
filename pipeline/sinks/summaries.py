"""Means, and sessions by state, stage and criterion, as gauges; made at scrape time like the rates.

The rule this file keeps: a segment has these where it has its rates; those beyond a cube's budget are added up, and a
mean of none is no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from pipeline import metrics
from schemas.segment import CountReading, Dimensions, MeanReading

Labels = Mapping[str, str]
LabelsOf = Callable[[str, Dimensions], Labels]
"""Cube and dimensions of a segment -> its labels; those of `__other__` where it is beyond the budget."""
COUNTS = {
    "state": metrics.WINDOW_SESSIONS,
    "stage": metrics.WINDOW_FAILURES,
    "criterion": metrics.WINDOW_CRITERION_FAILURES,
}


def families(
    means: Iterable[MeanReading], counts: Iterable[CountReading], labels_of: LabelsOf
) -> Iterator[GaugeMetricFamily]:
    yield from _means(means, labels_of)
    yield from _counts(counts, labels_of)


def _means(means: Iterable[MeanReading], labels_of: LabelsOf) -> Iterator[GaugeMetricFamily]:
    added: dict[tuple[tuple[str, str], ...], tuple[int, float, list[float | None]]] = {}
    for one in means:
        labels = {**labels_of(one.cube, one.dimensions), "measure": one.measure, "window": one.window, "cube": one.cube}
        key = tuple(labels.items())
        n, total, targets = added.get(key, (0, 0.0, []))
        added[key] = n + one.count, total + one.mean * one.count, [*targets, one.target]
    mean, count, target = (
        GaugeMetricFamily(metric.name, metric.help)
        for metric in (metrics.MEAN, metrics.MEAN_COUNT, metrics.MEAN_TARGET)
    )
    for key, (n, total, targets) in added.items():
        labels = dict(key)
        mean.add_sample(metrics.MEAN.name, labels, total / n)
        count.add_sample(metrics.MEAN_COUNT.name, labels, n)
        if len(targets) == 1 and targets[0] is not None:
            target.add_sample(metrics.MEAN_TARGET.name, labels, targets[0])
    yield from (mean, count, target)


def _counts(counts: Iterable[CountReading], labels_of: LabelsOf) -> Iterator[GaugeMetricFamily]:
    added: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for one in counts:
        labels = {**labels_of(one.cube, one.dimensions), one.what: one.name, "window": one.window, "cube": one.cube}
        key = one.what, tuple(labels.items())
        added[key] = added.get(key, 0) + one.count
    found = {what: GaugeMetricFamily(metric.name, metric.help) for what, metric in COUNTS.items()}
    for (what, labelled), n in added.items():
        found[what].add_sample(COUNTS[what].name, dict(labelled), n)
    yield from found.values()
