"""Vercel's AI SDK up to 6: `ai.operationId`. Version 7 speaks OpenTelemetry's conventions."""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import Inside, spoken_with
from schemas.span import Kind

_RUNS = ("generateText", "streamText", "generateObject", "streamObject")

VERCEL = spoken_with(
    OTEL_GENAI,
    {
        "kind": "ai.operationId",
        "kinds": {
            **{f"ai.{run}": Kind.AGENT for run in _RUNS},
            **{f"ai.{run}.doGenerate": Kind.INFERENCE for run in _RUNS},
            **{f"ai.{run}.doStream": Kind.INFERENCE for run in _RUNS},
            "ai.toolCall": Kind.TOOL,
            "ai.embed": Kind.STEP,
            "ai.embedMany": Kind.STEP,
            "ai.embed.doEmbed": Kind.EMBEDDING,
            "ai.embedMany.doEmbed": Kind.EMBEDDING,
        },
        "agent": ("ai.telemetry.functionId",),
        "tool": ("ai.toolCall.name",),
        "call_id": ("ai.toolCall.id",),
        "provider": ("ai.model.provider",),
        "model": ("ai.response.model", "ai.model.id"),
        "response_id": ("ai.response.id",),
        "finish": ("ai.response.finishReason",),
        "calls": (Inside("ai.response.toolCalls"),),
        "input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens"),
        "cached_tokens": ("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"),
        "arguments": ("ai.toolCall.args",),
        "result": ("ai.toolCall.result",),
        "subject": ("ai.telemetry.metadata.userId",),
        "groups": (),
        "nodes": "",
        "smears": True,
    },
)
