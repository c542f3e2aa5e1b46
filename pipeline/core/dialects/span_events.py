"""Events that tell of a model's answer, or of a tool's arguments, where attributes do not (Strands; conventions).

The rule this file keeps: of answers only why they ended is kept, and how many tools they ask for.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.core.dialects.content import value_at
from pipeline.core.dialects.messages import UNKNOWN, finish_reasons, tool_calls_asked
from pipeline.core.dialects.table import Dialect
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import write_value

TELLING = b"finish_reason"
REASONS = ("finish_reason", "gen_ai.response.finish_reasons")
MESSAGES = "gen_ai.output.messages"
CHOICE = "message"
CALLED = b"gen_ai.tool.message"
CALL = "toolUse"


def answer_in(events: Iterable[bytes], table: Dialect) -> tuple[tuple[str, ...], int]:
    """Finish reasons, and how many tool calls were asked for (`UNKNOWN` where they do not say)."""
    for encoded in events:
        if TELLING not in encoded:
            continue
        told = wire.Event.FromString(encoded).attributes
        messages = told.get(MESSAGES)
        raw = next((told[key] for key in REASONS if key in told), b"")
        if not raw and messages:
            raw = write_value(value_at(messages, (0, "finish_reason")))
        finish = finish_reasons(raw, table.finish_spellings)
        if finish:
            return finish, _asked(messages, told.get(CHOICE), table)
    return (), UNKNOWN


def arguments_in(events: Iterable[bytes]) -> list[bytes]:
    """What a tool was called with, by the events of its span."""
    told = (wire.Event.FromString(encoded) for encoded in events if CALLED in encoded)
    found = (event.attributes.get("content") for event in told if event.name == CALLED)
    return [raw for raw in found if raw]


def _asked(messages: bytes | None, choice: bytes | None, table: Dialect) -> int:
    if messages:
        return tool_calls_asked(messages, table.tool_call_parts)
    parts = value_at(choice, ()) if choice else None
    return sum(isinstance(one, dict) and CALL in one for one in parts) if isinstance(parts, list) else UNKNOWN
