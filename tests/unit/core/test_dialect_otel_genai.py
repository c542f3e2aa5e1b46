"""OpenTelemetry's GenAI conventions: what a span is taken for, what is kept of it and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from schemas.span import WORK, Control, Kind, Said, Span, SpanFlag
from tests.unit.core.ingest_support import TRACE, Read, proto, proto_request, read


def span(operation: str | None = "chat", /, **attributes: Any) -> Span:
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    return read(proto({**({"gen_ai.operation.name": operation} if operation else {}), **held})).span


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat", Kind.INFERENCE),
        ("text_completion", Kind.INFERENCE),
        ("generate_content", Kind.INFERENCE),
        ("embeddings", Kind.EMBEDDING),
        ("execute_tool", Kind.TOOL),
        ("invoke_agent", Kind.AGENT),
        ("agent_handoff", Kind.HANDOFF),
        ("guardrail_check", Kind.GUARDRAIL),
        ("invoke_workflow", Kind.STEP),
        ("create_agent", Kind.STEP),
        ("invoke_swarm", Kind.STEP),
        ("Ada Lovelace, 12 Main Street", Kind.STEP),
        (None, Kind.STEP),
    ],
)
def test_the_kind_is_the_operations_and_an_unknown_one_is_a_step(operation: str | None, kind: Kind):
    found = span(operation)
    assert found.kind is kind
    assert found.is_work is (kind in WORK)
    assert "Ada" not in found.name


@pytest.mark.parametrize(
    ("tool", "kind", "target"),
    [
        ("transfer_to_orders_agent", Kind.HANDOFF, "orders_agent"),
        ("Handoff-transfer_to_orders_agent", Kind.HANDOFF, "orders_agent"),
        ("TRANSFER_TO_Sales", Kind.HANDOFF, "Sales"),
        ("handoff to billing", Kind.HANDOFF, "billing"),
        ("handoff_to_agent", Kind.HANDOFF, ""),
        ("transfer_to_agent", Kind.HANDOFF, ""),
        ("handoff", Kind.HANDOFF, ""),
        ("Delegate work to coworker", Kind.HANDOFF, ""),
        ("ask question to coworker", Kind.HANDOFF, ""),
        ("escalate_to_human", Kind.TOOL, ""),
        ("lookup_transfer_to", Kind.TOOL, ""),
        ("", Kind.TOOL, ""),
    ],
)
def test_a_tool_that_hands_over_is_a_hand_off(tool: str, kind: Kind, target: str):
    found = span("execute_tool", gen_ai__tool__name=tool, gen_ai__tool__call__id="call_1")
    assert (found.kind, found.handoff_to, found.tool, found.call_id) == (kind, target, tool, "call_1")


@pytest.mark.parametrize(
    ("given", "finish"),
    [
        (["stop"], ("stop",)),
        (["STOP", "tool_call"], ("stop", "tool_calls")),
        ('["tool-calls"]', ("tool_calls",)),
        ("FinishReason.TOOL_CALLS", ("tool_calls",)),
        ("end_turn", ("end_turn",)),
        ("[broken", ()),
        ([], ()),
        (None, ()),
        (7, ()),
    ],
)
def test_finish_reasons_have_one_spelling(given: Any, finish: tuple[str, ...]):
    assert span(gen_ai__response__finish_reasons=given).finish == finish


CALL = {"type": "tool_call", "name": "lookup", "arguments": {"who": "Ada"}, "id": "1"}
TEXT = {"type": "text", "content": "hello Ada"}


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        pytest.param([{"parts": [CALL, TEXT, CALL]}], 2, id="two calls"),
        pytest.param([{"parts": [CALL]}, {"parts": [CALL]}], 2, id="in two messages"),
        pytest.param([{"parts": [TEXT]}], 0, id="text"),
        pytest.param([], 0, id="nothing"),
        pytest.param("cut in the mid", -1, id="no JSON"),
        pytest.param({"parts": 5}, -1, id="another shape"),
    ],
)
@pytest.mark.parametrize("structured", [False, True], ids=["as JSON text", "as a structured attribute"])
def test_of_messages_only_the_number_of_tool_calls_is_read(messages: Any, asked: int, structured: bool):
    value = messages if structured or isinstance(messages, str) else json.dumps(messages)
    result = read(proto({"gen_ai.operation.name": "chat", "gen_ai.output.messages": value}))
    assert result.span.asked == asked
    assert b"Ada" not in result.arrivals[0].body


def test_a_model_that_says_nothing_about_its_messages_did_not_ask_for_zero_calls():
    assert span().asked == -1


def test_messages_cut_short_say_nothing():
    whole = json.dumps([{"parts": [CALL, CALL]}])
    assert span(gen_ai__output__messages=whole[: len(whole) // 2]).asked == -1


def test_content_and_free_text_are_never_kept():
    secrets = {
        "gen_ai.input.messages": "SECRET",
        "gen_ai.system_instructions": "SECRET",
        "gen_ai.tool.call.arguments": "SECRET",
        "gen_ai.tool.call.result": "SECRET",
        "gen_ai.agent.description": "SECRET",
        "exception.message": "SECRET",
        "http.url": "SECRET",
    }
    for operation in ("chat", "execute_tool", "invoke_agent", "nonsense"):
        request = proto_request({"gen_ai.operation.name": operation, **secrets}, resource={"host.name": "SECRET"})
        sent = request.resource_spans[0].scope_spans[0].spans[0]
        sent.name, sent.status.message = "SECRET", "SECRET"
        sent.status.code = Status.STATUS_CODE_ERROR
        result = read(request.SerializeToString())
        assert b"SECRET" not in result.arrivals[0].body
        assert result.span.attributes == len(secrets) + 1


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4}, (9, 4, 0)),
        ({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.cache_read.input_tokens": 3}, (9, 0, 3)),
        ({"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 4}, (9, 4, 0)),
        ({"gen_ai.usage.input_tokens": 9, "gen_ai.usage.prompt_tokens": 8}, (9, 0, 0)),
        ({"gen_ai.usage.input_tokens": "9", "gen_ai.usage.output_tokens": 4.0}, (9, 4, 0)),
        ({"gen_ai.usage.input_tokens": -9, "gen_ai.usage.output_tokens": "many"}, (0, 0, 0)),
        ({"gen_ai.usage.input_tokens": 2**40, "gen_ai.usage.output_tokens": 2**40 + 1}, (2**40, 0, 0)),  # none has more
    ],
)
def test_tokens_are_counted_on_model_spans_alone(usage: dict[str, Any], tokens: tuple[int, int, int]):
    assert read(proto({"gen_ai.operation.name": "chat", **usage})).span.tokens == tokens
    assert read(proto({"gen_ai.operation.name": "invoke_agent", **usage})).span.tokens == (0, 0, 0)


def test_the_answering_model_counts_else_the_requested():
    assert span(gen_ai__request__model="a", gen_ai__response__model="b").model == "b"
    found = span(gen_ai__request__model="a", gen_ai__response__id="r1")
    assert (found.model, found.response_id, found.name) == ("a", "r1", "chat a")


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("invoke_agent", "invoke_agent triage"),
        ("execute_tool", "execute_tool lookup"),
        ("chat", "chat gpt"),
        ("invoke_workflow", "invoke_workflow triage"),
    ],
)
def test_a_name_is_put_together_from_known_fields(operation: str, name: str):
    fields = {"gen_ai__agent__name": "triage", "gen_ai__tool__name": "lookup", "gen_ai__request__model": "gpt"}
    assert span(operation, **fields).name == name


def test_an_agent_name_that_names_no_agent_is_left_out():
    assert span("invoke_agent", gen_ai__agent__name="OpenAI Agent").agent == ""


def failing(
    message: str = "",
    events: tuple[dict[str, str], ...] = (),
    code: Status.StatusCode.ValueType = Status.STATUS_CODE_ERROR,
    **attributes: Any,
) -> Span:
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    request = proto_request({"gen_ai.operation.name": "execute_tool", **held})
    sent = request.resource_spans[0].scope_spans[0].spans[0]
    sent.status.code, sent.status.message = code, message
    for event in events:
        added = sent.events.add(name="exception")
        for key, value in event.items():
            added.attributes.add(key=key).value.string_value = value
    return read(request.SerializeToString()).span


@pytest.mark.parametrize(
    ("found", "control"),
    [
        pytest.param(failing(error__type="langgraph.errors.ParentCommand"), Control.HANDOFF, id="hand-off by type"),
        pytest.param(failing(error__type="GraphInterrupt"), Control.INTERRUPT, id="interrupt by type"),
        pytest.param(failing(error__type="x.NodeInterrupt"), Control.INTERRUPT, id="node interrupt"),
        pytest.param(failing("ParentCommand(Command("), Control.HANDOFF, id="hand-off by message"),
        pytest.param(failing("(Interrupt(value=1),)"), Control.INTERRUPT, id="interrupt by message"),
        pytest.param(
            failing("x", ({"exception.type": "langgraph.errors.GraphInterrupt"},)), Control.INTERRUPT, id="by event"
        ),
        pytest.param(failing(error__type="ValueError"), Control.NONE, id="another error"),
        pytest.param(failing("we said GraphInterrupt("), Control.NONE, id="in the middle of a message"),
        pytest.param(failing(error__type="ParentCommandError"), Control.NONE, id="another type"),
        pytest.param(failing("x", ({"exception.type": "E"}, {})), Control.NONE, id="another event"),
    ],
)
def test_control_flow_is_no_failure(found: Span, control: Control):
    assert found.control is control
    assert found.failed is (control is Control.NONE)


def test_an_error_type_without_an_error_status_is_no_failure():
    found = failing(code=Status.STATUS_CODE_OK, error__type="ValueError")
    assert (found.failed, found.control) == (False, Control.NONE)


def test_conversation_ids_stand_in_the_order_of_the_keys():
    found = read(proto({"gen_ai.conversation.id": "b", "session.id": "a", "langsmith.metadata.thread_id": "b"}))
    assert found.span.ids == ("a", "b")
    assert found.counts["noted", "conflicting_ids"] == 1
    own = read(proto({"gen_ai.conversation.id": "b", "ticket": 7}), conversation_keys=("ticket",))
    assert own.span.ids == ("7",)


@pytest.mark.parametrize("missing", ["", " null ", "undefined", None, "trace:" + TRACE.hex()])
def test_a_missing_id_is_counted_and_the_next_key_counts(missing: str | None):
    alone = read(proto({"session.id": missing}))
    assert alone.span.ids == ()
    both = read(proto({"session.id": missing, "gen_ai.conversation.id": "c"}))
    assert both.span.ids == ("c",)
    assert both.counts["noted", "conflicting_ids"] == 0


@pytest.mark.parametrize(("triggered", "tripped"), [(True, True), (False, False), ("true", True), (None, False)])
def test_a_guardrail_says_whether_it_tripped(triggered: Any, tripped: bool):
    found = span("guardrail_check", gen_ai__guardrail__triggered=triggered)
    assert found.said == Said(tripped=tripped)
    assert not found.is_work


def test_what_an_agent_states_is_read():
    found = span(
        "invoke_agent",
        trueup__task__family=["order", "return"],
        trueup__task__outcome=" Completed ",
        trueup__state__total=12.5,
        trueup__correlation__order_id=[7, "7", "A"],
        trueup__issue="i1",
        trueup__subject=" u1 ",
        trueup__unknown="x",
    )
    assert found.said == Said(
        families=("order", "return"),
        claim="completed",
        state={"total": 12.5},
        keys={"order_id": ("7", "A")},
        issues=("i1",),
        subjects=("u1",),
    )


@pytest.mark.parametrize("claim", ["done", "", True, 1])
def test_an_unknown_claim_is_counted_and_ignored(claim: Any):
    result: Read = read(proto({"trueup.task.outcome": claim}))
    assert result.span.said is None
    assert result.counts["noted", "unknown_claim"] == 1


def test_links_lead_to_other_traces():
    request = proto_request({})
    sent = request.resource_spans[0].scope_spans[0].spans[0]
    for trace in (b"b" * 16, b"a" * 16, b"b" * 16, TRACE, bytes(16), b"short", b""):
        sent.links.add(trace_id=trace)
    assert read(request.SerializeToString()).span.links == (b"a" * 16, b"b" * 16)


def test_a_name_without_end_is_cut_and_flagged():
    found = span("execute_tool", gen_ai__tool__name="é" * 5000)
    assert found.tool == "é" * 1024
    assert found.flags == SpanFlag.CUT
    assert span("execute_tool", gen_ai__tool__name="é" * 1024).flags == 0
