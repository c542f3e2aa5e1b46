"""OTLP/JSON as it is really sent: every shape that was seen to break someone."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest

from schemas.span import Kind
from tests.unit.core.ingest_support import SPAN, TRACE, T, any_value, json_request, json_span, read

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda spans: {"resourceSpans": spans}, id="as specified"),
        pytest.param(lambda spans: spans, id="a bare array"),
        pytest.param(lambda spans: {"resource_spans": spans}, id="snake case"),
        pytest.param(lambda spans: {"batches": spans}, id="Tempo's batches"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"\n  ", b"\xef\xbb\xbf"], ids=["", "blanks", "BOM"])
def test_every_known_envelope_is_read(wrap: Any, before: bytes):
    spans = json.loads(json_request(json_span(CHAT)))["resourceSpans"]
    assert read(before + json.dumps(wrap(spans)).encode()).span.trace_id == TRACE


def test_snake_case_fields_and_library_spans_are_read():
    span = {
        "trace_id": TRACE.hex(),
        "span_id": SPAN.hex(),
        "start_time_unix_nano": T,
        "end_time_unix_nano": T + 1,
        "attributes": [{"key": "gen_ai.operation.name", "value": {"string_value": "chat"}}],
    }
    value = json.dumps({"resource_spans": [{"instrumentationLibrarySpans": [{"spans": [span]}]}]}).encode()
    assert (read(value).span.kind, read(value).span.end) == (Kind.INFERENCE, T + 1)


@pytest.mark.parametrize(
    ("encode", "note"),
    [
        pytest.param(lambda raw: raw.hex(), None, id="hex"),
        pytest.param(lambda raw: raw.hex().upper(), None, id="upper case"),
        pytest.param(lambda raw: b64encode(raw).decode(), "id_base64", id="base64"),
        pytest.param(lambda raw: b64encode(raw).decode().rstrip("="), "id_base64", id="base64 without padding"),
        pytest.param(lambda raw: b64encode(raw.hex().encode()).decode(), "id_hex_text", id="base64 of hex"),
        pytest.param(lambda raw: _hex_read_as_base64(raw).hex(), "id_hex_as_base64", id="hex read as base64, in hex"),
    ],
)
def test_ids_are_the_same_in_any_encoding(encode: Any, note: str | None):
    trace, span = bytes.fromhex("5b8efff798038103d269b633813fc60c"), bytes.fromhex("eee19b7ec3c1b174")
    result = read(json_request(json_span(CHAT, traceId=encode(trace), spanId=encode(span), parentSpanId=encode(SPAN))))
    assert (result.span.trace_id, result.span.span_id, result.span.parent_id) == (trace, span, SPAN)
    assert result.total("noted") == (3 if note else 0)
    assert note is None or result.counts["noted", note] == 3


def _hex_read_as_base64(raw: bytes) -> bytes:
    return b64decode(raw.hex())


@pytest.mark.parametrize("bad", ["xyz", "0" * 32, "", None, 17, "g" * 32, TRACE.hex()[:-1]])
def test_an_id_that_is_none_dead_letters_its_span_only(bad: object):
    result = read(json_request(json_span(CHAT), json_span(CHAT, traceId=bad, spanId="00000000000000bb")))
    assert result.span.span_id == SPAN
    assert result.reasons == ["bad_id"]


@pytest.mark.parametrize("form", [str, int], ids=["text", "number"])
def test_64_bit_numbers_are_exact_as_text_and_as_numbers(form: Any):
    odd = 2**53 + 1
    pair = {"key": "trueup.state.n", "value": {"intValue": form(odd)}}
    span = json_span(startTimeUnixNano=form(T + 1), endTimeUnixNano=form(T + 3), attributes=[pair])
    result = read(json_request(span)).span
    assert (result.start, result.end) == (T + 1, T + 3)
    assert result.said is not None
    assert result.said.state == {"n": odd}


def test_a_time_with_an_exponent_is_exact():
    value = json_request(json_span(CHAT)).replace(f'"{T}"'.encode(), b"1.760000000000000000123E18".replace(b"123", b""))
    assert read(value).span.start == T


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param({"intValue": "many"}, "bad_attribute", id="no number"),
        pytest.param({"intValue": str(2**63)}, "bad_attribute", id="beyond 64 bits"),
        pytest.param({"intValue": 1.5}, "bad_attribute", id="a fraction"),
        pytest.param({"intValue": "9" * 5000}, "bad_attribute", id="an endless number"),
        pytest.param({"doubleValue": "1E" + "9" * 30}, None, id="an endless double is infinite"),
        pytest.param({"boolValue": "maybe"}, "bad_attribute", id="no boolean"),
        pytest.param({"stringValue": 5}, "bad_attribute", id="no text"),
        pytest.param({"arrayValue": {"values": [{"intValue": "x"}]}}, "bad_attribute", id="in an array"),
        pytest.param({"bytesValue": "***"}, "bad_attribute", id="no base64"),
        pytest.param({"colour": 1}, "bad_attribute", id="no known field"),
        pytest.param("text", "bad_attribute", id="no object"),
        pytest.param({}, None, id="null"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_a_bad_value_costs_its_attribute_only(value: object, why: str | None):
    pairs = [{"key": "trueup.state.bad", "value": value}, {"key": "session.id", "value": any_value("c1")}]
    result = read(json_request(json_span(attributes=pairs)))
    assert result.span.ids == ("c1",)
    assert result.reasons == ([why] if why else [])
    assert why is None or "trueup.state.bad" in result.letters[0].detail


@pytest.mark.parametrize("pair", [5, {}, {"key": 3}, {"value": {"intValue": 1}}])
def test_an_attribute_without_a_key_is_dead_lettered(pair: object):
    assert read(json_request(json_span(attributes=[pair]))).reasons == ["bad_attribute"]


def test_of_several_values_in_one_the_order_of_the_specification_holds():
    value = {"intValue": "1", "stringValue": "one", "bool_value": None}
    result = read(json_request(json_span(attributes=[{"key": "trueup.state.x", "value": value}])))
    assert result.span.said is not None
    assert result.span.said.state == {"x": "one"}
    assert result.counts["noted", "several_values"] == 1


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        (0, False),
        (1, False),
        (2, True),
        ("0", False),
        ("1", False),
        ("2", True),
        ("STATUS_CODE_UNSET", False),
        ("STATUS_CODE_OK", False),
        ("STATUS_CODE_ERROR", True),
        ("nonsense", False),
        (None, False),
        (7, False),
    ],
)
def test_status_codes_are_read_by_name_and_number(code: object, failed: bool):
    assert read(json_request(json_span(CHAT, status={"code": code, "message": "m"}))).span.failed is failed


@pytest.mark.parametrize("status", [None, {}, "ERROR", []], ids=str)
def test_a_missing_status_is_no_failure(status: object):
    assert read(json_request(json_span(CHAT, status=status))).span.failed is False


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 5, "2", "SPAN_KIND_SERVER"])
def test_the_span_kind_in_any_form_changes_nothing(kind: object):
    assert read(json_request(json_span(CHAT, kind=kind))).span == read(json_request(json_span(CHAT))).span


def test_an_attribute_whose_text_is_an_enum_name_stays_text():
    said = read(json_request(json_span({"trueup.state.x": "SPAN_KIND_SERVER"}))).span.said
    assert said is not None
    assert said.state == {"x": "SPAN_KIND_SERVER"}


@pytest.mark.parametrize("resource", [None, {}, {"attributes": None}, "lost"], ids=str)
def test_a_missing_resource_leaves_its_fields_out(resource: object):
    spans = [{"resource": resource, "scopeSpans": [{"spans": [json_span(CHAT)]}]}]
    span = read(json.dumps({"resourceSpans": spans}).encode()).span
    assert (span.resource, span.tenant) == ({}, "default")


def test_values_of_every_shape_are_kept_flat():
    state: dict[str, Any] = {
        "text": "x",
        "yes": True,
        "n": 3,
        "f": 1.25,
        "list": ["a", 1],
        "mixed": [{"b": 1, "a": None}],
        "map": {"z": 1, "a": [1.5, "x"]},
        "null": None,
    }
    said = read(json_request(json_span({f"trueup.state.{name}": value for name, value in state.items()}))).span.said
    assert said is not None
    assert said.state == {**state, "mixed": '[{"a":null,"b":1}]', "map": '{"a":[1.5,"x"],"z":1}'}


def test_an_endless_number_is_its_attributes_own_trouble():
    value = json_request(json_span({"x": 7}), json_span({"session.id": "c"}, spanId="00000000000000aa"))
    result = read(value.replace(b'"7"', b"1" * 5000))
    assert [span.ids for span in result.spans] == [(), ("c",)]
    assert result.reasons == ["bad_attribute"]


def test_lone_surrogates_never_reach_the_record():
    value = json_request(json_span({"session.id": "PLACE", "trueup.state.x": "PLACE"})).replace(b"PLACE", b"a\\ud800")
    result = read(value)
    assert result.span.ids == ("a?",)
    assert set(result.reasons) == {"bad_utf8"}


def test_a_document_that_nests_without_end_is_dead_lettered():
    assert read(b'{"resourceSpans":' + b"[" * 200_000).reasons == ["not_otlp"]
    deep = any_value("x")
    for _ in range(200):
        deep = {"arrayValue": {"values": [deep]}}
    result = read(json_request(json_span(attributes=[{"key": "k", "value": deep}])))
    assert (len(result.spans), result.reasons) == (1, ["bad_attribute"])
