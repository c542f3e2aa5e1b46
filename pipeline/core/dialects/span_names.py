"""Instrumentations whose spans say what they are by their names alone: an error may leave them no attribute at all."""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import SpanNames, spoken_with
from schemas.span import Kind

GOOGLE_ADK_1 = SpanNames(
    "gcp.vertex.agent",
    ((r"call_llm", Kind.INFERENCE), (r"agent_run \[(.*)\]", Kind.AGENT), (r"execute_tool \[?(.*?)\]?", Kind.TOOL)),
)
PYDANTIC_AI_1 = SpanNames("pydantic-ai", ((r"agent run", Kind.AGENT), (r"running tool", Kind.TOOL)))

NAMES = (GOOGLE_ADK_1, PYDANTIC_AI_1)
BY_NAME = spoken_with(OTEL_GENAI, {"kind": "", "kinds": {}, "agent": ("agent_name",), "arguments": ("tool_arguments",)})
"""How the attributes of such spans are read."""
