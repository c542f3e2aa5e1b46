"""All dialects, in the order in which they are asked what a span is."""

from __future__ import annotations

from pipeline.core.dialects.langfuse import LANGFUSE
from pipeline.core.dialects.mcp import MCP
from pipeline.core.dialects.openinference import OPENINFERENCE
from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.traceloop import TRACELOOP, TRACELOOP_2025
from pipeline.core.dialects.vercel import VERCEL

DIALECTS = (VERCEL, OPENINFERENCE, LANGFUSE, MCP, OTEL_GENAI, TRACELOOP, TRACELOOP_2025)
"""The first whose `kind` a span has decides, attribute by attribute: one trace may speak several."""
