"""Stage 1: what becomes of records of spans."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.core.ingest import end_of_input
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES
from pipeline.core.timeline import MINUTE, from_datetime
from schemas.span import SpanFlag
from schemas.topics import Topic
from tests.unit.core.ingest_support import (
    SPAN,
    TRACE,
    Read,
    T,
    ingest,
    json_request,
    json_span,
    proto,
    proto_request,
    read,
)

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}


def test_protobuf_and_json_of_the_same_span_give_the_same_record():
    attributes = {**CHAT, "session.id": "c1", "trueup.state.total": 12.5, "tags": ["a", "b"]}
    one = read(proto(attributes, resource={"service.name": "shop"}))
    other = read(json_request(json_span(attributes, spanId="0000000000000001"), resource={"service.name": "shop"}))
    assert one.span == other.span
    assert one.arrivals == other.arrivals
    assert one.span.resource == {"service.name": "shop"}


def test_an_arrival_says_about_its_span_what_stage_2_reads():
    attributes = {**CHAT, "session.id": " c1 ", "trueup.correlation.order": ["A", 7, "A", None]}
    result = read(proto(attributes), record_time=T + 9)
    (arrival,) = result.arrivals
    span = result.span
    assert (arrival.start, arrival.end, arrival.record_time) == (T, T + 5, T + 9)
    assert (arrival.ids, arrival.work) == (("c1",), True)
    assert arrival.stated == (("order", "7"), ("order", "A"))
    assert (arrival.tenant, arrival.trace_id, arrival.parent_id) == (span.tenant, TRACE, b"")


def test_a_bad_attribute_and_a_bad_span_leave_the_good_spans_alone():
    request = proto_request({**CHAT, "session.id": "c1"}, {**CHAT, "note": "PLACEHOLDER"}, CHAT, CHAT)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[2].trace_id = bytes(16)
    good = request.SerializeToString()
    value = good.replace(b"PLACEHOLDER", "你好你".encode()[:8] + b"abc")
    result = read(value)
    assert [bool(span.flags & SpanFlag.BAD_UTF8) for span in result.spans] == [False, True, False]
    assert result.spans[0].ids == ("c1",)
    assert sorted(result.reasons) == ["bad_id", "bad_utf8"]
    (letter,) = [letter for letter in result.letters if letter.reason == "bad_utf8"]
    assert "note" in letter.detail
    assert "abc" not in letter.detail
    assert letter.trace_id == TRACE.hex()
    assert result.counts["used", "span"] == 3
    assert result.counts["received", "span"] == 4
    assert result.counts["received", "attribute"] == 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        pytest.param("aXXXb", "a\ufffd\ufffd\ufffdb", id="text"),
        pytest.param(["XXX", "c"], ["\ufffd\ufffd\ufffd", "c"], id="text in an array"),
        pytest.param({"k": "XXX"}, '{"k":"\ufffd\ufffd\ufffd"}', id="text in a map"),
    ],
)
def test_bad_utf8_is_read_with_replacement_characters(said: object, kept: object):
    result = read(proto({**CHAT, "trueup.state.x": said}).replace(b"XXX", b"\xff\xff\xff"))
    assert result.span.said is not None
    assert result.span.said.state == {"x": kept}
    assert result.reasons == ["bad_utf8"]


@pytest.mark.parametrize("where", [b"secret name", b"model XXX"], ids=["the name", "the status message"])
def test_bad_utf8_in_text_that_is_not_kept_is_flagged(where: bytes):
    request = proto_request(CHAT)
    request.resource_spans[0].scope_spans[0].spans[0].status.message = "model XXX"
    result = read(request.SerializeToString().replace(where, b"\xff" * len(where)))
    assert result.span.flags == SpanFlag.BAD_UTF8
    assert result.reasons == ["bad_utf8"]


def test_bad_utf8_in_a_resource_flags_each_of_its_spans_and_is_buried_once():
    result = read(proto(CHAT, CHAT, resource={"trueup.tenant": "aXXX"}).replace(b"XXX", b"\xff\xff\xff"))
    assert [span.flags for span in result.spans] == [SpanFlag.BAD_UTF8] * 2
    assert {span.tenant for span in result.spans} == {"a\ufffd\ufffd\ufffd"}
    assert result.reasons == ["bad_utf8"]


def test_bad_utf8_in_json_is_the_attributes_own_trouble():
    good = json_span({**CHAT, "session.id": "c1", "note": "PLACEHOLDER"})
    other = json_span({**CHAT, "note": "\ufffd is fine"}, spanId="00000000000000aa")
    result = read(json_request(good, other).replace(b"PLACEHOLDER", b"\xff\xfe"))
    assert [bool(span.flags & SpanFlag.BAD_UTF8) for span in result.spans] == [True, False]
    assert result.spans[0].ids == ("c1",)
    assert result.reasons == ["bad_utf8"]


def _length(raw: bytes) -> bytes:
    return bytes([len(raw) & 127 | 128, len(raw) >> 7]) if len(raw) > 127 else bytes([len(raw)])


def test_a_span_that_is_garbage_among_good_ones_dead_letters_alone():
    request = proto_request(CHAT)
    span = request.resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    garbage = b"\xff" * 9
    scope = b"\x12" + _length(span) + span + b"\x12" + _length(garbage) + garbage
    part = b"\x12" + _length(scope) + scope
    result = read(b"\x0a" + _length(part) + part)
    assert len(result.spans) == 1
    assert result.reasons == ["not_otlp"]
    assert result.counts["received", "span"] == 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(b"\x1f\x8b\x08\x00garbage", "gzip", id="gzip"),
        pytest.param(b"hello world", "plain text", id="text"),
        pytest.param(b'{"resourceLogs": []}', "resourceLogs", id="logs as JSON"),
        pytest.param(b'{"resourceSpans": {}}', "list", id="an object for a list"),
        pytest.param(b'{"resourceSpans": [', "JSON", id="JSON cut short"),
        pytest.param(b"[1]", "JSON", id="a list of numbers"),
        pytest.param(b"\x00\x00\x00\x00\x01abc", "schema registry", id="a schema registry's prefix"),
        pytest.param(proto(CHAT)[:-9], "protobuf", id="protobuf cut short"),
    ],
)
def test_a_record_of_garbage_says_what_it_looks_like(value: bytes, words: str):
    result = read(value)
    assert result.reasons == ["not_otlp"]
    (letter,) = result.letters
    assert words in letter.detail
    assert value[:8].hex(" ") in letter.detail
    assert (letter.offset, letter.size, letter.payload) == (7, len(value), "")
    assert result.counts == {("received", "record"): 1, ("dead_lettered", "not_otlp"): 1}


@pytest.mark.parametrize("value", [None, b""], ids=["tombstone", "empty"])
def test_a_record_without_a_value_is_counted(value: bytes | None):
    assert read(value).counts == {("noted", "empty_record"): 1}


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        pytest.param({"trace_id": b""}, "trace id is missing", id="empty trace id"),
        pytest.param({"trace_id": bytes(16)}, "all zeros", id="zero trace id"),
        pytest.param({"trace_id": b"123"}, "trace id is no id", id="short trace id"),
        pytest.param({"span_id": b""}, "span id is missing", id="empty span id"),
        pytest.param({"span_id": bytes(8)}, "all zeros", id="zero span id"),
        pytest.param({"span_id": b"1" * 9}, "span id is no id", id="long span id"),
    ],
)
def test_case_A29_a_span_without_an_identity_is_never_grouped_by_it(ids: dict[str, bytes], words: str):
    request = proto_request(CHAT)
    for name, value in ids.items():
        setattr(request.resource_spans[0].scope_spans[0].spans[0], name, value)
    result = read(request.SerializeToString())
    assert result.spans == []
    assert result.reasons == ["bad_id"]
    assert words in result.letters[0].detail


def test_a_bad_parent_id_costs_the_parent_only():
    request = proto_request(CHAT, CHAT, CHAT)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].parent_span_id, spans[1].parent_span_id, spans[2].parent_span_id = b"123", bytes(8), SPAN
    result = read(request.SerializeToString())
    assert [span.parent_id for span in result.spans] == [b"", b"", SPAN]
    assert result.counts["noted", "bad_parent_id"] == 1


def test_ids_read_as_base64_on_the_way_are_inverted_in_protobuf():
    request = proto_request(CHAT)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.trace_id, span.span_id = b64decode(TRACE.hex()), b64decode(SPAN.hex())
    assert (len(span.trace_id), len(span.span_id)) == (TRACE_BYTES * 3 // 2, SPAN_BYTES * 3 // 2)
    result = read(request.SerializeToString())
    assert (result.span.trace_id, result.span.span_id) == (TRACE, SPAN)
    assert result.counts["noted", "id_hex_as_base64"] == 2


@pytest.mark.parametrize(
    ("resource", "options", "tenant"),
    [
        pytest.param({}, {}, "default", id="none"),
        pytest.param({"trueup.tenant": " acme "}, {}, "acme", id="the resource's"),
        pytest.param({"trueup.tenant": 17.0}, {}, "17", id="a number"),
        pytest.param({"shop": "b"}, {"tenant_from": "shop"}, "b", id="by a configured attribute"),
        pytest.param({"shop": "b", "trueup.tenant": "acme"}, {"tenant_from": "shop"}, "acme", id="both"),
        pytest.param({"trueup.tenant": "null", "shop": "b"}, {"tenant_from": "shop"}, "b", id="null is missing"),
    ],
)
def test_rule_02_the_tenant_is_the_resources(resource: dict[str, object], options: dict[str, Any], tenant: str):
    result = read(proto(CHAT, resource=resource), **options)
    assert (result.span.tenant, result.arrivals[0].tenant) == (tenant, tenant)


def test_of_the_resource_only_what_is_asked_for_is_kept():
    resource = {"service.version": "2", "trueup.test": True, "host.name": "h", "team": ["x", "y"]}
    kept = read(proto(CHAT, resource=resource), resource_keys=frozenset({"team"})).span.resource
    assert kept == {"service.version": "2", "trueup.test": True, "team": ["x", "y"]}


def test_the_watermark_is_the_latest_end_after_the_clock_rules():
    step = ingest()
    assert step.watermark(Topic.OTLP_SPANS, 0) == 0
    step.on_record(Topic.OTLP_SPANS, 0, 0, T, None, proto(CHAT))
    assert step.watermark(Topic.OTLP_SPANS, 0) == T + 5
    ahead = proto(CHAT, end_time_unix_nano=T + 6 * MINUTE)
    step.on_record(Topic.OTLP_SPANS, 0, 1, T + 20, None, ahead)
    assert step.watermark(Topic.OTLP_SPANS, 0) == T + 20
    step.on_record(Topic.OTLP_SPANS, 0, 2, T, None, proto(CHAT, start_time_unix_nano=5, end_time_unix_nano=6))
    assert step.watermark(Topic.OTLP_SPANS, 0) == T + 20
    assert step.watermark(Topic.OTLP_SPANS, 1) == 0


@pytest.mark.parametrize("topic", [Topic.OTLP_SPANS, Topic.OUTCOMES, Topic.OTLP_LOGS])
def test_the_end_of_input_moves_the_watermark_to_its_time(topic: Topic):
    now = datetime(2026, 4, 2, 10, 0, 0, 123456, tzinfo=UTC)
    step = ingest()
    step.on_record(topic, 1, 0, T, None, end_of_input(now))
    assert step.watermark(topic, 1) == from_datetime(now)
    result = Read(step)
    assert result.counts == {("noted", "end_of_input"): 1}
    assert result.letters == []


def test_an_end_of_input_that_lies_behind_does_not_take_the_watermark_back():
    step = ingest()
    step.on_record(Topic.OTLP_SPANS, 0, 0, T, None, proto(CHAT))
    step.on_record(Topic.OTLP_SPANS, 0, 1, T, None, end_of_input(datetime(2001, 1, 1, tzinfo=UTC)))
    assert step.watermark(Topic.OTLP_SPANS, 0) == T + 5


@pytest.mark.parametrize("said", ['"yesterday"', '"2026-04-02T10:00:00"', "null"])
def test_an_end_of_input_without_a_moment_is_a_bad_record(said: str):
    result = read(f'{{"trueup.end_of_input": {said}}}'.encode())
    assert result.reasons == ["not_otlp"]
