"""OpenTelemetry's GenAI conventions, as its own instrumentations and the frameworks that speak them emit them.

Each framework's private values and keys stand under its name: they are in the field for years.
"""

from __future__ import annotations

from pipeline.core.dialects.table import Dialect, Inside
from pipeline.core.dialects.vocabulary import (
    CONTROL_MESSAGES,
    CONTROL_TYPES,
    FINISH_SPELLINGS,
    HANDOFF_TOOLS,
    NOT_TARGETS,
)
from schemas.span import Kind

CONVENTIONS = {
    "chat": Kind.INFERENCE,
    "text_completion": Kind.INFERENCE,
    "generate_content": Kind.INFERENCE,
    "embeddings": Kind.EMBEDDING,
    "execute_tool": Kind.TOOL,
    "invoke_agent": Kind.AGENT,
    "invoke_workflow": Kind.STEP,  # a graph or a crew: it runs agents and is none
    "create_agent": Kind.STEP,  # nothing is done yet
    "retrieval": Kind.STEP,
    "plan": Kind.STEP,
}
OPENAI_AGENTS_V2 = {"agent_handoff": Kind.HANDOFF, "guardrail_check": Kind.GUARDRAIL}
TRACELOOP = {
    "handoff": Kind.HANDOFF,
    "goto": Kind.STEP,  # the tool that went there is a span of its own, and there are two of these
    "execute_task": Kind.STEP,
}
STRANDS = {"execute_event_loop_cycle": Kind.STEP, "invoke_swarm": Kind.STEP, "invoke_graph": Kind.STEP}
MASTRA = {
    "agent_step": Kind.STEP,  # Vercel's, too
    "model_generation": Kind.STEP,  # holds the calls of one turn
    "model_chunk": Kind.STEP,
    "memory_operation": Kind.STEP,
    "processor_run": Kind.STEP,
}
LANGSMITH = {"chain": Kind.STEP}
SEMANTIC_KERNEL = {
    "chat.completions": Kind.INFERENCE,
    "chat.streaming_completions": Kind.INFERENCE,
    "text.completions": Kind.INFERENCE,
    "text.streaming_completions": Kind.INFERENCE,
}

OTEL_GENAI = Dialect(
    kind="gen_ai.operation.name",
    kinds={**CONVENTIONS, **OPENAI_AGENTS_V2, **TRACELOOP, **STRANDS, **MASTRA, **LANGSMITH, **SEMANTIC_KERNEL},
    agent=("gen_ai.agent.name", "langsmith.metadata.lc_agent_name"),
    own_agent=("crewai.agent.role",),
    tool=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    handoff_to=("gen_ai.handoff.to_agent",),
    provider=("gen_ai.provider.name", "gen_ai.system"),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    response_id=("gen_ai.response.id",),
    finish=(
        "gen_ai.response.finish_reasons",
        "gen_ai.response.finish_reason",  # Semantic Kernel
        Inside("gen_ai.completion", ("generations", 0, 0, "generation_info", "finish_reason")),  # LangSmith
        Inside("gen_ai.output.messages", (0, "finish_reason")),  # deprecated there, and in the field
    ),
    messages=("gen_ai.output.messages",),
    tool_call_parts=frozenset({"tool_call"}),
    written_calls=("ResponseFunctionToolCall(",),  # openai-agents-v2
    calls=(Inside("gen_ai.completion", ("generations", 0, 0, "message", "kwargs", "tool_calls")),),  # LangSmith
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    cached_tokens=(
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",  # Traceloop in 2025, Strands
        "gen_ai.usage.details.cache_read_tokens",  # pydantic-ai 1
        Inside("langsmith.metadata.usage_metadata", ("input_token_details", "cache_read")),
    ),
    cost=("operation.cost",),  # pydantic-ai
    arguments=("gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args", "gen_ai.prompt"),  # ADK 1, LangSmith
    result=("gen_ai.tool.call.result",),
    subject=(
        "user.id",
        "traceloop.association.properties.user_id",
        "langsmith.metadata.user_id",
        "mastra.metadata.resourceId",
        "ai.settings.context.userId",
    ),
    tripped=("gen_ai.guardrail.triggered",),
    error_type=("error.type",),
    requesting_scopes=("openai_agents",),
    groups=(
        ("traceloop.span.kind", "workflow"),
        ("crewai.crew.id", ""),  # Traceloop's crew and its tasks
        ("crewai.crew.tasks", ""),
        ("crewai.task.id", ""),
        ("crewai.task.description", ""),
    ),
    nodes="gen_ai.workflow.nodes",  # Traceloop: LangChain's agents are graphs, too
    agent_nodes=frozenset({"model", "agent"}),
    not_agents=frozenset({"OpenAI Agent"}),
    handoff_tools=HANDOFF_TOOLS,
    not_targets=NOT_TARGETS,
    finish_spellings=FINISH_SPELLINGS,
    failed_marks=(("gen_ai.tool.status", "error"), ("gen_ai.task.status", "failure")),  # Strands, Traceloop
    control_types=CONTROL_TYPES,
    control_messages=CONTROL_MESSAGES,
)

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
