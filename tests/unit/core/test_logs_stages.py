"""Log records through all stages: they complete their spans whatever comes first, and are counted where they cannot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.ingest import Ingest
from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import DAY, HOUR, SECOND, TimeRules
from pipeline.runners.local_runner import LocalRunner
from pipeline.topology import STAGES, Setup
from schemas.rows import TABLES
from schemas.topics import Stage, Topic
from tests.unit.core.ingest_support import SPAN, TRACE, T, any_value, json_request, json_span, pairs

GOLDEN = Path(__file__).parents[2] / "golden"
EVALUATED = GOLDEN / "otel-evaluation-events"
OPENAI = GOLDEN / "otel-openai-v2-default"
RECORDED = 1_795_977_325 * SECOND  # when that was
CONTRACT = """
family: order
version: 1
applies_when: "size(session.models) > 0"
criteria:
  - {id: looked_up, check: "'lookup_order' in session.tools"}
"""
Record = tuple[Topic, bytes]


def run(records: Sequence[Record], shuffle: Random | None = None, until: int = 0) -> LocalRunner:
    rules = TimeRules()
    runner = LocalRunner(
        STAGES, Setup(load([("order.yaml", CONTRACT)], rules), rules, 2), 2, Ingest(2, rules), shuffle=shuffle
    )
    for topic, value in records:
        runner.feed(topic, value, 0)
    runner.drain()
    if until:
        runner.end_of_input(until)
    return runner


def newest(runner: LocalRunner, table: str, *identity: str) -> list[dict[str, Any]]:
    rows = [dict(zip(TABLES[table], values, strict=True)) for values in runner.rows(table)]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda one: one["version"]):
        found[tuple(row[name] for name in identity)] = row
    return [row for row in found.values() if not row["is_deleted"]]


def verdicts(runner: LocalRunner) -> list[dict[str, Any]]:
    """What holds at last, without what tells how it came to that."""
    how = {"version", "revision", "reason", "as_of"}
    documents = (json.loads(value) for value in dict(runner.verdicts()).values() if value)
    return sorted(
        ({name: held for name, held in one.items() if name not in how} for one in documents),
        key=lambda one: (one["conversation"], one["ordinal"]),
    )


def apart(path: Path, topic: Topic) -> list[Record]:
    """A recorded request as one request for each span or log record in it."""
    found: list[Record] = []
    for root, scopes, items in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for part in json.loads(path.read_bytes()).get(root, []):
            for scope in part[scopes]:
                for item in scope[items]:
                    one = {**part, scopes: [{**scope, items: [item]}]}
                    found.append((topic, json.dumps({root: [one]}).encode()))
    return found


def recorded(folder: Path) -> list[Record]:
    spans = apart(folder / "traces.otlp.json", Topic.OTLP_SPANS)
    return spans + apart(folder / "logs.otlp.json", Topic.OTLP_LOGS)


def evaluations(runner: LocalRunner) -> list[tuple[str, str, float | None, str]]:
    rows = newest(runner, "outcomes", "conversation", "source", "event_id", "via")
    told = [(row["conversation"], json.loads(row["data"])) for row in rows]
    return sorted((at, data["name"], data.get("score"), data["label"]) for at, data in told)


@pytest.mark.parametrize("seed", range(6))
def test_recorded_evaluations_find_their_session_in_any_order_and_however_often_they_come(seed: int):
    expected = json.loads((EVALUATED / "expected.json").read_text())["expected_from_logs"]["evaluations"]
    records = recorded(EVALUATED) * (1 + seed % 2)
    Random(seed).shuffle(records)
    runner = run(records, Random(seed))
    assert evaluations(runner) == sorted(
        (one["session_id"], one["name"], one["score"], one["label"]) for one in expected
    )
    assert verdicts(runner) == verdicts(run(recorded(EVALUATED)))
    assert not runner.dead_letters()


@pytest.mark.parametrize("seed", range(4))
def test_tools_that_only_log_records_name_are_known_to_contracts_in_any_order(seed: int):
    records = recorded(OPENAI) * (1 + seed % 2)
    Random(seed).shuffle(records)
    found = verdicts(run(records, Random(seed), RECORDED + DAY))
    assert found == verdicts(run(recorded(OPENAI), until=RECORDED + DAY))
    without = verdicts(run(apart(OPENAI / "traces.otlp.json", Topic.OTLP_SPANS), until=RECORDED + DAY))

    def looked_up(sessions: Sequence[dict[str, Any]]) -> list[str]:
        return [one["status"] for session in sessions for one in session["criteria"]]

    assert len(found) == len(without) == 5
    assert "passed" not in looked_up(without)
    assert looked_up(found).count("passed") == 1


MODEL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini", "session.id": "c-1"}


def choice(trace_id: bytes = TRACE, span_id: bytes = SPAN, at: int = T + 3, reason: str = "stop") -> Record:
    record = {
        "timeUnixNano": str(at),
        "traceId": trace_id.hex(),
        "spanId": span_id.hex(),
        "eventName": "gen_ai.choice",
        "attributes": pairs({}),
        "body": any_value({"finish_reason": reason}),
    }
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    return Topic.OTLP_LOGS, json.dumps(document).encode()


def span(**fields: Any) -> Record:
    return Topic.OTLP_SPANS, json_request(json_span(MODEL, **fields))


def test_what_a_log_record_tells_of_a_trace_that_never_comes_is_counted():
    runner = run([choice(bytes(15) + b"\1"), span()], until=T + 40 * DAY)
    assert runner.counts[Stage.RESOLVE]["dropped", "no_work"] == 1
    assert len(verdicts(runner)) == 1


def test_what_log_records_alone_tell_of_holds_no_time_back():
    rules = TimeRules()
    resolve = ResolveStep(0, 1, rules, DAY)
    for topic, value in (choice(), span()):
        step = Ingest(1, rules)
        step.on_record(topic, 0, 0, 0, None, value)
        [batch] = step.outbox.take()[0].values()
        resolve.apply([msgspec.structs.replace(one, ids=()) for one in batch])
        told_alone = topic is Topic.OTLP_LOGS
        assert resolve.passes_on(T + HOUR) == (T + HOUR if told_alone else T)


def test_what_a_log_record_tells_of_a_span_that_never_comes_is_counted():
    runner = run([choice(span_id=bytes(7) + b"\1"), choice(), span()], until=T + 40 * DAY)
    assert runner.counts[Stage.RESOLVE]["noted", "log_without_span"] == 1


def test_a_log_record_that_comes_when_all_is_settled_is_dead_lettered():
    records = [span(), (Topic.OTLP_SPANS, json_request(json_span(MODEL, traceId="01" * 16)))]
    runner = run(records, until=T + 10 * DAY)
    runner.feed(*choice(reason="length"), 0)
    runner.drain()
    assert [letter.reason for letter in runner.dead_letters()] == ["settled"]


def test_one_that_comes_again_when_all_is_settled_is_a_duplicate():
    other = Topic.OTLP_SPANS, json_request(json_span(MODEL, traceId="01" * 16))
    runner = run([span(), choice(), other], until=T + 10 * DAY)
    before = verdicts(runner)
    runner.feed(*choice(), 0)
    runner.drain()
    assert not runner.dead_letters()
    assert verdicts(runner) == before


def test_what_a_session_cost_is_told_with_its_verdict():
    request = json_span({**MODEL, "operation.cost": 0.25, "gen_ai.usage.input_tokens": 7})
    [found] = verdicts(run([(Topic.OTLP_SPANS, json_request(request))], until=T + DAY))
    assert found["cost_usd"] == 0.25


def test_a_step_of_the_store_is_told_anew_when_a_log_record_completes_it():
    details = {"gen_ai.usage.input_tokens": 70, "gen_ai.usage.output_tokens": 12}
    record = {
        "timeUnixNano": str(T + 4 * SECOND), "traceId": TRACE.hex(), "spanId": SPAN.hex(),
        "eventName": "gen_ai.client.inference.operation.details", "attributes": pairs(details),
    }  # fmt: skip
    late = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    runner = run([span()])
    runner.feed(Topic.OTLP_LOGS, late, 0)
    runner.drain()
    [step] = newest(runner, "agent_steps", "trace_id", "span_id")
    assert (step["span_id"], step["input_tokens"], step["output_tokens"]) == (SPAN.hex(), 70, 12)
