"""OpenTelemetry's GenAI conventions, as its own instrumentations emit them (2025 and 2026)."""

from __future__ import annotations

from pipeline.core.dialects.table import Dialect
from schemas.span import Control, Kind

CONVERSATION_KEYS = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.chat_id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.thread_id",
    "gcp.vertex.agent.session_id",
    "ai.telemetry.metadata.sessionId",
    "ai.settings.context.sessionId",
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "mastra.metadata.threadId",
)
"""Where conversation ids are found, the most telling first; configuration adds and reorders."""

OTEL_GENAI = Dialect(
    kind=("gen_ai.operation.name",),
    kinds={
        "chat": Kind.INFERENCE,
        "text_completion": Kind.INFERENCE,
        "generate_content": Kind.INFERENCE,
        "embeddings": Kind.EMBEDDING,
        "execute_tool": Kind.TOOL,
        "invoke_agent": Kind.AGENT,
        "agent_handoff": Kind.HANDOFF,
        "guardrail_check": Kind.GUARDRAIL,
        "invoke_workflow": Kind.STEP,  # a graph or a crew: it runs agents and is none
        "create_agent": Kind.STEP,  # nothing is done yet
        "retrieval": Kind.STEP,
        "plan": Kind.STEP,
    },
    agent=("gen_ai.agent.name",),
    tool=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    handoff_to=("gen_ai.handoff.to_agent",),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    response_id=("gen_ai.response.id",),
    finish=("gen_ai.response.finish_reasons",),
    messages=("gen_ai.output.messages",),
    tool_call_parts=frozenset({"tool_call"}),
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    cached_tokens=("gen_ai.usage.cache_read.input_tokens",),
    tripped=("gen_ai.guardrail.triggered",),
    error_type=("error.type",),
    not_agents=frozenset({"OpenAI Agent"}),
    handoff_tools=r"(?:.*-)?"
    r"(?:transfer_to_(.+)|handoff[ _]to[ _](.+)|(?:transfer_to_|handoff|delegate work|ask question).*)",
    not_targets=frozenset({"agent"}),
    finish_spellings={"tool_call": "tool_calls", "tool-calls": "tool_calls", "tool_use": "tool_calls"},
    control_types={
        "ParentCommand": Control.HANDOFF,
        "GraphInterrupt": Control.INTERRUPT,
        "NodeInterrupt": Control.INTERRUPT,
        "Interrupt": Control.INTERRUPT,
    },
    control_messages={
        "ParentCommand(": Control.HANDOFF,
        "GraphInterrupt(": Control.INTERRUPT,
        "NodeInterrupt(": Control.INTERRUPT,
        "(Interrupt(": Control.INTERRUPT,
        "Interrupt(": Control.INTERRUPT,
    },
)
