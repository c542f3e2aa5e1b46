"""Real payloads of OpenTelemetry's own GenAI instrumentations against what their captures are known to say.

`expected.json` counts what the spans alone tell: each model call and tool call once, tokens without doubles.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.span import Control, Kind, Span
from tests.unit.core.ingest_support import Read, read

GOLDEN = Path(__file__).parents[2] / "golden"
FIXTURES = sorted(path.name for path in GOLDEN.glob("otel-*"))

pytestmark = pytest.mark.parametrize("fixture", FIXTURES)


def arrived(fixture: str, form: str) -> Read:
    return read((GOLDEN / fixture / f"traces.otlp.{form}").read_bytes())


def spans_of(fixture: str) -> list[Span]:
    return arrived(fixture, "pb").spans


def expected(fixture: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((GOLDEN / fixture / "expected.json").read_text())
    return known


def sessions(fixture: str) -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = expected(fixture)["expected_from_spans"]["sessions"]
    return known


def tool_calls(spans: list[Span]) -> dict[tuple[bytes, ...], list[Span]]:
    """Attempts by call: outermost spans of a tool; of one call id they are one call."""
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    calls: dict[tuple[bytes, ...], list[Span]] = {}
    for span in spans:
        if span.kind is not Kind.TOOL:
            continue
        outermost = above = span
        while (parent := by_id.get((above.trace_id, above.parent_id))) is not None:
            above = parent
            if above.kind is Kind.TOOL and above.tool == span.tool:
                outermost = above
        key = (span.call_id.encode(),) if span.call_id else (outermost.trace_id, outermost.span_id)
        calls.setdefault(key, []).append(span)
    return calls


def test_every_span_is_used_and_both_encodings_agree(fixture: str):
    one, other = arrived(fixture, "pb"), arrived(fixture, "json")
    known = expected(fixture)
    assert len(one.spans) == known["spans"]
    assert len({span.trace_id for span in one.spans}) == known["traces"]
    assert one.letters == other.letters == []
    assert sorted(map(repr, one.arrivals)) == sorted(map(repr, other.arrivals))
    assert all(span.resource["service.name"] for span in one.spans)


def test_tokens_of_model_spans_add_up_without_doubles(fixture: str):
    model = [span.tokens for span in spans_of(fixture) if span.kind in (Kind.INFERENCE, Kind.EMBEDDING)]
    known = [session["tokens"] for session in sessions(fixture)]
    for number, name in enumerate(("input", "output", "cached")):
        assert sum(tokens[number] for tokens in model) == sum(tokens[name] for tokens in known), name


def test_model_calls_and_their_errors_are_recognised(fixture: str):
    model = [span for span in spans_of(fixture) if span.kind is Kind.INFERENCE]
    assert len(model) == sum(session["model_calls"] for session in sessions(fixture))
    assert sum(span.failed for span in model) == sum(session["model_errors"] for session in sessions(fixture))
    assert all(span.model for span in model if not span.failed)
    answers = [span.response_id for span in model if span.response_id]  # a streamed answer may have none
    assert bool(answers) is bool(model)
    assert len(set(answers)) == len(answers)


def test_tool_calls_are_recognised_and_failures_are_theirs(fixture: str):
    calls = tool_calls(spans_of(fixture))
    known = [call for session in sessions(fixture) for call in session["tool_calls"]]
    assert Counter(attempts[0].tool for attempts in calls.values()) == Counter(call["name"] for call in known)
    failed = Counter(attempts[0].tool for attempts in calls.values() if any(span.failed for span in attempts))
    assert failed == Counter(call["name"] for call in known if call["outcome"] == "failed")
    stated = {call["call_id"] for call in known if "call_id" in call}
    assert {span.call_id for attempts in calls.values() for span in attempts if span.call_id} == stated


def test_agents_hand_offs_guardrails_and_waits_are_recognised(fixture: str):
    spans, known = spans_of(fixture), sessions(fixture)
    agents = {span.agent for span in spans if span.kind is Kind.AGENT and span.agent}
    assert agents == {agent for session in known for agent in session["agents"]}
    kinds = Counter(span.kind for span in spans)
    assert kinds[Kind.HANDOFF] == sum(session["handoffs"] for session in known)
    assert kinds[Kind.GUARDRAIL] == sum(session["guardrail_checks"] for session in known)
    waiting = [span for span in spans if span.kind is Kind.TOOL and span.control is Control.INTERRUPT]
    assert len(waiting) == sum(session["waits_for_human"] for session in known)


def test_conversation_ids_are_those_that_the_spans_carry(fixture: str):
    found = {conversation for span in spans_of(fixture) for conversation in span.ids}
    assert found == {session["session_id"] for session in sessions(fixture) if session["session_id"]}
