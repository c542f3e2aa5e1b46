"""What a scrape of /metrics holds: series by name, and the names that are declared and have no series yet."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

Labels = dict[str, str]
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",), "info": ("_info",)}


@dataclass(frozen=True, slots=True)
class Exposed:
    series: dict[str, list[Labels]]
    declared: frozenset[str]
    timestamped: frozenset[str]
    content_type: str

    def labels_of(self, name: str) -> set[str]:
        return {label for labels in self.series.get(name, []) for label in labels}


def exposed(text: str, content_type: str) -> Exposed:
    is_openmetrics = content_type.startswith("application/openmetrics-text")
    parse = openmetrics.text_string_to_metric_families if is_openmetrics else text_string_to_metric_families
    series: dict[str, list[Labels]] = {}
    declared, timestamped = set(), set()
    for family in parse(text):
        declared |= {family.name + suffix for suffix in SUFFIXES.get(family.type, ("",))}
        for sample in family.samples:
            series.setdefault(sample.name, []).append(dict(sample.labels))
            if sample.timestamp is not None:
                timestamped.add(sample.name)
    return Exposed(series, frozenset(declared | series.keys()), frozenset(timestamped), content_type)
