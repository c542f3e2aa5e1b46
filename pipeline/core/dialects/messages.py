"""What is read of a model's answer: why it stopped, and how many tools it asked for. The answer itself is not kept."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pipeline.core.otlp.values import read_python, read_value

MAX_REASON = 1024
UNKNOWN = -1


class _Part(msgspec.Struct):
    type: str = ""


class _Message(msgspec.Struct):
    parts: list[_Part] = []


class _WrittenPart(_Part):
    content: msgspec.Raw = msgspec.Raw()


class _WrittenMessage(msgspec.Struct):
    parts: list[_WrittenPart] = []


_decode_messages = msgspec.json.Decoder(list[_WrittenMessage]).decode
_decode_reasons = msgspec.json.Decoder(list[str]).decode


def finish_reasons(raw: bytes, spellings: Mapping[str, str]) -> tuple[str, ...]:
    """Finish reasons, in lower case and one spelling; given as an array, as its JSON text, or as one word."""
    value = read_value(raw)
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = list(_decode_reasons(value))
        except (msgspec.MsgspecError, UnicodeError):
            return ()
    given = value if isinstance(value, list) else [value]
    reasons = (item.rpartition(".")[2].strip().lower()[:MAX_REASON] for item in given if isinstance(item, str))
    return tuple(spellings.get(reason, reason) for reason in reasons if reason)


def tool_calls_asked(raw: bytes, parts: frozenset[str], written: tuple[bytes, ...] = ()) -> int:
    """How many parts of the answer are tool calls; `UNKNOWN` where that cannot be read, as when it is cut short.

    Args:
        parts: types of parts that are tool calls; `written`: how the text of a part begins that holds one.
    """
    value = read_python(raw)
    try:
        if isinstance(value, str):
            told = [part for message in _decode_messages(value.encode()) for part in message.parts]
            return sum(part.type in parts or bytes(part.content).startswith(written) for part in told)
        messages = msgspec.convert(value, list[_Message])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return UNKNOWN
    return sum(part.type in parts for message in messages for part in message.parts)
