"""Ids made comparable."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import conversation_id, normalise_id, trace_address
from schemas.outcome import MOST_KEYS
from schemas.topics import Topic
from tests.unit.core.ingest_support import TRACE, T, json_request, json_span, pairs, read


@pytest.mark.parametrize("one", [123, 123.0, "123", " 123\n"])
def test_rule_04_numeric_and_text_ids_are_one(one: object):
    assert normalise_id(one) == "123"


@pytest.mark.parametrize(
    "missing", [None, "", "  ", "null", "None", "undefined", True, False, float("nan"), float("inf"), ["a"], {"a": 1}]
)
def test_rule_04_an_id_that_says_nothing_is_missing(missing: object):
    assert normalise_id(missing) == ""


@pytest.mark.parametrize(("given_id", "text"), [("Null", "Null"), ("AbC", "AbC"), (1.5, "1.5"), (0, "0"), (-7, "-7")])
def test_rule_04_case_counts_and_numbers_keep_their_value(given_id: object, text: str):
    assert normalise_id(given_id) == text


def test_rule_04_a_long_id_keeps_its_beginning_in_whole_characters_and_a_digest():
    text = "x" * 199 + "é" * 100
    assert normalise_id(text) == "x" * 199 + "~" + sha256(text.encode()).hexdigest()[:16]
    assert normalise_id("x" * 256) == "x" * 256
    assert normalise_id("é" * 128) == "é" * 128
    assert normalise_id("x" * 257) != normalise_id("x" * 256 + "y")


@given(st.text(max_size=400))
def test_normalising_twice_changes_nothing(text: str):
    once = normalise_id(text)
    assert normalise_id(once) == once
    assert len(once.encode()) <= 256


def test_rule_04_our_own_name_for_a_trace_is_no_conversation_id():
    name = "trace:" + "0aB1" * 8
    assert conversation_id(name) == ""
    assert trace_address(name) == bytes.fromhex("0ab1" * 8)
    assert conversation_id("trace:42") == "trace:42"
    assert trace_address("trace:42") is None


@pytest.mark.parametrize("topic", [Topic.OTLP_SPANS, Topic.OTLP_LOGS])
def test_a_tenant_with_a_zero_character_is_nobodys_and_its_neighbour_counts(topic: Topic) -> None:
    resource, other = {"trueup.tenant": "a\0b"}, {"trueup.tenant": "a"}
    if topic is Topic.OTLP_SPANS:
        bad, good = (json.loads(json_request(json_span(), resource=one)) for one in (resource, other))
        whole = {"resourceSpans": bad["resourceSpans"] + good["resourceSpans"]}
    else:
        said = pairs({"gen_ai.evaluation.name": "accuracy", "gen_ai.evaluation.score.value": 1.0})
        named = {"eventName": "gen_ai.evaluation.result", "timeUnixNano": str(T), "traceId": TRACE.hex()}
        log = {**named, "attributes": said}
        parts = [
            {"resource": {"attributes": pairs(one)}, "scopeLogs": [{"logRecords": [log]}]} for one in (resource, other)
        ]
        whole = {"resourceLogs": parts}
    result = read(json.dumps(whole).encode(), T, topic)
    assert result.reasons == ["bad_tenant"]
    assert [one.tenant for one in (result.spans if topic is Topic.OTLP_SPANS else result.outcomes)] == ["a"]
    assert result.total("received") == result.total("used") + result.total("dead_lettered")


def test_our_own_mark_is_no_conversations_id() -> None:
    assert read(json_request(json_span({"session.id": "\0erased"}))).span.ids == ()
    assert read(json_request(json_span({"session.id": "b\0c"}))).span.ids == ("b\0c",)


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_key_that_no_outcome_can_name_is_none(name: str) -> None:
    result = read(json_request(json_span({f"trueup.correlation.{name}": "7", "trueup.correlation.order": "8"})))
    assert result.span.said is not None
    assert result.span.said.keys == {"order": ("8",)}
    assert result.counts["noted", "bad_key"] == 1


@pytest.mark.parametrize("extra", [0, 1, 5000])
def test_a_span_states_so_many_keys_the_first_by_name(extra: int) -> None:
    said = {"trueup.correlation.b": [f"{n:05}" for n in range(MOST_KEYS - 1 + extra)], "trueup.correlation.a": "x"}
    result = read(json_request(json_span(said)))
    (arrival,) = result.arrivals
    assert result.span.said is not None
    assert result.span.said.keys == {"a": ("x",), "b": tuple(f"{n:05}" for n in range(MOST_KEYS - 1))}
    assert [value for _, value in arrival.stated] == ["x", *(f"{n:05}" for n in range(MOST_KEYS - 1))]
    assert result.counts["noted", "keys_cut"] == (1 if extra else 0)
