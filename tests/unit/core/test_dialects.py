"""All dialects: which one decides, and what each says in its own way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from pipeline.core.dialects.registry import DIALECTS
from pipeline.core.dialects.table import with_aliases
from schemas.span import Control, Kind, Span
from schemas.topics import Topic
from tests.unit.core.ingest_support import Read, ingest, json_request, json_span, pairs, proto, proto_request, read

GOLDEN = Path(__file__).parents[2] / "golden"
ERROR = Status(code=Status.STATUS_CODE_ERROR, message="payment gateway refused")
UNTOLD = Status(code=Status.STATUS_CODE_ERROR)
OK = Status(code=Status.STATUS_CODE_OK)
LANGFUSE_USAGE = "langfuse.observation.usage_details"


def arrived(
    attributes: dict[str, Any],
    name: str = "a name",
    scope: str = "app",
    status: Status | None = None,
    exception: tuple[str, str] | None = None,
    **options: Any,
) -> Read:
    """One span of that scope, with the event of an exception (type, message) where it is given."""
    request = proto_request(attributes)
    group = request.resource_spans[0].scope_spans[0]
    group.scope.name = scope
    span = group.spans[0]
    span.name = name
    if status is not None:
        span.status.CopyFrom(status)
    if exception is not None:
        event = span.events.add(name="exception")
        for key, value in zip(("exception.type", "exception.message"), exception, strict=True):
            event.attributes.add(key=key).value.string_value = value
    return read(request.SerializeToString(), **options)


def span(attributes: dict[str, Any], **given: Any) -> Span:
    return arrived(attributes, **given).span


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"ai.operationId": "ai.generateText"}, Kind.AGENT),
        ({"ai.operationId": "ai.streamText.doStream"}, Kind.INFERENCE),
        ({"ai.operationId": "ai.embedMany.doEmbed"}, Kind.EMBEDDING),
        ({"ai.operationId": "ai.toolCall", "openinference.span.kind": "AGENT"}, Kind.TOOL),
        ({"openinference.span.kind": "LLM", "gen_ai.operation.name": "invoke_agent"}, Kind.INFERENCE),
        ({"openinference.span.kind": "RERANKER", "gen_ai.operation.name": "chat"}, Kind.STEP),
        ({"openinference.span.kind": "guardrail"}, Kind.GUARDRAIL),
        ({"langfuse.observation.type": "generation", "traceloop.span.kind": "tool"}, Kind.INFERENCE),
        ({"langfuse.observation.type": "event"}, Kind.STEP),
        ({"mcp.method.name": "tools/call", "gen_ai.operation.name": "chat"}, Kind.TOOL),
        ({"mcp.method.name": "tools/list"}, Kind.STEP),
        ({"gen_ai.operation.name": "chat", "traceloop.span.kind": "task"}, Kind.INFERENCE),
        ({"gen_ai.operation.name": "goto", "traceloop.span.kind": "agent"}, Kind.STEP),
        ({"traceloop.span.kind": "tool", "llm.request.type": "chat"}, Kind.TOOL),
        ({"llm.request.type": "completion"}, Kind.INFERENCE),
        ({"gen_ai.operation.name": "chat.completions"}, Kind.INFERENCE),
        ({"llm.request.type": "rerank"}, Kind.STEP),
        ({"openinference.span.kind": None, "gen_ai.operation.name": "chat"}, Kind.INFERENCE),
        ({"user.name": "openinference.span.kind"}, Kind.STEP),
    ],
)
def test_the_first_key_that_says_what_a_span_is_decides(attributes: dict[str, Any], kind: Kind):
    assert span(attributes).kind is kind


@pytest.mark.parametrize(
    ("scope", "name", "kind", "named"),
    [
        ("gcp.vertex.agent", "agent_run [triage]", Kind.AGENT, "triage"),
        ("gcp.vertex.agent", "call_llm", Kind.INFERENCE, ""),
        ("gcp.vertex.agent", "execute_tool lookup", Kind.TOOL, "lookup"),
        ("gcp.vertex.agent", "invocation", Kind.STEP, ""),
        ("pydantic-ai", "agent run", Kind.AGENT, ""),
        ("pydantic-ai", "running tools", Kind.STEP, ""),
        ("app", "call_llm", Kind.STEP, ""),
    ],
)
def test_only_known_instrumentations_say_by_names_what_spans_are(scope: str, name: str, kind: Kind, named: str):
    found = span({}, name=name, scope=scope)
    assert (found.kind, found.agent or found.tool) == (kind, named)


@pytest.mark.parametrize(
    ("attributes", "name", "scope", "agent"),
    [
        ({"openinference.span.kind": "AGENT", "agent.name": "a", "graph.node.id": "b"}, "x", "app", "a"),
        ({"openinference.span.kind": "AGENT", "graph.node.id": "b"}, "x", "app", "b"),
        ({"openinference.span.kind": "AGENT", "graph.node.id": "5f0c", "graph.node.name": "b"}, "x", "app", "b"),
        ({"traceloop.span.kind": "agent", "crewai.agent.role": "triage"}, "secret.agent", "x", "triage"),
        ({"gen_ai.operation.name": "invoke_agent", "crewai.agent.role": "triage"}, "secret.agent", "x", "triage"),
        ({"gen_ai.operation.name": "chat", "crewai.agent.role": "triage"}, "secret.llm", "x", ""),
        ({"openinference.span.kind": "AGENT"}, "x", "openinference.instrumentation.langchain", "x"),
        ({"openinference.span.kind": "AGENT"}, "support", "openinference.instrumentation.openai_agents", ""),
        ({"openinference.span.kind": "CHAIN", "graph.node.id": "b"}, "x", "app", ""),
        ({"langfuse.observation.type": "agent"}, "triage", "langfuse-sdk", "triage"),
        ({"langfuse.observation.type": "span"}, "triage", "langfuse-sdk", ""),
        ({"langfuse.observation.type": "tool", "langfuse.observation.metadata.lc_agent_name": '"q"'}, "t", "x", "q"),
        ({"traceloop.span.kind": "agent", "traceloop.entity.name": "support"}, "support.agent", "x", "support"),
        ({"traceloop.span.kind": "task", "traceloop.entity.name": "model"}, "model.task", "x", ""),
        ({"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "orders"}, "ai.generateText", "ai", "orders"),
        ({"gen_ai.operation.name": "chain", "langsmith.metadata.lc_agent_name": "o"}, "model", "langsmith", "o"),
        ({"gen_ai.operation.name": "invoke_agent"}, "invoke_agent gpt", "gen_ai", ""),
        ({"agent_name": "triage"}, "agent run", "pydantic-ai", "triage"),
        ({"agent_name": "triage"}, "agent run", "app", ""),
    ],
)
def test_an_agent_is_named_as_its_dialect_names_agents(attributes: dict[str, Any], name: str, scope: str, agent: str):
    assert span(attributes, name=name, scope=scope).agent == agent


@pytest.mark.parametrize(
    "mark",
    [
        {"traceloop.span.kind": "workflow"},
        {"gen_ai.workflow.nodes": ["triage", "orders"]},
        {"gen_ai.workflow.nodes": '["triage", "orders"]'},
        {"crewai.task.description": "secret"},
        {"crewai.crew.id": "5f0c"},
    ],
)
def test_a_graph_that_is_called_an_agent_is_a_step(mark: dict[str, Any]):
    found = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support_graph", **mark})
    assert (found.kind, found.agent, found.group) == (Kind.STEP, "", "support_graph")


def test_an_agent_that_is_a_graph_of_model_and_tools_is_an_agent():
    nodes = {"gen_ai.workflow.nodes": ["model", "tools"]}
    found = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "orders", **nodes})
    assert (found.kind, found.agent, found.group) == (Kind.AGENT, "orders", "")


@pytest.mark.parametrize(
    ("attributes", "name", "kind", "tool", "target"),
    [
        ({"openinference.span.kind": "AGENT", "tool.name": "transfer_to_x"}, "y", Kind.HANDOFF, "transfer_to_x", "x"),
        ({"openinference.span.kind": "AGENT", "tool.name": "ask_agent"}, "y", Kind.TOOL, "ask_agent", ""),
        ({"openinference.span.kind": "TOOL"}, "handoff to billing", Kind.HANDOFF, "handoff to billing", "billing"),
        ({"openinference.span.kind": "TOOL", "tool.name": "lookup"}, "lookup.run", Kind.TOOL, "lookup", ""),
        ({"langfuse.observation.type": "tool"}, "lookup", Kind.TOOL, "lookup", ""),
        ({"traceloop.span.kind": "tool", "traceloop.entity.name": "lookup"}, "lookup.tool", Kind.TOOL, "lookup", ""),
        ({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "lookup"}, "ai.toolCall", Kind.TOOL, "lookup", ""),
        ({"mcp.method.name": "tools/call"}, "MCP send tools/call lookup", Kind.TOOL, "lookup", ""),
        ({"mcp.method.name": "tools/call", "gen_ai.tool.name": "lookup"}, "tools/call l", Kind.TOOL, "lookup", ""),
        ({"gen_ai.operation.name": "handoff"}, "a → unknown.handoff", Kind.HANDOFF, "", ""),
        ({"gen_ai.operation.name": "execute_tool"}, "execute_tool lookup", Kind.TOOL, "", ""),
    ],
)
def test_a_tool_is_named_as_its_dialect_names_tools(
    attributes: dict[str, Any], name: str, kind: Kind, tool: str, target: str
):
    found = span(attributes, name=name)
    assert (found.kind, found.tool, found.handoff_to) == (kind, tool, target)


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: '{"prompt_tokens":70,"completion_tokens":12,'
          '"prompt_tokens_details":{"cached_tokens":16}}'}, (70, 12, 16)),
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: '{"input":54,"output":10,"total":82,'
          '"input_cache_read":16,"output_reasoning":2}'}, (70, 12, 16)),
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: '{"input_tokens":70,"output_tokens":12,'
          '"input_tokens_details":{"cached_tokens":16}}'}, (70, 12, 16)),
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: '{"input":"many","output":-3}'}, (0, 0, 0)),
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: "[broken"}, (0, 0, 0)),
        ({"langfuse.observation.type": "generation", LANGFUSE_USAGE: {"prompt_tokens": 7}}, (7, 0, 0)),
        ({"openinference.span.kind": "LLM", "llm.token_count.prompt": 7, "llm.token_count.completion": 3}, (7, 3, 0)),
        ({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7,
          "langsmith.metadata.usage_metadata": '{"input_token_details":{"cache_read":5}}'}, (7, 0, 5)),
        ({"llm.request.type": "chat", "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.cache_read_input_tokens": 2},
         (7, 0, 2)),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.usage.inputTokens": 7, "ai.usage.cachedInputTokens": 1},
         (7, 0, 1)),
        ({"ai.operationId": "ai.generateText", "ai.usage.inputTokens": 7}, (0, 0, 0)),
        ({"openinference.span.kind": "AGENT", "llm.token_count.prompt": 7}, (0, 0, 0)),
    ],
)  # fmt: skip
def test_tokens_are_those_of_model_spans_with_the_cached_part(attributes: dict[str, Any], tokens: tuple[int, int, int]):
    assert span(attributes).tokens == tokens


@pytest.mark.parametrize(
    ("attributes", "cost"),
    [
        ({"openinference.span.kind": "LLM", "llm.cost.total": 0.0125}, 12_500_000),
        ({"langfuse.observation.type": "generation", "langfuse.observation.cost_details": '{"input":1,"total":2.5}'},
         2_500_000_000),
        ({"langfuse.observation.type": "generation", "langfuse.observation.cost_details": '{"total":0}'}, 0),
        ({"gen_ai.operation.name": "chat", "operation.cost": 0.000000001}, 1),
        ({"gen_ai.operation.name": "chat", "operation.cost": -1.0}, 0),
        ({"gen_ai.operation.name": "chat", "operation.cost": "much"}, 0),
        ({"gen_ai.operation.name": "chat", "operation.cost": 1e300}, 0),
        ({"gen_ai.operation.name": "invoke_agent", "operation.cost": 0.5}, 0),
        ({"openinference.span.kind": "AGENT", "llm.cost.total": 0.0125}, 0),
    ],
)  # fmt: skip
def test_the_cost_is_that_of_model_spans_where_it_is_told(attributes: dict[str, Any], cost: int):
    assert span(attributes).cost == cost


CALL = "llm.output_messages.{}.message.tool_calls.{}.tool_call.function.name"
OLD_CALL = "gen_ai.completion.0.tool_calls.{}.name"
GENERATION: dict[str, Any] = {"generations": [[{"message": {"kwargs": {"tool_calls": [{}, {}]}}}]]}


@pytest.mark.parametrize(
    ("attributes", "asked"),
    [
        ({"openinference.span.kind": "LLM", CALL.format(0, 0): "x", CALL.format(0, 1): "y"}, 2),
        ({"openinference.span.kind": "LLM", CALL.format(1, 0): "x"}, 1),
        ({"openinference.span.kind": "LLM", "output.value": json.dumps(GENERATION)}, 2),
        ({"openinference.span.kind": "LLM", "output.value": "ships tomorrow"}, -1),
        ({"llm.request.type": "chat", OLD_CALL.format(0): "x"}, 1),
        ({"langfuse.observation.type": "generation", "langfuse.observation.output": '{"tool_calls":[{}]}'}, 1),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls": "[{},{},{}]"}, 3),
        ({"gen_ai.operation.name": "chat", "gen_ai.completion": json.dumps(GENERATION)}, 2),
    ],
)
def test_the_tool_calls_that_a_model_asked_for_are_counted(attributes: dict[str, Any], asked: int):
    assert span(attributes).asked == asked


LANGCHAIN_ANSWER: dict[str, Any] = {
    "generations": [[{"message": {"kwargs": {"response_metadata": {"id": "chatcmpl-2"}}}}]]
}


@pytest.mark.parametrize(
    ("output", "response_id"),
    [
        ('{"id":"chatcmpl-1","choices":[]}', "chatcmpl-1"),
        (json.dumps(LANGCHAIN_ANSWER), "chatcmpl-2"),
        ('{"id":["langchain"],"text":"chatcmpl-9"}', ""),
        ("Order A-1001 ships tomorrow.", ""),
        ('{"id":"chatcmpl-1', ""),
    ],
)
def test_a_response_id_inside_an_answer_is_read_and_nothing_else_of_it(output: str, response_id: str):
    found = arrived({"openinference.span.kind": "LLM", "output.value": output})
    assert found.span.response_id == response_id
    assert b"ships" not in found.arrivals[0].body


def test_finish_reasons_are_found_where_each_dialect_has_them():
    assert span({"openinference.span.kind": "LLM", "llm.finish_reason": "tool_calls"}).finish == ("tool_calls",)
    autogen = {"openinference.span.kind": "LLM", "output.value": '{"finish_reason":"function_calls"}'}
    assert span(autogen).finish == ("tool_calls",)
    assert span({"llm.request.type": "chat", "gen_ai.completion.0.finish_reason": "stop"}).finish == ("stop",)
    assert span({"llm.request.type": "chat", "gen_ai.completion.1.finish_reason": "end_turn"}).finish == ("end_turn",)
    semantic_kernel = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reason": "FinishReason.STOP"}
    assert span(semantic_kernel).finish == ("stop",)
    vercel = {"ai.operationId": "ai.streamText.doStream", "ai.response.finishReason": "tool-calls"}
    assert span(vercel).finish == ("tool_calls",)
    request = proto_request({"gen_ai.operation.name": "chat", "gen_ai.event.start_time": "2026-11-29T18:40:31+00:00"})
    choice = request.resource_spans[0].scope_spans[0].spans[0].events.add(name="gen_ai.choice")
    choice.attributes.add(key="finish_reason").value.string_value = "tool_use"
    assert read(request.SerializeToString()).span.finish == ("tool_calls",)
    stated = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": '[{"parts":[],"finish_reason":"stop"}]'}
    assert span(stated).finish == ("stop",)
    assert span({**stated, "gen_ai.response.finish_reasons": ["length"]}).finish == ("length",)


PARTS = [{"type": "text", "content": "secret"}, {"type": "tool_call", "name": "x"}, {"type": "tool_call", "name": "y"}]
TOOL_USE = '[{"text":"secret"},{"toolUse":{"name":"x","input":{}}}]'
DETAILS = "gen_ai.client.inference.operation.details"


@pytest.mark.parametrize(
    ("event", "told", "finish", "asked"),
    [
        ("gen_ai.choice", {"finish_reason": "tool_use", "message": TOOL_USE}, ("tool_calls",), 1),
        ("gen_ai.choice", {"finish_reason": "end_turn", "message": '[{"text":"secret"}]'}, ("end_turn",), 0),
        ("gen_ai.choice", {"finish_reason": "stop", "message": "secret"}, ("stop",), -1),
        (DETAILS, {"gen_ai.response.finish_reasons": ["stop"]}, ("stop",), -1),
        (DETAILS, {"gen_ai.output.messages": json.dumps([{"parts": PARTS, "finish_reason": "tool_use"}])},
         ("tool_calls",), 2),
        (DETAILS, {"gen_ai.output.messages": '[{"parts":[], "finish_reason": null}]'}, (), -1),
        ("exception", {"exception.message": "no finish_reason"}, (), -1),
    ],
)  # fmt: skip
def test_events_of_a_models_span_tell_of_its_answer_where_attributes_do_not(
    event: str, told: dict[str, Any], finish: tuple[str, ...], asked: int
):
    chat = json_span({"gen_ai.operation.name": "chat"}, events=[{"name": event, "attributes": pairs(told)}])
    found = read(json_request(chat))
    assert (found.span.finish, found.span.asked) == (finish, asked)
    assert b"secret" not in found.arrivals[0].body


@pytest.mark.parametrize(
    ("attributes", "provider"),
    [
        ({"gen_ai.operation.name": "chat", "gen_ai.system": "OpenAI"}, "openai"),
        ({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.system": "x"}, "gcp.gemini"),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.model.provider": "openai.chat"}, "openai"),
        ({"openinference.span.kind": "LLM", "llm.system": "openai", "llm.provider": "Azure.openai"}, "azure.openai"),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.system": "strands-agents"}, ""),
    ],
)
def test_the_provider_is_that_of_a_model_span_in_one_spelling(attributes: dict[str, Any], provider: str):
    assert span(attributes).provider == provider


@pytest.mark.parametrize(
    ("attributes", "given", "outcome"),
    [
        ({"openinference.span.kind": "TOOL"}, {"status": OK, "exception": ("langgraph.errors.GraphInterrupt", "x")},
         (False, Control.INTERRUPT)),
        ({"openinference.span.kind": "TOOL"}, {"status": OK, "exception": ("ValueError", "x")}, (False, Control.NONE)),
        ({"openinference.span.kind": "TOOL"}, {"status": ERROR, "exception": ("ValueError", "x")},
         (True, Control.NONE)),
        ({"gen_ai.operation.name": "execute_tool"}, {"status": OK, "exception": ("GraphInterrupt", "x")},
         (False, Control.NONE)),
        ({"gen_ai.operation.name": "chain"}, {"status": UNTOLD, "exception": ("Exception", "ParentCommand(C")},
         (False, Control.HANDOFF)),
        ({"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR"}, {}, (True, Control.NONE)),
        ({"langfuse.observation.type": "tool", "langfuse.observation.level": "WARNING"}, {}, (False, Control.NONE)),
        ({"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR",
          "langfuse.observation.status_message": "(Interrupt(value"}, {}, (False, Control.INTERRUPT)),
        ({"langfuse.observation.type": "tool", "langfuse.observation.status_message": "(Interrupt(value"}, {},
         (False, Control.INTERRUPT)),
        ({"langfuse.observation.type": "tool", "langfuse.observation.status_message": "tripped"}, {},
         (False, Control.NONE)),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.status": "error"}, {}, (True, Control.NONE)),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.task.status": "failure"}, {}, (True, Control.NONE)),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.task.status": "failure"},
         {"status": ERROR, "exception": ("GraphInterrupt", "")}, (False, Control.INTERRUPT)),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.task.status": "failure"},
         {"exception": ("GraphInterrupt", "")}, (False, Control.INTERRUPT)),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.task.status": "failure", "error.type": "ParentCommand"}, {},
         (False, Control.HANDOFF)),
        ({"gen_ai.operation.name": "chat", "gen_ai.task.status": "failure"}, {}, (True, Control.NONE)),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.task.status": "failure"}, {"status": OK},
         (True, Control.NONE)),
        ({"gen_ai.operation.name": "handoff", "gen_ai.tool.status": "error"}, {}, (True, Control.NONE)),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.task.status": "success"}, {}, (False, Control.NONE)),
        ({"langfuse.observation.type": "tool", "gen_ai.tool.status": "error"}, {}, (True, Control.NONE)),
        ({"ai.operationId": "ai.toolCall"}, {"status": ERROR}, (False, Control.NONE)),
        ({"ai.operationId": "ai.toolCall"}, {"status": ERROR, "exception": ("Error", "payment gateway refused")},
         (True, Control.NONE)),
        ({"ai.operationId": "ai.toolCall"}, {"status": UNTOLD}, (True, Control.NONE)),
    ],
)  # fmt: skip
def test_an_error_is_one_where_its_dialect_means_one(
    attributes: dict[str, Any], given: dict[str, Any], outcome: tuple[bool, Control]
):
    found = span(attributes, **given)
    assert (found.failed, found.control) == outcome


def test_a_langfuse_guardrail_that_warned_has_tripped():
    assert span({"langfuse.observation.type": "guardrail", "langfuse.observation.level": "WARNING"}).said.tripped  # type: ignore[union-attr]
    assert span({"langfuse.observation.type": "guardrail"}).said.tripped is False  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("more", "given", "requested"),
    [
        ({"gen_ai.tool.call.arguments": "{}"}, {}, True),
        ({"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "done"}, {}, False),
        ({}, {}, False),
        ({"gen_ai.tool.call.arguments": "{}"}, {"status": ERROR}, False),
        ({"gen_ai.tool.call.arguments": "{}"}, {"scope": "opentelemetry.instrumentation.genai.langchain"}, False),
        ({"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.name": "transfer_to_x"}, {}, False),
    ],
)
def test_a_tool_span_without_a_result_is_a_request_where_the_instrumentation_means_one(
    more: dict[str, Any], given: dict[str, Any], requested: bool
):
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", **more}
    options = {"scope": "opentelemetry.instrumentation.genai.openai_agents", **given}
    assert span(attributes, **options).requested is requested


@pytest.mark.parametrize(
    ("attributes", "subject"),
    [
        ({"user.id": "u-1"}, "u-1"),
        ({"user.id": 7}, "7"),
        ({"traceloop.association.properties.user_id": "u-1"}, "u-1"),
        ({"ai.telemetry.metadata.userId": "u-1"}, "u-1"),
        ({"mastra.metadata.resourceId": "u-1"}, "u-1"),
        ({"user.id": "u-1", "trueup.subject": "s"}, "s"),
        ({"user.id": " ", "langsmith.metadata.user_id": "u-2"}, "u-2"),
    ],
)
def test_the_subject_is_who_is_served(attributes: dict[str, Any], subject: str):
    said = span(attributes).said
    assert said is not None
    assert said.subjects == (subject,)


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        ({"deployment.environment": "test"}, {"deployment.environment.name": "test"}),
        ({"deployment.environment": "old", "deployment.environment.name": "new"},
         {"deployment.environment.name": "new"}),
        ({"langfuse.environment": "test", "langfuse.release": "1.4.2"},
         {"deployment.environment.name": "test", "service.version": "1.4.2"}),
        ({"langfuse.version": "v7", "host.name": "secret"}, {}),
    ],
)  # fmt: skip
def test_a_resource_is_kept_under_the_names_of_today(resource: dict[str, Any], kept: dict[str, Any]):
    assert read(proto({"gen_ai.operation.name": "chat"}, resource=resource)).span.resource == kept


def test_no_user_is_no_subject():
    assert span({"user.id": "null", "user.name": "Ada"}).said is None


def test_configured_keys_come_before_those_of_the_tables():
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "standard", "acme.agent": "ours"}
    assert span(attributes).agent == "standard"
    assert span(attributes, aliases={"agent": ("acme.agent",)}).agent == "ours"
    assert span({"acme.user": "u"}, aliases={"subject": ("acme.user",)}).said.subjects == ("u",)  # type: ignore[union-attr]


def test_a_users_own_keys_stand_for_attributes_of_ours_which_hold_where_both_are_there():
    aliases = {
        "trueup.task.family": ("acme.task", "acme.job"),
        "trueup.task.outcome": ("acme.end",),
        "trueup.state.paid": ("acme.paid",),
        "trueup.correlation.order_id": ("order.id",),
        "trueup.issue": ("acme.ticket",),
        "trueup.subject": ("acme.customer",),
    }
    attributes = {"acme.job": "late", "acme.task": "refund", "acme.end": "Completed", "acme.paid": True}
    said = span({**attributes, "order.id": 7, "acme.ticket": "t", "acme.customer": "c"}, aliases=aliases).said
    assert said is not None
    assert (said.families, said.claim, said.state, said.keys) == (
        ("refund",), "completed", {"paid": True}, {"order_id": ("7",)},
    )  # fmt: skip
    assert (said.issues, said.subjects) == (("t",), ("c",))
    both = {"acme.task": "refund", "trueup.task.family": "order", "acme.paid": True, "trueup.state.paid": False}
    ours = span(both, aliases=aliases).said
    assert ours is not None
    assert (ours.families, ours.state) == (("order",), {"paid": False})
    assert span(attributes).said is None


def test_a_users_own_key_names_the_conversation_before_the_known_ones():
    attributes = {"acme.sessionId": "ours", "session.id": "standard"}
    found = arrived(attributes, aliases={"conversation": ("acme.sessionId",)})
    assert found.span.ids == ("ours", "standard")
    assert found.counts["noted", "looks_like_session_id"] == 0


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"acme.kind": "tool", "gen_ai.tool.name": "lookup"}, Kind.TOOL),
        ({"acme.kind": "Inference"}, Kind.INFERENCE),
        ({"acme.kind": "invoke_agent"}, Kind.AGENT),
        ({"acme.kind": "told"}, Kind.STEP),
        ({"acme.kind": "tool", "gen_ai.operation.name": "chat"}, Kind.INFERENCE),
    ],
)
def test_a_users_own_key_says_what_a_span_is_where_no_known_one_does(attributes: dict[str, Any], kind: Kind):
    assert span(attributes, aliases={"kind": ("acme.kind",)}).kind is kind


@pytest.mark.parametrize("field", ["kinds", "nonsense", "unnamed_scopes", "trueup.nonsense"])
def test_a_field_that_takes_no_keys_is_refused_by_name(field: str):
    with pytest.raises(ValueError, match=f"'{field}' takes no attribute keys; those that do: .*call_id"):
        ingest(aliases={field: ("x",)})


@pytest.mark.parametrize(
    ("attributes", "noted"),
    [
        ({"acme.sessionId": "7"}, {"acme.sessionId"}),
        ({"acme.chat_id": "7", "acme.name": "x"}, {"acme.chat_id"}),
        ({"Conversation-ID": "7"}, {"Conversation-ID"}),
        ({"acme.sessionId": "7", "session.id": "8"}, set()),
        ({"acme.sessionId": "7", "session.id": "null"}, {"acme.sessionId"}),
        ({"thread.id": 7, "mcp.session.id": "x", "langsmith.trace.session_id": "y", "session.id.note": "x"}, set()),
    ],
)
def test_an_unknown_key_that_looks_like_a_conversations_is_noted(attributes: dict[str, Any], noted: set[str]):
    step = ingest()
    request = proto({"gen_ai.operation.name": "chat", **attributes})
    step.on_record(Topic.OTLP_SPANS, 0, 0, 0, None, request)
    assert step.session_like.keys_noted() == noted
    assert Read(step).counts["noted", "looks_like_session_id"] == bool(noted)


def test_noted_keys_are_bounded_and_hold_no_values():
    step = ingest()
    for number in range(50):
        name = f"acme{chr(97 + number % 26) * (1 + number // 26)}.session_id"
        step.on_record(Topic.OTLP_SPANS, 0, number, 0, None, proto({name: "x"}))
    assert len(step.session_like) == 21
    assert step.session_like["__other__"] == 30
    assert Read(step).counts["noted", "looks_like_session_id"] == 50
    step = ingest()
    for number, key in enumerate(("of.4711.session_id", "of.4712.session_id", "of.5f0cd1e29a.session_id")):
        step.on_record(Topic.OTLP_SPANS, 0, number, 0, None, proto({key: "x"}))
    assert step.session_like == {"of.*.session_id": 3}


def test_a_configured_key_is_no_unknown_one():
    found = arrived({"acme.sessionId": "7"}, conversation_keys=("acme.sessionId",))
    assert found.span.ids == ("7",)
    assert found.counts["noted", "looks_like_session_id"] == 0


def test_what_is_read_does_not_hang_on_what_was_read_before():
    """Shapes and meanings are remembered: the first of a kind and the thousandth say the same."""
    payloads = [path.read_bytes() for path in sorted(GOLDEN.glob("*/traces.otlp.pb"))]
    warm = ingest()
    for _ in range(2):
        together = []
        for payload in payloads:
            warm.on_record(Topic.OTLP_SPANS, 0, 0, 0, None, payload)
            together += Read(warm).spans
    assert together == [one for payload in payloads for one in read(payload).spans]


def test_many_more_attributes_change_nothing():
    for path in sorted(GOLDEN.glob("*/traces.otlp.pb")):
        request = ExportTraceServiceRequest.FromString(path.read_bytes())
        for part in request.resource_spans:
            for group in part.scope_spans:
                for one in group.spans:
                    for number in range(60):
                        key = f"llm.input_messages.{number}.message.content"
                        one.attributes.add(key=key).value.string_value = "hello"
        padded = [replace(one, attributes=0) for one in read(request.SerializeToString()).spans]
        assert padded == [replace(one, attributes=0) for one in read(path.read_bytes()).spans]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/traces.otlp.pb")), ids=lambda path: str(path.parent.name))
def test_no_content_is_kept(path: Path):
    """Neither what was cut out of the captures nor what the scenario said, in any dialect, in names or messages."""
    record = b"".join(arrival.body for arrival in read(path.read_bytes()).arrivals)
    said = (b"[content]", b"stub provider", b"gateway refused", b"approve refund", b"A-1001", b"refund me", b"tomorrow")
    for content in said:
        assert content not in record


def test_every_dialect_takes_aliases_for_the_same_fields():
    for dialect in DIALECTS:
        assert with_aliases(dialect, {"tool": ("acme.tool",)}).tool[0] == "acme.tool"


def test_tool_calls_put_into_words_are_counted():
    part = {"type": "text", "content": "ResponseFunctionToolCall(arguments='{}', name='refund')"}
    said = {"type": "text", "content": "I called ResponseFunctionToolCall("}
    for parts, asked in (([part], 1), ([part, part], 2), ([said], 0), ([{"type": "tool_call"}, part], 2)):
        messages = json.dumps([{"role": "assistant", "parts": parts}])
        assert span({"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}).asked == asked


HANDLED = {"langfuse.observation.type": "tool", "langfuse.observation.input": "{'order_id': 'A-1'}"}
TOOL_CALL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
DECORATED = '{"args": [], "kwargs": {"order_id": "A-1"}}'
CALLBACK = '{"input_str": "{}", "tags": ["seq:step:1"], "inputs": {"order_id": "A-1"}}'


@pytest.mark.parametrize(
    ("attributes", "given", "arguments"),
    [
        ({**TOOL_CALL, "gen_ai.tool.call.arguments": '{"order_id":"A-1"}'}, {}, {"order_id": "A-1"}),
        ({**TOOL_CALL, "gcp.vertex.agent.tool_call_args": '{"order_id":"A-1"}'}, {}, {"order_id": "A-1"}),
        ({**TOOL_CALL, "gen_ai.prompt": '{"order_id":"A-1"}'}, {}, {"order_id": "A-1"}),
        ({**TOOL_CALL, "gen_ai.tool.call.arguments": CALLBACK}, {}, {"order_id": "A-1"}),
        ({"traceloop.span.kind": "tool", "traceloop.entity.input": DECORATED}, {}, {"order_id": "A-1"}),
        ({"langfuse.observation.type": "tool", "langfuse.observation.input": DECORATED}, {}, {"order_id": "A-1"}),
        ({"langfuse.observation.type": "tool", "langfuse.observation.input": '{"args": ["A-1"], "kwargs": {}}'}, {},
         {"args": '["A-1"]', "kwargs": "{}"}),
        ({**HANDLED, "langfuse.observation.metadata.inputs": '{"order_id": "A-1"}'}, {}, {"order_id": "A-1"}),
        (HANDLED, {}, None),
        ({"tool_arguments": '{"order_id":"A-1"}'}, {"name": "running tool", "scope": "pydantic-ai"},
         {"order_id": "A-1"}),
        ({**TOOL_CALL, "gen_ai.tool.call.arguments": '{"args": 1, "inputs": {}}'}, {}, {"args": "1", "inputs": "{}"}),
        ({"gen_ai.operation.name": "chat", "gen_ai.prompt": '{"order_id":"A-1"}'}, {}, None),
    ],
)  # fmt: skip
def test_arguments_are_found_where_each_dialect_has_them(
    attributes: dict[str, Any], given: dict[str, Any], arguments: dict[str, str] | None
):
    said = span({**attributes, "trueup.scenario": "refund"}, **given).said
    assert said is not None
    assert said.arguments == arguments
    assert span(attributes, **given).said is None  # nobody plays: they are content


def test_arguments_are_found_in_events_where_no_attribute_has_them():
    def called(event: str, kind: str, **more: Any) -> dict[str, str] | None:
        attributes = {"gen_ai.operation.name": kind, "trueup.scenario": "refund", **more}
        events = [{"name": event, "attributes": pairs({"role": "tool", "content": '{"order_id": "A-1"}'})}]
        said = read(json_request(json_span(attributes, events=events))).span.said
        assert said is not None
        return said.arguments

    assert called("gen_ai.tool.message", "execute_tool") == {"order_id": "A-1"}
    assert called("gen_ai.tool.message", "execute_tool", **{"gen_ai.tool.call.arguments": "{}"}) == {}
    assert called("gen_ai.tool.message", "chat") is None
    assert called("gen_ai.choice", "execute_tool") is None
