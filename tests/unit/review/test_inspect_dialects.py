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
