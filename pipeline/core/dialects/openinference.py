"""OpenInference (Arize): `openinference.span.kind` and flattened message lists, for a score of frameworks."""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import Inside, spoken_with
from schemas.span import Kind

_GENERATION = ("generations", 0, 0)
_LANGCHAIN = (*_GENERATION, "message", "kwargs")

OPENINFERENCE = spoken_with(
    OTEL_GENAI,
    {
        "kind": "openinference.span.kind",
        "kinds": {
            "LLM": Kind.INFERENCE,
            "EMBEDDING": Kind.EMBEDDING,
            "TOOL": Kind.TOOL,
            "AGENT": Kind.AGENT,
            "GUARDRAIL": Kind.GUARDRAIL,
            "CHAIN": Kind.STEP,
            "RETRIEVER": Kind.STEP,
            "RERANKER": Kind.STEP,
            "EVALUATOR": Kind.STEP,
            "PROMPT": Kind.STEP,
        },
        "own_agent": ("agent.name", "graph.node.name", "graph.node.id"),
        "tool": ("tool.name",),
        "call_id": ("tool_call.id",),
        "provider": ("llm.provider", "llm.system"),
        "model": ("llm.model_name", "embedding.model_name"),
        "response_id": (
            Inside("output.value", ("id",)),
            Inside("output.value", (*_LANGCHAIN, "response_metadata", "id")),
        ),
        "finish": ("llm.finish_reason", Inside("output.value", ("finish_reason",))),
        "calls": (Inside("output.value", (*_LANGCHAIN, "tool_calls")),),
        "numbered_calls": "llm.output_messages.{message}.message.tool_calls.{call}.tool_call.function.name",
        "input_tokens": ("llm.token_count.prompt",),
        "output_tokens": ("llm.token_count.completion",),
        "cached_tokens": ("llm.token_count.prompt_details.cache_read",),
        "cost": ("llm.cost.total",),
        "arguments": ("input.value",),
        "result": ("output.value",),
        "named": {Kind.AGENT: r"(.*)", Kind.TOOL: r"(.*)"},
        "unnamed_scopes": ("openai_agents", "llama_index"),  # their spans are named by workflow and by class
        "tools": (("tool.name", ""),),  # LangChain's hand-off tool, whose name says agent
        "groups": (),
        "nodes": "",
        "control_in_events": True,
    },
)
