"""Every metric of trueup, declared once: the exporter makes no other, and `docs/metrics.md` is written from here.

The rule this file keeps: no session, trace or user id is ever a label. Base units, ratios from 0 to 1, `_total` on
counters alone; a rate's gauges are never to be added up over `rate` or `window`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Args:
        labels: those that every series has; the gauges of rates have the dimensions of their cube besides.
    """

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    dimensions: bool = False


OTHER = "__other__"
BY_RATE = ("rate", "window", "cube")
OUTCOME_BUCKETS_SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


def _rate(name: str, text: str) -> Metric:
    return Metric(f"trueup_rate_{name}", Type.GAUGE, text, BY_RATE, dimensions=True)


RATE_NUMERATOR = _rate(
    "numerator_sessions", "Sessions (tool calls for tool_success) that count as the rate says, observed."
)
RATE_DENOMINATOR = _rate(
    "denominator_sessions", "Sessions (tool calls for tool_success) that the rate is of, observed."
)
RATE_RATIO = _rate("ratio", "The rate, 0 to 1; of delayed rates the estimate that allows for what may still come.")
RATE_LOWER = _rate("lower_ratio", "Lower end of the rate's 95 % interval.")
RATE_UPPER = _rate("upper_ratio", "Upper end of the rate's 95 % interval.")
RATE_EFFECTIVE_N = _rate("effective_n", "How many independent sessions the interval is worth.")
RATE_MATURITY = _rate("maturity_ratio", "Share of the cohort's delayed evidence that is in.")
RATE_TARGET = _rate("target_ratio", "The target that the contract names.")
BY_MEASURE = ("measure", "window", "cube")
MEAN = Metric(
    "trueup_mean",
    Type.GAUGE,
    "Mean over the eligible sessions that have it: 0 to 10, 0 to 1, a count or dollars, as docs/contracts.md says.",
    BY_MEASURE,
    dimensions=True,
)
MEAN_COUNT = Metric("trueup_mean_count", Type.GAUGE, "Of how many sessions a mean is.", BY_MEASURE, dimensions=True)
MEAN_TARGET = Metric(
    "trueup_mean_target", Type.GAUGE, "The target that the contract names.", BY_MEASURE, dimensions=True
)
WINDOW_SESSIONS = Metric(
    "trueup_window_sessions",
    Type.GAUGE,
    "Sessions by state; a session is in several, so that they do not add up.",
    ("state", "window", "cube"),
    dimensions=True,
)
WINDOW_FAILURES = Metric(
    "trueup_window_failures",
    Type.GAUGE,
    "Eligible sessions that are incomplete, by the stage of the earliest cause.",
    ("stage", "window", "cube"),
    dimensions=True,
)
WINDOW_CRITERION_FAILURES = Metric(
    "trueup_window_criterion_failures",
    Type.GAUGE,
    "Eligible sessions in which a criterion failed or could not be judged, required or not.",
    ("criterion", "window", "cube"),
    dimensions=True,
)
OTHER_SEGMENTS = Metric(
    "trueup_other_segments", Type.GAUGE, f"Segments above a cube's budget, added up as {OTHER}.", ("cube",)
)

RECORDS = Metric(
    "trueup_records_total",
    Type.COUNTER,
    "Records by what became of them; used, dropped and dead_lettered add up to received, less those held.",
    ("stage", "result", "reason"),
)
SESSION_LIKE = Metric(
    "trueup_session_like_attributes_total",
    Type.COUNTER,
    f"Spans without a conversation id that have an unknown attribute whose name looks like one's, {OTHER} beyond 20.",
    ("attribute",),
)
WATERMARK = Metric(
    "trueup_watermark_timestamp_seconds",
    Type.GAUGE,
    "How far event time has come in a partition; absent until it is known.",
    ("stage", "partition"),
)
PARTITION_OWNED = Metric(
    "trueup_partition_owned", Type.GAUGE, "1 for each partition of this worker.", ("stage", "partition")
)
PARTITIONS = Metric("trueup_partitions", Type.GAUGE, "Partitions that a stage has, whoever owns them.", ("stage",))
CAUGHT_UP = Metric(
    "trueup_caught_up_records_total",
    Type.COUNTER,
    "Messages read directly because the engine did not deliver them.",
    ("stage", "topic"),
)
COMMIT_AGE = Metric(
    "trueup_commit_age_seconds",
    Type.GAUGE,
    "For how long something that waits in a partition has not become durable; 0 where nothing waits.",
    ("topic", "partition"),
)
OPEN_SESSIONS = Metric("trueup_open_sessions", Type.GAUGE, "Sessions that are not terminal yet.")
UNRESOLVED_TRACES = Metric("trueup_unresolved_traces", Type.GAUGE, "Traces whose conversation is not known yet.")
WAITING_OUTCOMES = Metric("trueup_waiting_outcomes", Type.GAUGE, "Outcomes whose session is not known yet.")
SINK_PENDING = Metric("trueup_sink_pending_rows", Type.GAUGE, "Rows read from Kafka that are not in ClickHouse yet.")
CONTRACTS_IN_FORCE = Metric(
    "trueup_contracts_in_force", Type.GAUGE, "Versions of contracts that this worker knows; the same in all workers."
)
CONTRACTS_REFUSED = Metric(
    "trueup_contracts_refused", Type.GAUGE, "What is wrong with this worker's contract files; /api/health says what."
)
OUTCOME_TO_GAUGE = Metric(
    "trueup_outcome_to_gauge_seconds",
    Type.HISTOGRAM,
    "From an outcome's record in Kafka to the verdict that counts it.",
)
BUILD_INFO = Metric("trueup_build_info", Type.GAUGE, "1; the version is the label.", ("version",))

METRICS: tuple[Metric, ...] = (
    RATE_NUMERATOR,
    RATE_DENOMINATOR,
    RATE_RATIO,
    RATE_LOWER,
    RATE_UPPER,
    RATE_EFFECTIVE_N,
    RATE_MATURITY,
    RATE_TARGET,
    MEAN,
    MEAN_COUNT,
    MEAN_TARGET,
    WINDOW_SESSIONS,
    WINDOW_FAILURES,
    WINDOW_CRITERION_FAILURES,
    OTHER_SEGMENTS,
    RECORDS,
    SESSION_LIKE,
    WATERMARK,
    PARTITION_OWNED,
    PARTITIONS,
    CAUGHT_UP,
    COMMIT_AGE,
    OPEN_SESSIONS,
    UNRESOLVED_TRACES,
    WAITING_OUTCOMES,
    SINK_PENDING,
    CONTRACTS_IN_FORCE,
    CONTRACTS_REFUSED,
    OUTCOME_TO_GAUGE,
    BUILD_INFO,
)
PLAIN_GAUGES: dict[str, Metric] = {m.name: m for m in METRICS if m.type is Type.GAUGE and not m.labels}
"""Gauges without labels, by name: what `Readings.gauges` may speak of."""


def render() -> str:
    """`docs/metrics.md`."""
    lines = [
        "# Metrics",
        "",
        "Written by `pipeline/metrics.py`; a test fails when this page is stale.",
        "",
        "A worker exposes them at `:6066/metrics`, made at each scrape from what it owns then. A rate without a",
        "denominator has no series. The gauges of rates have, besides the labels below, the dimensions of their cube",
        "(`family` for cube `family`); segments above a cube's budget are added up under",
        f"`{OTHER}`, with counts and without an estimate.",
        "`TRUEUP_CUBES=agent,family+tool` asks for more cubes, of `family`, `agent`, `model` and `tool`. A session",
        "counts once under each value that it has, so totals come from cubes without the last three.",
        "Every query keeps or fixes `rate` and `window`: a sum over them means nothing.",
        "A window counts the sessions that ended in it; it ends the longer of `session_gap` and `resume_window` before",
        "the watermark, at a bucket of 5 minutes. What is older than two days is kept by the hour; `7d` begins at one.",
        "",
        "| metric | type | labels | says |",
        "| --- | --- | --- | --- |",
    ]
    for metric in METRICS:
        labels = [f"`{label}`" for label in metric.labels] + (["dimensions"] if metric.dimensions else [])
        lines.append(f"| `{metric.name}` | {metric.type} | {', '.join(labels)} | {metric.help} |")
    return "\n".join(lines) + "\n"
