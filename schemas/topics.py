"""Every topic: its name, what it carries, how it is keyed and how long it is kept.

The rule this file keeps: a record's partition is a pure function of its key and of the number of partitions, the same
in every process, so that all records of a key meet in one place and in the order in which they were sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32


class Topic(StrEnum):
    OTLP_SPANS = "otlp_spans"
    OTLP_LOGS = "otlp_logs"
    OUTCOMES = "trueup.outcomes"
    SPANS = "trueup.spans"
    SESSION_EVENTS = "trueup.session-events"
    CORRELATIONS = "trueup.correlations"
    PARTIALS = "trueup.partials"
    ROWS = "trueup.rows"
    VERDICTS = "trueup.verdicts"
    DEAD_LETTERS = "trueup.dead-letters"
    CONTRACTS = "trueup.contracts"
    RESOLVE_SNAP = "trueup.resolve-snap"
    CORRELATE_SNAP = "trueup.correlate-snap"
    JUDGE_SNAP = "trueup.judge-snap"
    MEASURE_SNAP = "trueup.measure-snap"


class Stage(StrEnum):
    """The stages in the order data flows; `ingest` is stateless, `sink` writes to ClickHouse."""

    INGEST = "ingest"
    RESOLVE = "resolve"
    CORRELATE = "correlate"
    JUDGE = "judge"
    MEASURE = "measure"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """How a topic is made.

    Args:
        key: what a record is keyed by, in words.
        users_own: the users make it; we only make it when it is missing.
        compacted: `cleanup.policy=compact`; topics of batches never are, since compaction would keep one batch a key.
        retention_ms: -1 keeps for ever (compacted), None leaves the broker's default.
    """

    key: str
    users_own: bool = False
    compacted: bool = False
    retention_ms: int | None = None


DAY_MS = 86_400_000

TOPICS: dict[Topic, TopicSpec] = {
    Topic.OTLP_SPANS: TopicSpec("any", users_own=True),
    Topic.OTLP_LOGS: TopicSpec("any", users_own=True),
    Topic.OUTCOMES: TopicSpec("any", users_own=True),
    Topic.SPANS: TopicSpec("tenant, trace", retention_ms=3 * DAY_MS),
    Topic.SESSION_EVENTS: TopicSpec("tenant, conversation", retention_ms=3 * DAY_MS),
    Topic.CORRELATIONS: TopicSpec("outcome identity, then correlation key; subject", retention_ms=3 * DAY_MS),
    Topic.PARTIALS: TopicSpec("segment", retention_ms=3 * DAY_MS),
    Topic.ROWS: TopicSpec("partition of the stage that sent it", retention_ms=7 * DAY_MS),
    Topic.VERDICTS: TopicSpec("tenant, conversation, ordinal", compacted=True, retention_ms=-1),
    Topic.DEAD_LETTERS: TopicSpec("source", retention_ms=14 * DAY_MS),
    Topic.CONTRACTS: TopicSpec("family and version; all in partition 0, the first holds", retention_ms=-1),
    Topic.RESOLVE_SNAP: TopicSpec("partition", retention_ms=7 * DAY_MS),
    Topic.CORRELATE_SNAP: TopicSpec("partition", retention_ms=7 * DAY_MS),
    Topic.JUDGE_SNAP: TopicSpec("partition", retention_ms=7 * DAY_MS),
    Topic.MEASURE_SNAP: TopicSpec("partition", retention_ms=7 * DAY_MS),
}


def partition_of(partitions: int, *key: str | bytes) -> int:
    """The partition of a key.

    Source: CRC-32 of the parts, each followed by a zero byte (a part cannot forge a border, since ids hold no zero).
    """
    crc = 0
    for part in key:
        crc = crc32(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part, crc)
        crc = crc32(b"\0", crc)
    return crc % partitions
