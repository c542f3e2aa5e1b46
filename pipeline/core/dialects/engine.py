"""Reads a span's attributes by a dialect's table.

The rule this file keeps: nothing of what people or models wrote is kept. A span's name is put together from known
fields, of messages only the number of tool calls is read, of error messages only whether they are control flow.

This is the pipeline's innermost loop. A span's operation names a plan: which keys to ask the undecoded attributes for
and what their bytes mean; what few different bytes mean (names, counts, reasons) is remembered, not decoded again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.core.dialects.messages import UNKNOWN, finish_reasons, tool_calls_asked
from pipeline.core.dialects.said import read_said
from pipeline.core.dialects.table import Dialect, Keys
from pipeline.core.ids import conversation_id
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import Memo, read_int, read_text, read_value
from schemas.span import Control, Kind, Said, Span, SpanFlag, Value

Attributes = Mapping[str, bytes]

MEMO = 20_000
MAX_TEXT = 1024
CODE_ERROR = 2
FINE = frozenset({b"", b"\x18\x00", b"\x18\x01"})  # no status; unset and OK, without a message


AGENT, TOOL, CALL_ID, TARGET, MODEL, RESPONSE_ID, FINISH, ASKED, INPUT, OUTPUT, CACHED, TRIPPED = range(12)
NOTHING: list[Any] = ["", "", "", "", "", "", (), UNKNOWN, 0, 0, 0, None]
"""What a span says where it says nothing, by slot."""

SUBJECTS = {
    Kind.TOOL: TOOL,
    Kind.HANDOFF: TARGET,
    Kind.INFERENCE: MODEL,
    Kind.EMBEDDING: MODEL,
}
"""The slot that a span's name goes on with, after its operation; the agent for all other kinds."""


class _Plan(NamedTuple):
    """How spans of one operation are read.

    Args:
        asks: (key, slot, meaning of the bytes). Of several keys for one slot the last one that is there holds.
    """

    kind: Kind
    label: str
    subject: int
    asks: tuple[tuple[str, int, Callable[[bytes], Any]], ...]


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
        self._ids: Memo[str] = Memo(lambda raw: conversation_id(read_value(raw)), MEMO)
        self._targets: dict[str, str | None] = {}
        self._asks = self._asks_by_kind()
        self._step = self._plan(b"")
        self._plans: Memo[_Plan] = Memo(self._plan, MEMO)

    def _asks_by_kind(self) -> dict[Kind, tuple[tuple[str, int, Callable[[bytes], Any]], ...]]:
        table = self.dialect
        name = Memo[str](self._text, MEMO).__getitem__
        finish = Memo[tuple[str, ...]](lambda raw: finish_reasons(raw, table.finish_spellings), MEMO).__getitem__
        count = Memo[int](read_int, MEMO).__getitem__
        agents = [(table.agent, AGENT, Memo[str](self._agent, MEMO).__getitem__)]
        model: list[tuple[Keys, int, Callable[[bytes], Any]]] = [
            (table.model, MODEL, name),
            (table.response_id, RESPONSE_ID, self._text),  # as many as there are spans: not worth remembering
            (table.finish, FINISH, finish),
            (table.messages, ASKED, lambda raw: tool_calls_asked(raw, table.tool_call_parts)),
            (table.input_tokens, INPUT, count),
            (table.output_tokens, OUTPUT, count),
            (table.cached_tokens, CACHED, count),
        ]
        more: dict[Kind, list[tuple[Keys, int, Callable[[bytes], Any]]]] = {
            Kind.INFERENCE: model,
            Kind.EMBEDDING: model,
            Kind.TOOL: [(table.tool, TOOL, name), (table.call_id, CALL_ID, self._text)],
            Kind.HANDOFF: [(table.handoff_to, TARGET, name)],
            Kind.GUARDRAIL: [(table.tripped, TRIPPED, read_value)],
        }
        return {
            kind: tuple(
                (key, slot, meaning)
                for keys, slot, meaning in [*agents, *more.get(kind, [])]
                for key in reversed(keys)  # the first of the keys is read last, so that it holds
            )
            for kind in Kind
        }

    def _plan(self, raw: bytes) -> _Plan:
        operation = read_text(raw) if raw else ""
        kind = self.dialect.kinds.get(operation)
        if kind is None:
            kind, operation = Kind.STEP, "step"
        return _Plan(kind, operation, SUBJECTS.get(kind, AGENT), self._asks[kind])

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
        raw = _first(attributes, self.dialect.kind)
        kind, label, subject, asks = self._plans[raw] if raw else self._step
        slots = NOTHING.copy()
        for key, slot, meaning in asks:
            if key in attributes:  # then the lookup: together they cost half of what `get` does
                raw = attributes[key]
                if raw:
                    slots[slot] = meaning(raw)
        agent, tool, call_id, target, model, response_id, finish, asked, sent, got, cached, tripped = slots
        name = slots[subject]
        if name:
            label = f"{label} {name}"
        said: Said | None = None
        if kind is Kind.TOOL:
            handed = self._target(tool)
            if handed is not None:
                kind, target = Kind.HANDOFF, handed
        elif kind is Kind.GUARDRAIL:
            said = Said(tripped=tripped in (True, "true"))

        conversations: tuple[str, ...] = ()
        found = [attributes[key] for key in self.conversation_keys if key in attributes]
        if found:
            conversations = (self._ids[found[0]],) if len(found) == 1 else self._several(found, notes)
            if conversations == ("",):
                conversations = ()
                notes("missing_id")
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
            label,
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
            (sent, got, cached),
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

    def _agent(self, raw: bytes) -> str:
        agent = self._text(raw)
        return "" if agent in self.dialect.not_agents else agent

    def _several(self, found: list[bytes], notes: Callable[[str], None]) -> tuple[str, ...]:
        ids = tuple(dict.fromkeys(text for raw in found if (text := self._ids[raw])))
        if len(ids) > 1:
            notes("conflicting_ids")
        return ids or ("",)

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
    """The value of the first key that is there and not null."""
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
