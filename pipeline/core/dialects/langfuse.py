"""Langfuse's SDKs 3 to 5: `langfuse.observation.type`, names in the span's name, usage in JSON.

The LangChain handler takes the cached part, and all other details, out of input and output; they are added back here.
"""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import Inside, Total, spoken_with
from schemas.span import Kind

_METADATA = "langfuse.observation.metadata"
_USAGE = "langfuse.observation.usage_details"
_INPUT = ("input_cache_read", "input_cached_tokens", "input_cache_creation", "input_audio", "input_audio_tokens")
_OUTPUT = ("output_reasoning", "output_reasoning_tokens", "output_audio", "output_audio_tokens")

LANGFUSE = spoken_with(
    OTEL_GENAI,
    {
        "kind": "langfuse.observation.type",
        "kinds": {
            "generation": Kind.INFERENCE,
            "embedding": Kind.EMBEDDING,
            "tool": Kind.TOOL,
            "agent": Kind.AGENT,
            "guardrail": Kind.GUARDRAIL,
            "chain": Kind.STEP,
            "span": Kind.STEP,
            "event": Kind.STEP,
            "retriever": Kind.STEP,
            "evaluator": Kind.STEP,
        },
        "agent": (Inside(f"{_METADATA}.lc_agent_name"),),
        "call_id": (Inside(f"{_METADATA}.tool_call_id"),),
        "model": ("langfuse.observation.model.name",),
        "finish": (Inside(f"{_METADATA}.finish_reason"),),
        "calls": (Inside("langfuse.observation.output", ("tool_calls",)),),
        "input_tokens": (
            Inside(_USAGE, ("prompt_tokens",)),
            Inside(_USAGE, ("input_tokens",)),  # OpenAI's Responses API
            Total(_USAGE, ("input", *_INPUT)),
        ),
        "output_tokens": (
            Inside(_USAGE, ("completion_tokens",)),
            Inside(_USAGE, ("output_tokens",)),
            Total(_USAGE, ("output", *_OUTPUT)),
        ),
        "cached_tokens": (
            Inside(_USAGE, ("prompt_tokens_details", "cached_tokens")),
            Inside(_USAGE, ("input_tokens_details", "cached_tokens")),
            Inside(_USAGE, ("input_cache_read",)),
            Inside(_USAGE, ("input_cached_tokens",)),
        ),
        "cost": (Inside("langfuse.observation.cost_details", ("total",)),),
        "arguments": ("langfuse.observation.input", f"{_METADATA}.inputs"),  # LangChain's input is Python's repr
        "result": ("langfuse.observation.output",),
        "subject": ("langfuse.user.id",),
        "tripped": ("langfuse.observation.level",),
        "tripped_values": frozenset({"warning", "error"}),
        "named": {Kind.AGENT: r"(.*)", Kind.TOOL: r"(.*)"},
        "groups": (),
        "nodes": "",
        "failed_marks": (("langfuse.observation.level", "ERROR"), *OTEL_GENAI.failed_marks),
        "error_message": ("langfuse.observation.status_message",),
        "control_in_events": True,
    },
)
