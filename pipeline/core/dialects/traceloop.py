"""OpenLLMetry (Traceloop) where it does not speak OpenTelemetry's conventions: its decorators, and its form of 2025."""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import spoken_with
from schemas.span import Kind

MAX_MESSAGES = 8  # of one answer: what it thought comes before what it says

TRACELOOP = spoken_with(
    OTEL_GENAI,
    {
        "kind": "traceloop.span.kind",
        "kinds": {
            "agent": Kind.AGENT,
            "tool": Kind.TOOL,
            "handoff": Kind.HANDOFF,
            "workflow": Kind.STEP,
            "task": Kind.STEP,
        },
        "own_agent": ("traceloop.entity.name",),
        "tool": ("traceloop.entity.name",),
        "arguments": ("traceloop.entity.input",),
        "result": ("traceloop.entity.output",),
    },
)

TRACELOOP_2025 = spoken_with(
    OTEL_GENAI,
    {
        "kind": "llm.request.type",
        "kinds": {
            "chat": Kind.INFERENCE,
            "completion": Kind.INFERENCE,
            "embedding": Kind.EMBEDDING,
            "rerank": Kind.STEP,
        },
        "finish": tuple(f"gen_ai.completion.{message}.finish_reason" for message in range(MAX_MESSAGES)),
        "numbered_calls": "gen_ai.completion.{message}.tool_calls.{call}.name",
    },
)
