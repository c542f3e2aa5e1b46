"""Real OTLP records and outcome events through all stages in one process, and what readers see of it.

The rule this file keeps: nothing is handed to a stage but by the one before it, so that a case is tested as it arrives.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pipeline.core.contracts.book import ContractBook
from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.ingest import Ingest
from pipeline.core.timeline import SECOND, TimeRules, to_datetime
from pipeline.runners.local_runner import LocalRunner
from pipeline.topology import STAGES, Setup
from schemas.rows import TABLES
from schemas.segment import CUBES
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter
from tests.builders import T0, span_id, trace_id
from tests.property.contracts import BOOK
from tests.unit.core.ingest_support import json_request, json_span

CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}
AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
ORDER: dict[str, Any] = {**AGENT, "trueup.task.family": "order"}


def tool(name: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}


def sent(
    trace: int, number: int, start: int, end: int, said: dict[str, Any], parent: int | None = None, **fields: Any
) -> dict[str, Any]:
    """A span in OTLP's JSON; `said` are its attributes."""
    above = {} if parent is None else {"parentSpanId": span_id(parent)}
    ids = {"traceId": trace_id(trace), "spanId": span_id(number)}
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
    return json_span(said, **{**ids, **times, **above, **fields})


def turn(trace: int, start: int, said: dict[str, Any] | None = None, seconds: int = 10) -> list[dict[str, Any]]:
    """A run of ten seconds: an agent, which says `said`, over a model that answers."""
    first, end = trace * 100, start + seconds * SECOND
    root = sent(trace, first, start, end, {**AGENT, **(said or {})})
    return [root, sent(trace, first + 1, start, end, CHAT, first)]


class Line:
    """All stages.

    Args:
        sources: partitions of the topic that the spans come on.
        cubes: whose segments are counted.
        options: of `Ingest`.
    """

    def __init__(
        self,
        rules: TimeRules | None = None,
        book: ContractBook = BOOK,
        sources: int = 1,
        cubes: tuple[str, ...] = CUBES,
        **options: Any,
    ) -> None:
        rules = rules or TimeRules()
        counts = {Topic.OTLP_SPANS: sources}
        self.ingest = Ingest(2, rules, **options)
        self.runner = LocalRunner(STAGES, Setup(book, rules, 2, cubes=cubes), 2, self.ingest, counts)
        self.now = T0

    def spans(
        self, *spans: dict[str, Any], record_time: int | None = None, resource: Any = None, partition: int = 0
    ) -> Line:
        """One record, written a second after its last span ended unless it is said when."""
        if record_time is None:
            record_time = max(int(one["endTimeUnixNano"]) for one in spans) + SECOND
        return self.record(json_request(*spans, resource=resource), record_time, partition)

    def record(self, value: bytes, record_time: int, partition: int = 0) -> Line:
        self.runner.feed(Topic.OTLP_SPANS, value, record_time, partition)
        self.runner.drain()
        return self

    def outcome(self, event_id: str, time: int, kind: str = "evidence", **more: Any) -> Line:
        """An outcome event, written a second later."""
        event = {"event_id": event_id, "event_time": to_datetime(time).isoformat(), "source": "crm", "kind": kind}
        self.runner.feed(Topic.OUTCOMES, json.dumps({**event, **more}).encode(), time + SECOND)
        self.runner.drain()
        return self

    def until(self, now: int) -> Line:
        """Event time comes to `now` everywhere."""
        self.runner.end_of_input(now)
        return self

    # -- what is seen --------------------------------------------------------------------------------------------------

    def sessions(self, conversation: str | None = None) -> list[dict[str, Any]]:
        """Of every session the document with the highest version, tombstones left out."""
        newest: dict[bytes, dict[str, Any]] = {}
        for key, value in self.runner.verdicts():
            if value is None:  # a tombstone: erased
                newest.pop(key, None)
                continue
            document = json.loads(value)
            if key not in newest or document["version"] > newest[key]["version"]:
                newest[key] = document
        found = [one for one in newest.values() if not one["deleted"]]
        wanted = [one for one in found if conversation is None or one["conversation"] == conversation]
        return sorted(wanted, key=lambda one: (one["conversation"], one["ordinal"]))

    def only(self) -> dict[str, Any]:
        (found,) = self.sessions()
        return found

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows for a table, old versions too."""
        return [dict(zip(TABLES[table], values, strict=True)) for values in self.runner.rows(table)]

    def rate(self, name: str) -> tuple[int, int]:
        """(numerator, denominator) of the system row, over all buckets."""
        rows = [row for row in self.rows("segment_metrics") if row["cube"] == "system" and row["rate"] == name]
        newest = {row["bucket"]: row for row in sorted(rows, key=lambda row: row["version"])}.values()
        return sum(row["numerator"] for row in newest), sum(row["denominator"] for row in newest)

    def counted(self, result: str, reason: str, stage: Stage | None = None) -> int:
        total: Counter[tuple[str, str]] = Counter()
        for name, counts in self.runner.counts.items():
            if stage in (None, name):
                total.update(counts)
        return total[result, reason]

    def letters(self) -> list[DeadLetter]:
        return self.runner.dead_letters()

    def waiting(self) -> int:
        """Outcomes that no session has yet."""
        steps = self.runner.steps(Stage.CORRELATE).values()
        return sum(step.waiting_outcomes() for step in steps if isinstance(step, CorrelateStep))
