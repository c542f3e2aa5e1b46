"""Reads a span's attributes by a dialect's table.

The rule this file keeps: nothing of what people or models wrote is kept. A span's name is put together from known
fields, of messages only the number of tool calls is read, of error messages only whether they are control flow.

This is the pipeline's innermost loop. It asks the undecoded attributes for the keys it wants, and remembers what low
numbers of different bytes mean (names, counts, finish reasons) instead of decoding them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pipeline.core.dialects.said import read_said
from pipeline.core.dialects.table import Dialect, Keys
from pipeline.core.ids import conversation_id
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import Memo, read_int, read_python, read_text, read_value
from schemas.span import Control, Kind, Said, Span, SpanFlag, Value

Attributes = Mapping[str, bytes]

MEMO = 20_000
MAX_TEXT = 1024
CODE_ERROR = 2
MODEL_KINDS = frozenset({Kind.INFERENCE, Kind.EMBEDDING})
FINE = frozenset({b"", b"\x18\x00", b"\x18\x01"})  # no status; unset and OK, without a message


class _Part(msgspec.Struct):
    type: str = ""


class _Message(msgspec.Struct):
    parts: list[_Part] = []


_decode_messages = msgspec.json.Decoder(list[_Message]).decode
_decode_reasons = msgspec.json.Decoder(list[str]).decode


class Reader:
    """Reads spans of one dialect; keeps nothing but what bytes mean.

    Args:
        conversation_keys: where ids are looked for; the ids of a span stand in this order.
    """

    def __init__(self, dialect: Dialect, conversation_keys: Keys) -> None:
        self.dialect = dialect
        self.conversation_keys = conversation_keys
        self._cut: set[str] = set()
        self._handoff = re.compile(dialect.handoff_tools, re.IGNORECASE | re.DOTALL)
        self._kinds: Memo[tuple[Kind, str]] = Memo(self._kind, MEMO)
        self._names: Memo[str] = Memo(self._text, MEMO)
        self._ids: Memo[str] = Memo(lambda raw: conversation_id(read_value(raw)), MEMO)
        self._counts: Memo[int] = Memo(read_int, MEMO)
        self._finishes: Memo[tuple[str, ...]] = Memo(self._finish, MEMO)
        self._targets: dict[str, str | None] = {}

    def read(
        self,
        wired: Any,
        ids: tuple[bytes, bytes, bytes],
        start: int,
        end: int,
        flags: int,
        tenant: str,
        resource: dict[str, Value],
        ours: bool,
        notes: Callable[[str], None],
    ) -> Span:
        """The slim record of a span.

        Args:
            wired: the span in its wire form.
            ids: trace, span and parent id.
            ours: whether to look for attributes of our own (`trueup.`).
            notes: is told what is counted beside the span.
        """
        attributes: Attributes = wired.attributes
        table = self.dialect
        names = self._names
        raw = _first(attributes, table.kind)
        kind, label = self._kinds[raw] if raw else (Kind.STEP, "step")

        conversations: tuple[str, ...] = ()
        found = [attributes[key] for key in self.conversation_keys if key in attributes]
        if found:
            conversations = (self._ids[found[0]],) if len(found) == 1 else self._several(found, notes)
            if conversations == ("",):
                conversations = ()
                notes("missing_id")

        raw = _first(attributes, table.agent)
        agent = names[raw] if raw else ""
        if agent in table.not_agents:
            agent = ""
        tool = call_id = target = model = response_id = ""
        finish: tuple[str, ...] = ()
        asked = -1
        tokens = (0, 0, 0)
        said: Said | None = None
        subject = agent
        if kind in MODEL_KINDS:
            raw = _first(attributes, table.model)
            subject = model = names[raw] if raw else ""
            raw = _first(attributes, table.response_id)
            if raw:
                response_id = self._text(raw)
            raw = _first(attributes, table.finish)
            if raw:
                finish = self._finishes[raw]
            raw = _first(attributes, table.messages)
            if raw:
                asked = self._asked(raw)
            tokens = (
                self._count(attributes, table.input_tokens),
                self._count(attributes, table.output_tokens),
                self._count(attributes, table.cached_tokens),
            )
        elif kind is Kind.TOOL:
            raw = _first(attributes, table.tool)
            subject = tool = names[raw] if raw else ""
            raw = _first(attributes, table.call_id)
            if raw:
                call_id = self._text(raw)
            handed = self._target(tool)
            if handed is not None:
                kind, target = Kind.HANDOFF, handed
        elif kind is Kind.HANDOFF:
            raw = _first(attributes, table.handoff_to)
            subject = target = names[raw] if raw else ""
        elif kind is Kind.GUARDRAIL:
            raw = _first(attributes, table.tripped)
            said = Said(tripped=raw is not None and read_value(raw) in (True, "true"))
        if ours:
            said = read_said(attributes, said, notes)

        failed, control = False, Control.NONE
        status = wired.status
        if status not in FINE:
            failed, control = self._outcome(status, attributes, wired.events)
        if self._cut and not self._cut.isdisjoint((agent, tool, model, call_id, response_id, target)):
            flags |= SpanFlag.CUT
        links = wired.links
        return Span(
            tenant,
            ids[0],
            ids[1],
            ids[2],
            start,
            end,
            kind,
            f"{label} {subject}" if subject else label,
            failed,
            control,
            int(flags),
            len(attributes),
            conversations,
            agent,
            tool,
            call_id,
            target,
            model,
            response_id,
            finish,
            asked,
            tokens,
            resource,
            _linked(links, ids[0]) if links else (),
            said,
        )

    def _text(self, raw: bytes) -> str:
        text = read_text(raw)
        if len(text) > MAX_TEXT:
            text = text[:MAX_TEXT]
            if len(self._cut) >= MEMO:
                self._cut.clear()
            self._cut.add(text)
        return text

    def _kind(self, raw: bytes) -> tuple[Kind, str]:
        operation = read_text(raw)
        kind = self.dialect.kinds.get(operation)
        return (Kind.STEP, "step") if kind is None else (kind, operation)

    def _several(self, found: list[bytes], notes: Callable[[str], None]) -> tuple[str, ...]:
        ids = tuple(dict.fromkeys(text for raw in found if (text := self._ids[raw])))
        if len(ids) > 1:
            notes("conflicting_ids")
        return ids or ("",)

    def _count(self, attributes: Attributes, keys: Keys) -> int:
        raw = _first(attributes, keys)
        return self._counts[raw] if raw else 0

    def _finish(self, raw: bytes) -> tuple[str, ...]:
        value = read_value(raw)
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = list(_decode_reasons(value))
            except msgspec.MsgspecError:
                return ()
        given = value if isinstance(value, list) else [value]
        reasons = (item.rpartition(".")[2].strip().lower()[:MAX_TEXT] for item in given if isinstance(item, str))
        return tuple(self.dialect.finish_spellings.get(reason, reason) for reason in reasons if reason)

    def _asked(self, raw: bytes) -> int:
        value = read_python(raw)
        try:
            if isinstance(value, str):
                messages = _decode_messages(value.encode())
            else:
                messages = msgspec.convert(value, list[_Message])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return -1
        parts = self.dialect.tool_call_parts
        return sum(part.type in parts for message in messages for part in message.parts)

    def _target(self, tool: str) -> str | None:
        """Whom a tool hands over to: None where it is no hand-off, empty where its name does not say."""
        if tool in self._targets:
            return self._targets[tool]
        if len(self._targets) >= MEMO:
            self._targets.clear()
        match = self._handoff.fullmatch(tool)
        target = None if match is None else next((group for group in match.groups() if group), "")
        if target in self.dialect.not_targets:
            target = ""
        self._targets[tool] = target
        return target

    def _outcome(self, status: bytes, attributes: Attributes, events: Any) -> tuple[bool, Control]:
        """Whether a span failed: an error status that is no control flow (DIALECTS.md 6.1)."""
        read = wire.Status.FromString(status)
        if read.code != CODE_ERROR:
            return False, Control.NONE
        raw = _first(attributes, self.dialect.error_type)
        control = self._control(read_text(raw) if raw else "", read.message.decode("utf-8", "replace"))
        for encoded in events:
            if control is not Control.NONE:
                break
            told = wire.Event.FromString(encoded).attributes.get
            kind, message = told("exception.type") or b"", told("exception.message") or b""
            control = self._control(read_text(kind), read_text(message))
        return control is Control.NONE, control

    def _control(self, error_type: str, message: str) -> Control:
        control = self.dialect.control_types.get(error_type.rpartition(".")[2], Control.NONE)
        if control is Control.NONE:
            for prefix, meaning in self.dialect.control_messages.items():
                if message.startswith(prefix):
                    return meaning
        return control


def _first(attributes: Attributes, keys: Keys) -> bytes | None:
    """The value of the first key that is there and not null. Asking with `in` first is twice as fast as `get`."""
    for key in keys:
        if key in attributes:
            raw = attributes[key]
            if raw:
                return raw
    return None


def _linked(links: Any, own: bytes) -> tuple[bytes, ...]:
    """The traces that a span links to, other than its own; ids that are none are left out."""
    traces = {bytes(wire.Link.FromString(link).trace_id) for link in links}
    return tuple(sorted(trace for trace in traces if len(trace) == len(own) and trace != own and any(trace)))
