"""Real payloads of every dialect against what is known of them, as they are and with all ids and names permuted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.review.inspect import inspect
from tests.unit.review.permuting import permutation

GOLDEN = Path(__file__).parents[2] / "golden"
FIXTURES = sorted(path.parent.name for path in GOLDEN.glob("*/traces.otlp.pb"))
FORMS = ["pb", "json"]


def known(fixture: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / fixture / "expected.json").read_text())
    return found


def content(fixture: str, form: str) -> bytes:
    return (GOLDEN / fixture / f"traces.otlp.{form}").read_bytes()


def seen(payload: bytes) -> dict[str, Any]:
    report = json.loads(inspect([("a file", payload)]).to_json())
    assert [one["file"] for one in report["files"]] == ["a file"]
    found: dict[str, Any] = report["files"][0]
    return found


def test_there_is_a_fixture_of_each_dialect():
    assert len(FIXTURES) == 38
    assert len({known(fixture)["dialect"] for fixture in FIXTURES}) > 20


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_the_sessions_are_those_that_the_spans_tell(fixture: str, form: str):
    found = seen(content(fixture, form))
    assert found["sessions"] == known(fixture)["expected_from_spans"]["sessions"]
    assert found["spans"] == known(fixture)["spans"]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_nothing_hangs_on_ids_and_names(fixture: str, form: str, seed: int):
    expected = known(fixture)["expected_from_spans"]["sessions"]
    other = permutation(expected, seed)
    payload = content(fixture, form)
    permuted = other.protobuf(payload) if form == "pb" else other.json(payload)
    assert permuted != payload
    assert seen(permuted)["sessions"] == other.sessions(expected)


WITH_LOGS = sorted(path.parent.name for path in GOLDEN.glob("*/logs.otlp.pb"))
WANTED = {
    "agent-framework": [
        "handoff_to_orders_agent", "lookup_order", "refund_order", "escalate_to_human", "lookup_order", "refund_order",
        "escalate_to_human", "approve_refund",
    ],
    "otel-openai-v2-default": ["lookup_order", "refund_order", "escalate_to_human"],
}  # fmt: skip
"""What models asked for, as the scenario has it: refund and escalation are one turn each."""


def together(fixture: str, form: str) -> dict[str, Any]:
    files = [(name, (GOLDEN / fixture / f"{name}.otlp.{form}").read_bytes()) for name in ("logs", "traces")]
    (found,) = json.loads(inspect(files, together=True).to_json())["files"]
    return dict(found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fixture", WITH_LOGS)
def test_log_records_add_what_they_tell_and_change_nothing_else(fixture: str, form: str):
    found = together(fixture, form)
    expected = known(fixture)
    wanted = [name for session in found["sessions"] for name in session.pop("tools_asked_for", [])]
    assert wanted == WANTED.get(fixture, [])
    assert found["sessions"] == expected["expected_from_spans"]["sessions"]
    assert found["spans"] == expected["spans"]
    assert not {one["reason"] for one in found["lost"]} & {"log_without_span", "no_session", "not_otlp"}


@pytest.mark.parametrize("form", FORMS)
def test_evaluations_in_log_records_are_those_of_the_sessions_that_they_are_about(form: str):
    expected = known("otel-evaluation-events")["expected_from_logs"]["evaluations"]
    found = together("otel-evaluation-events", form)["evaluations"]
    fields = ("session_id", "name", "score", "label")
    assert [[one[name] for name in fields] for one in found] == [[one[name] for name in fields] for one in expected]
    alone = seen((GOLDEN / "otel-evaluation-events" / f"logs.otlp.{form}").read_bytes())
    assert [(one["reason"], one["count"]) for one in alone["lost"]] == [("no_session", 3)]


@pytest.mark.parametrize("form", FORMS)
def test_feedback_on_spans_is_that_of_the_sessions_that_it_is_about(form: str):
    told = known("openinference-annotations")["expected_feedback_from_spans"]
    expected = [
        (one["session_id"], one["scope"], one["name"], one["score"], one["label"], one["annotator"].lower())
        for one in told
        for _ in range(one.get("count", 1))
    ]
    fields = ("session_id", "scope", "name", "score", "label", "annotator")
    found = seen(content("openinference-annotations", form))["evaluations"]
    assert sorted(tuple(one[name] for name in fields) for one in found) == sorted(expected)


@pytest.mark.parametrize("form", ["protobuf", "json"])
@pytest.mark.parametrize("fixture", ["otel-genai-langchain", "mcp-native-sdk2", "otel-openai-v2-default"])
def test_records_as_rotel_cuts_them_hold_the_same_sessions(fixture: str, form: str):
    records = [path.read_bytes() for path in sorted((GOLDEN / "kafka-rotel" / form).glob(f"{fixture}.*"))]
    assert len(records) >= 3
    if form == "json":
        whole = b"\n".join(record.strip() for record in records)
    else:
        whole = b"".join(len(record).to_bytes(4, "big") + record for record in records)
    assert seen(whole)["sessions"] == known(fixture)["expected_from_spans"]["sessions"]
