"""Words that all dialects share: hand-off tools, finish reasons, exceptions that steer a graph."""

from __future__ import annotations

from schemas.span import Control

HANDOFF_TOOLS = (
    r"(?:.*-)?"
    r"(?:transfer_to_(.+)|handoff[ _]to[ _](.+)|(?:transfer_to_|handoff|delegate work|ask question).*)"
)
NOT_TARGETS = frozenset({"agent"})

FINISH_SPELLINGS = {
    "tool_call": "tool_calls",
    "tool-calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "function_calls": "tool_calls",
}

CONTROL_TYPES = {
    "ParentCommand": Control.HANDOFF,
    "GraphInterrupt": Control.INTERRUPT,
    "NodeInterrupt": Control.INTERRUPT,
    "Interrupt": Control.INTERRUPT,
}
CONTROL_MESSAGES = {
    "ParentCommand(": Control.HANDOFF,
    "GraphInterrupt(": Control.INTERRUPT,
    "NodeInterrupt(": Control.INTERRUPT,
    "(Interrupt(": Control.INTERRUPT,
    "Interrupt(": Control.INTERRUPT,
}

WHOLE_PROVIDERS = ("gcp", "aws", "azure")
"""Provider names that keep what stands after their first dot."""
