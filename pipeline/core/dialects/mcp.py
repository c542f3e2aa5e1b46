"""The Model Context Protocol's SDK: a call is a span in the client's service and one, below it, in the server's.

Only the server's span names the tool in an attribute and knows that it failed; the client's has both in its name.
"""

from __future__ import annotations

from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.dialects.table import spoken_with
from schemas.span import Kind

MCP = spoken_with(
    OTEL_GENAI,
    {
        "kind": "mcp.method.name",
        "kinds": {"tools/call": Kind.TOOL},
        "named": {Kind.TOOL: r"(?:MCP send )?tools/call (.+)"},
    },
)
