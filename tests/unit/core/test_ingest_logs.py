"""Log records at stage 1: what they tell of spans, evaluations, and that each is used, dropped or dead-lettered."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from schemas.outcome import OutcomeKind
from schemas.span import Kind, Span, is_told
from schemas.topics import Topic
from tests.unit.core.ingest_support import (
    SPAN,
    TRACE,
    Read,
    T,
    any_value,
    ingest,
    json_request,
    json_span,
    pairs,
    proto,
)
from tests.unit.core.odd_input import documents, mutated

GOLDEN = Path(__file__).parents[2] / "golden"
CALL = {"id": "call-1", "type": "function", "function": {"name": "lookup_order", "arguments": "the secret"}}
CHOICE = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [CALL]}}
DETAILS = "gen_ai.client.inference.operation.details"
RELEVANCE = {
    "gen_ai.evaluation.name": "Relevance",
    "gen_ai.evaluation.score.value": 0.9,
    "gen_ai.evaluation.score.label": "relevant",
    "gen_ai.evaluation.explanation": "the secret of the customer",
}


def log(event: str = "gen_ai.choice", attributes: dict[str, Any] | None = None, /, **fields: Any) -> dict[str, Any]:
    record = {
        "timeUnixNano": str(T + 3),
        "traceId": TRACE.hex(),
        "spanId": SPAN.hex(),
        "eventName": event,
        "attributes": pairs(attributes or {}),
    }
    return {name: value for name, value in {**record, **fields}.items() if value is not None}


def choice(body: Any = None, **fields: Any) -> dict[str, Any]:
    return log(body=any_value(CHOICE if body is None else body), **fields)


def request(*logs: Any, resource: dict[str, Any] | None = None) -> bytes:
    held = {"attributes": pairs(resource or {})}
    return json.dumps({"resourceLogs": [{"resource": held, "scopeLogs": [{"logRecords": list(logs)}]}]}).encode()


def read_logs(value: bytes | None, record_time: int = 0, **options: Any) -> Read:
    step = ingest(**options)
    step.on_record(Topic.OTLP_LOGS, 0, 7, record_time, None, value)
    found = Read(step)
    assert sum(found.total(result) for result in ("used", "dropped", "dead_lettered")) == found.total("received")
    return found


def told(*logs: Any, **options: Any) -> Span:
    return read_logs(request(*logs), **options).span


def test_a_choice_tells_how_an_answer_ended_and_which_tools_it_asked_for():
    found = read_logs(request(choice()))
    assert found.counts == {("received", "log"): 1, ("used", "log"): 1}
    assert (found.span.trace_id, found.span.parent_id, found.span.kind) == (TRACE, SPAN, Kind.TOLD)
    assert (found.span.finish, found.span.asked, found.span.wanted) == (("tool_calls",), 1, ("lookup_order",))
    assert (found.span.start, found.span.end, found.arrivals[0].work) == (T + 3, T + 3, False)
    assert b"secret" not in found.arrivals[0].body


@pytest.mark.parametrize(
    ("record", "finish", "asked", "wanted"),
    [
        (choice({"finish_reason": "stop", "message": {"role": "assistant"}}), ("stop",), -1, ()),
        (choice({"finish_reason": "FinishReason.TOOL_CALL", "tool_calls": [CALL, CALL]}), ("tool_calls",), 2,
         ("lookup_order", "lookup_order")),
        (log(body={"stringValue": json.dumps(CHOICE)}), ("tool_calls",), 1, ("lookup_order",)),
        (log("gen_ai.choice", {"finish_reason": "stop"}), ("stop",), -1, ()),
        (choice({"finish_reason": 7, "message": {"tool_calls": "none"}}), (), -1, ()),
        (choice({"message": {"tool_calls": [{"name": "x"}, 5, {"function": {}}]}}), (), 1, ("x",)),
        (log(body={"stringValue": "what the customer said"}), (), -1, ()),
    ],
)  # fmt: skip
def test_a_choice_is_read_in_the_shapes_it_comes_in(
    record: dict[str, Any], finish: tuple[str, ...], asked: int, wanted: tuple[str, ...]
):
    found = told(record)
    assert (found.finish, found.asked, found.wanted) == (finish, asked, wanted)


def test_the_details_of_an_operation_are_read_as_those_of_a_models_span():
    parts = [{"type": "text", "content": "the secret"}, {"type": "tool_call", "name": "lookup_order", "arguments": {}}]
    said = {
        "gen_ai.conversation.id": "c-1",
        "gen_ai.agent.name": "triage",
        "gen_ai.provider.name": "OpenAI",
        "gen_ai.response.id": "r-1",
        "gen_ai.response.model": "gpt",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.output.messages": [{"role": "assistant", "parts": parts}],
    }
    found = read_logs(request(log(DETAILS, said)))
    one = found.span
    assert (one.ids, one.agent, one.provider, one.model) == (("c-1",), "triage", "openai", "gpt")
    assert (one.finish, one.tokens, one.asked, one.wanted) == (("stop",), (70, 12, 0), 1, ("lookup_order",))
    assert (one.response_id, found.arrivals[0].response_id) == ("r-1", "")  # its span says it, if it leads anywhere
    assert b"secret" not in found.arrivals[0].body
    text = log(DETAILS, {**said, "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])})
    assert told(text).wanted == ("lookup_order",)


def test_a_users_own_keys_are_read_in_log_records_as_on_spans():
    asked = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "name": "lookup_order"}]}])
    none = json.dumps([{"role": "assistant", "parts": []}])
    aliases = {"messages": ("acme.answer",), "finish": ("acme.end",), "conversation": ("acme.talk",)}
    said = {"acme.answer": asked, "acme.end": "tool_use", "acme.talk": "c-1"}
    one = told(log(DETAILS, said), aliases=aliases)
    assert (one.ids, one.finish, one.asked, one.wanted) == (("c-1",), ("tool_calls",), 1, ("lookup_order",))
    both = told(log(DETAILS, {**said, "gen_ai.output.messages": none}), aliases=aliases)
    assert (both.asked, both.wanted) == (1, ("lookup_order",))
    assert told(log(DETAILS, said)).wanted == ()


def test_the_events_name_may_be_an_attribute_as_it_was():
    assert told(log("", {"event.name": "gen_ai.choice", "finish_reason": "stop"}, eventName=None)).finish == ("stop",)


def test_what_is_told_is_known_by_its_content():
    one, again, other = choice(), choice(), choice(timeUnixNano=str(T + 4))
    found = read_logs(request(one, again, other)).arrivals
    assert found[0] == found[1]
    assert len({arrival.span_id for arrival in found}) == 2
    assert all(is_told(arrival.span_id) and arrival.span_id.startswith(SPAN) for arrival in found)


def test_a_record_without_a_time_was_written_when_it_was_seen_else_when_it_was_recorded():
    assert told(choice(timeUnixNano=None, observedTimeUnixNano=str(T + 9))).start == T + 9
    untimed = request(choice(timeUnixNano=None))
    first, second = (read_logs(untimed, record_time=T + late) for late in (100, 200))
    assert [one.span.start for one in (first, second)] == [T + 100, T + 200]
    assert first.span.span_id == second.span.span_id
    assert read_logs(untimed).reasons == ["bad_time"]


@pytest.mark.parametrize(
    ("record", "fate"),
    [
        (log(""), ("dropped", "no_event")),
        (log("exception"), ("dropped", "no_event")),
        (log("gen_ai.user.message", body={"stringValue": "secret"}), ("dropped", "message")),
        (log("gen_ai.agent.started"), ("dropped", "unknown_event")),
        (choice(traceId=None), ("dropped", "no_span")),
        (choice(spanId="0" * 16), ("dropped", "no_span")),
        (choice(spanId="0102"), ("dead_lettered", "bad_id")),
        (log("gen_ai.evaluation.result"), ("dead_lettered", "bad_evaluation")),
        (log("gen_ai.evaluation.result", RELEVANCE, traceId=None), ("dropped", "no_address")),
        (5, ("dead_lettered", "not_otlp")),
    ],
)
def test_what_tells_nothing_is_counted(record: Any, fate: tuple[str, str]):
    found = read_logs(request(record))
    assert found.counts[fate] == 1
    assert not found.spans
    assert not found.outcomes
    assert len(found.letters) == found.total("dead_lettered")


def test_protobuf_and_json_say_the_same_also_as_a_bare_array():
    message = ExportLogsServiceRequest()
    record = (
        message.resource_logs.add()
        .scope_logs.add()
        .log_records.add(time_unix_nano=T + 3, trace_id=TRACE, span_id=SPAN, event_name="gen_ai.choice")
    )
    record.attributes.add(key="finish_reason").value.string_value = "stop"
    expected = read_logs(message.SerializeToString()).arrivals
    as_json = request(log("gen_ai.choice", {"finish_reason": "stop"}))
    assert read_logs(as_json).arrivals == expected
    assert read_logs(json.dumps(json.loads(as_json)["resourceLogs"]).encode()).arrivals == expected


def test_bad_utf_8_costs_an_attribute_and_a_broken_record_itself_alone():
    message = ExportLogsServiceRequest()
    for name in ("finish_reason", "KEY"):
        record = (
            message.resource_logs.add()
            .scope_logs.add()
            .log_records.add(time_unix_nano=T + 3, trace_id=TRACE, span_id=SPAN, event_name="gen_ai.choice")
        )
        record.attributes.add(key=name).value.string_value = "stop"
    found = read_logs(message.SerializeToString().replace(b"KEY", b"K\xffY"))
    assert [one.finish for one in found.spans] == [("stop",), ()]
    assert found.reasons == ["bad_utf8"]
    trace_id = b"\x4a\x10" + TRACE
    found = read_logs(message.SerializeToString().replace(trace_id, b"\x4a\x7f" + TRACE, 1))
    assert (found.counts["used", "log"], found.reasons) == (1, ["not_otlp"])


@pytest.mark.parametrize(
    "value",
    [
        b"anything",
        json_request(json_span({"gen_ai.operation.name": "chat"})),
        json.dumps(json.loads(json_request(json_span()))["resourceSpans"]).encode(),
        proto({"gen_ai.operation.name": "chat"}),
        b'{"resourceLogs": 5}',
        b'{"resourceLogs": [5]}',
    ],
)
def test_what_is_no_request_of_log_records_is_dead_lettered(value: bytes):
    assert read_logs(value).reasons == ["not_otlp"]


def test_a_bare_array_of_log_records_is_no_request_of_spans():
    step = ingest()
    step.on_record(Topic.OTLP_SPANS, 0, 0, T, None, json.dumps(json.loads(request(choice()))["resourceLogs"]).encode())
    assert Read(step).reasons == ["not_otlp"]


def test_the_watermark_of_a_partition_is_its_latest_record():
    step = ingest()
    for time in (T, T - 5):
        step.on_record(Topic.OTLP_LOGS, 2, 0, time, None, request(choice(timeUnixNano=str(T + 900))))
    assert step.watermark(Topic.OTLP_LOGS, 2) == T


def evaluation(attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return log("gen_ai.evaluation.result", {**RELEVANCE, **(attributes or {})}, **fields)


def test_an_evaluation_becomes_an_outcome_of_the_agents_own():
    found = read_logs(request(evaluation(), resource={"trueup.tenant": "acme"}))
    outcome = found.outcome
    assert (outcome.tenant, outcome.source, outcome.kind) == ("acme", "logs", OutcomeKind.EVALUATION)
    assert (outcome.trace_id, outcome.session_id, outcome.from_agent) == (TRACE, "", True)
    assert outcome.event_id.startswith(f"{TRACE.hex()}/{SPAN.hex()}/")
    assert outcome.event_time == (T + 3) // 1000 * 1000
    assert outcome.data == {
        "name": "Relevance", "score": 0.9, "label": "relevant", "scope": "span", "state": "scored",
    }  # fmt: skip
    assert found.counts["used", "log"] == found.counts["used", "outcome"] == 1


def test_a_repeated_evaluation_is_the_same_outcome_and_another_is_not():
    untimed = evaluation(timeUnixNano=None)
    first, second = (read_logs(request(untimed), record_time=T + late).outcome for late in (5_000, 9_000))
    assert (first.event_id, first.order) == (second.event_id, second.order)
    assert (first.event_time, second.event_time) == (T + 5_000, T + 9_000)
    others = [evaluation(), evaluation({"gen_ai.evaluation.score.value": 0.8}), evaluation(spanId=None)]
    assert len({one.event_id for one in read_logs(request(untimed, *others), record_time=T + 100).outcomes}) == 4


def test_an_evaluation_ahead_of_its_record_is_of_the_records_time():
    outcome = read_logs(request(evaluation(timeUnixNano=str(T + 3600 * 10**9))), record_time=T).outcome
    assert (outcome.event_time, outcome.clock_ahead) == (T, True)


def test_an_evaluation_of_a_conversation_is_addressed_to_it():
    outcome = read_logs(request(evaluation({"gen_ai.conversation.id": " c-1 "}, traceId=None, spanId=None))).outcome
    assert (outcome.session_id, outcome.trace_id, outcome.data["scope"]) == ("c-1", b"", "session")


def test_an_evaluation_of_a_response_leads_to_the_trace_that_has_it():
    found = read_logs(request(evaluation({"gen_ai.response.id": "r-1"}, traceId=None, spanId=None)))
    [arrival] = found.arrivals
    assert (arrival.trace_id, arrival.response_id, arrival.ids, arrival.work) == (
        found.outcome.trace_id, "r-1", (), False,
    )  # fmt: skip
    own = request(evaluation({"acme.answer_id": "r-1"}, traceId=None, spanId=None))
    assert read_logs(own, aliases={"response_id": ("acme.answer_id",)}).arrivals[0].response_id == "r-1"
    other = read_logs(request(evaluation({"gen_ai.response.id": "r-2"}, traceId=None, spanId=None)))
    assert other.outcome.trace_id != found.outcome.trace_id


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/logs.otlp.pb")), ids=lambda path: str(path.parent.name))
def test_recorded_log_records_say_the_same_in_both_forms_and_keep_no_content(path: Path):
    as_protobuf, as_json = read_logs(path.read_bytes()), read_logs(path.with_suffix(".json").read_bytes())
    assert as_protobuf.counts == as_json.counts
    assert as_protobuf.arrivals == as_json.arrivals
    assert as_protobuf.outcomes == as_json.outcomes
    assert not as_protobuf.letters
    kept = b"".join(arrival.body for arrival in as_protobuf.arrivals)
    assert not any(word in kept for word in (b"A-1001", b"refund me", b"gateway refused"))


RECORDED = [path.read_bytes() for path in sorted(GOLDEN.glob("*/logs.otlp.*"))]
FIELDS = [
    *("traceId", "spanId", "timeUnixNano", "observedTimeUnixNano", "eventName", "attributes", "body"),
    *("severityNumber", "event_name"),
]


def balanced(found: Read) -> None:
    assert found.total("dead_lettered") == len(found.letters)
    assert found.counts["used", "log"] == len(found.outcomes) + sum(bool(span.parent_id) for span in found.spans)
    for told in found.spans:
        assert told.kind is Kind.TOLD
        assert is_told(told.span_id)
        assert 0 < told.start == told.end < 2**63


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["flip", "cut", "insert"]), st.sampled_from([0, T]))
def test_no_mutated_log_records_raise_and_all_are_accounted_for(seed: int, how: str, record_time: int):
    found = read_logs(mutated(RECORDED, how, Random(seed)), record_time)
    balanced(found)
    assert found.total("received") > 0


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), documents), documents, st.sampled_from([0, T]))
def test_no_log_record_in_json_raises_and_its_neighbour_counts(fields: dict[str, Any], value: Any, record_time: int):
    odd = evaluation({"gen_ai.evaluation.label": value}) if isinstance(value, str) else choice(value)
    found = read_logs(request({**odd, **fields}, choice(spanId="00000000000000bb")), record_time)
    balanced(found)
    assert found.counts["received", "log"] == 2
    assert any(told.parent_id == bytes.fromhex("00000000000000bb") for told in found.spans)
