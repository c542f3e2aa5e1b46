"""What events in log records say: how a model's answer ended, which tools it asked for, and evaluations.

```
gen_ai.choice                                body: finish reason, tool calls (names even where content is off)
gen_ai.client.inference.operation.details    the attributes of the model's span, and its messages
gen_ai.evaluation.result                     name, score, label; of a span, a response or a conversation
gen_ai.{system,user,assistant,tool}.message  what was said: content
```
The rule this file keeps: of messages only the names of the tools that were asked for are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.core.dialects.content import value_at
from pipeline.core.dialects.engine import MAX_TEXT, Reader
from pipeline.core.dialects.evaluations import evaluation_of
from pipeline.core.dialects.otel_genai import OTEL_GENAI
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import read_text, write_value
from schemas.span import Evaluation, Span

PREFIX = "gen_ai."
CHOICE = "gen_ai.choice"
DETAILS = "gen_ai.client.inference.operation.details"
EVALUATION = "gen_ai.evaluation.result"
ANSWERS = frozenset({CHOICE, DETAILS})
MESSAGES = frozenset(f"gen_ai.{who}.message" for who in ("system", "user", "assistant", "tool"))

MAX_TOOLS = 64  # that one answer asks for: more than models do
_FINISH = "gen_ai.response.finish_reasons"
_KIND = OTEL_GENAI.kind
_CHAT = write_value("chat")
_IDS = (bytes(16), bytes(8), b"")


class Answer(NamedTuple):
    """What an event says of a model's answer.

    Args:
        slim: as if it were a model's span.
        wanted: the tools that the answer asks for; None where it does not say.
    """

    slim: Span
    wanted: tuple[str, ...] | None


def answer_in(log: Any, name: str, reader: Reader, tenant: str, notes: Callable[[str], None]) -> Answer:
    """What an event says of an answer: `CHOICE` in its body, any other in its attributes."""
    wired = wire.Span()
    wired.attributes.MergeFrom(log.attributes)
    wired.attributes[_KIND] = _CHAT
    if name == CHOICE:
        reason = _inside(log, ("finish_reason",))
        if isinstance(reason, str) and _FINISH not in wired.attributes:
            wired.attributes[_FINISH] = write_value([reason])
        calls = _inside(log, ("message", "tool_calls"))
        calls = _inside(log, ("tool_calls",)) if calls is None else calls
        wanted = None if calls is None else _names(calls, _function)
    else:
        wanted = None
        for key in reader.messages:
            messages = value_at(log.attributes[key], ()) if isinstance(key, str) and key in log.attributes else None
            if isinstance(messages, list) and wanted is None:
                wanted = _names([part for one in messages for part in _parts(one)], _called)
    return Answer(reader.read(wired, _IDS, 0, 0, 0, tenant, {}, "", False, notes), wanted)


def evaluation_in(log: Any, time: int) -> Evaluation | None:
    """Reads `EVALUATION`; None where it has no name."""
    return evaluation_of(log.attributes, time)


def response_of(log: Any) -> str:
    """The id of the response that the event is about; empty where it does not say."""
    return read_text(log.attributes.get("gen_ai.response.id") or b"")[:MAX_TEXT]


def _inside(log: Any, path: tuple[str, ...]) -> Any:
    """What stands in the body, be that a map or JSON; attributes of the first of these names come before it."""
    held = log.attributes.get(path[0])
    if held:
        return value_at(held, path[1:])
    return value_at(log.body, path)


def _names(calls: Any, name_of: Callable[[Any], Any]) -> tuple[str, ...] | None:
    if not isinstance(calls, list):
        return None
    found = (name_of(one) for one in calls if isinstance(one, dict))
    return tuple(str(name)[:MAX_TEXT] for name in found if isinstance(name, str) and name)[:MAX_TOOLS]


def _function(call: dict[str, Any]) -> Any:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else call.get("name")


def _parts(message: Any) -> list[Any]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return parts if isinstance(parts, list) else []


def _called(part: dict[str, Any]) -> Any:
    return part.get("name") if part.get("type") in OTEL_GENAI.tool_call_parts else None
