"""Laws of stage 1: nothing is lost, nothing raises, nothing depends on what was read before."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.timeline import MINUTE
from schemas.topics import Topic
from tests.unit.core.ingest_support import SPAN, TRACE, Read, T, ingest, json_request, json_span, proto, read
from tests.unit.core.odd_input import documents, mutated, scalars

GOLDEN = Path(__file__).parents[2] / "golden"
SMALL = 50_000  # bytes: a mutated payload is read hundreds of times
PAYLOADS = [path.read_bytes() for path in sorted(GOLDEN.glob("*/traces.otlp.*")) if path.stat().st_size <= SMALL]
TOPICS = [Topic.OTLP_SPANS, Topic.OTLP_LOGS, Topic.OUTCOMES]

SPAN_FIELDS = [
    *("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano"),
    *("attributes", "status", "links", "events", "name"),
]
OUTCOME_FIELDS = [
    *("event_id", "event_time", "event_version", "source", "kind", "tenant", "data"),
    *("session_id", "correlation", "trace_id", "ordinal"),
]


def balanced(result: Read) -> None:
    """Everything received has one fate, and every dead letter is counted."""
    assert result.total("received") == sum(result.total(fate) for fate in ("used", "dead_lettered", "dropped"))
    assert result.total("dead_lettered") == len(result.letters)
    assert result.counts["used", "span"] == len(result.spans)
    assert result.counts["used", "outcome"] == len(result.outcomes)
    for span in result.spans:
        assert 0 < span.start <= span.end < 2**63
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert any(span.trace_id)


def test_there_are_payloads_to_mutate():
    assert len(PAYLOADS) > 50


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TOPICS), st.binary(max_size=200), st.integers(-1, 2**62))
def test_no_bytes_raise_and_all_are_accounted_for(topic: Topic, value: bytes, record_time: int):
    balanced(read(value, record_time, topic))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["flip", "cut", "insert", "swap"]), st.sampled_from([0, T]))
def test_no_mutated_real_payload_raises_and_all_is_accounted_for(seed: int, how: str, record_time: int):
    result = read(mutated(PAYLOADS, how, random.Random(seed)), record_time)
    balanced(result)
    assert result.total("received") > 0


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(SPAN_FIELDS), documents), documents)
def test_no_json_span_raises_and_its_neighbour_counts(fields: dict[str, Any], value: Any):
    pair = {"key": "session.id", "value": value}
    spans = [{**json_span(), **fields}, json_span(attributes=[pair], spanId="00000000000000bb")]
    result = read(json_request(*spans), T + MINUTE)
    balanced(result)
    assert result.counts["received", "span"] == 2
    assert any(span.span_id == bytes.fromhex("00000000000000bb") for span in result.spans)


@settings(max_examples=300, deadline=None)
@given(documents, st.dictionaries(st.sampled_from(OUTCOME_FIELDS), documents))
def test_no_outcome_raises_and_its_neighbour_counts(other: Any, fields: dict[str, Any]):
    good = {"event_id": "e", "event_time": "2026-04-02T10:00:00Z", "source": "s", "kind": "reopen", "session_id": "c"}
    value = json.dumps([{**good, **fields}, other, good]).encode()
    result = read(value, T, Topic.OUTCOMES)
    balanced(result)
    assert result.counts["received", "outcome"] == 3
    assert any((found.event_id, found.session_id) == ("e", "c") for found in result.outcomes)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=12) | st.sampled_from(["session.id", "gen_ai.usage.input_tokens", "error.type"]), scalars
    )
)
def test_protobuf_and_json_agree_on_any_attributes(attributes: dict[str, Any]):
    fit = {
        key: value
        for key, value in attributes.items()
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) < 2**63
    }
    fit = {key: value for key, value in fit.items() if not isinstance(value, float) or value == value}
    given_all = {"gen_ai.operation.name": "chat", **fit}
    one = read(proto(given_all))
    other = read(json_request(json_span(given_all, spanId="0000000000000001")))
    assert one.span == other.span
    assert one.arrivals == other.arrivals


@pytest.mark.parametrize("order", [1, -1], ids=["as recorded", "reversed"])
def test_what_a_record_gives_does_not_depend_on_what_was_read_before(order: int):
    step = ingest()
    for offset, value in enumerate(PAYLOADS[::order]):
        step.on_record(Topic.OTLP_SPANS, 0, offset, T, None, value)
    together = Read(step)
    apart = [span for value in PAYLOADS for span in read(value, T).spans]
    assert sorted(map(repr, together.spans)) == sorted(map(repr, apart))


def test_the_record_key_is_never_read():
    step, other = ingest(), ingest()
    step.on_record(Topic.OTLP_SPANS, 0, 0, T, b"", proto({}))
    other.on_record(Topic.OTLP_SPANS, 0, 0, T, TRACE + SPAN, proto({}))
    assert Read(step).arrivals == Read(other).arrivals
