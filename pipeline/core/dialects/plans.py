"""How spans of one dialect and operation are read: a table, made into what the innermost loop walks through."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.core.dialects.content import Meaning, key_of, list_length, names_in, reader_of
from pipeline.core.dialects.messages import UNKNOWN, finish_reasons, tool_calls_asked
from pipeline.core.dialects.table import Dialect, Inside, Keys, Marks
from pipeline.core.dialects.vocabulary import WHOLE_PROVIDERS
from pipeline.core.otlp.values import Memo, read_cost, read_int, read_text, read_value, write_value
from schemas.span import Kind

MEMO = 20_000

AGENT, TOOL, CALL_ID, TARGET, MODEL, RESPONSE_ID, FINISH, ASKED, INPUT, OUTPUT, CACHED, TRIPPED, PROVIDER, COST = range(
    14
)
NOTHING: list[Any] = ["", "", "", "", "", "", (), UNKNOWN, 0, 0, 0, False, "", 0]
"""What a span says where it says nothing, by slot."""

SUBJECTS = {Kind.TOOL: TOOL, Kind.HANDOFF: TARGET, Kind.INFERENCE: MODEL, Kind.EMBEDDING: MODEL}
"""The slot that a span's name goes on with, after its operation; the agent for all other kinds."""

MODELS = (Kind.INFERENCE, Kind.EMBEDDING)
Ask = tuple[str, int, Meaning]
Test = Callable[[bytes], bool]


class Plan(NamedTuple):
    """How spans of one operation are read.

    Args:
        asks: (key, slot, meaning of the bytes). Of several keys for one slot the last one that is there holds.
        content: the same, for what stands inside JSON: read in order, where the slot is still empty.
        instead: marks by which a span is something else, and how it is read then.
        named: finds the agent or tool in the span's name, where no attribute says it.
        group: it is a graph, crew or workflow; what would name its agent is its own name.
        failed: marks of a span that failed whatever its status says.
    """

    dialect: Dialect
    kind: Kind
    label: str
    subject: int
    asks: tuple[Ask, ...]
    content: tuple[Ask, ...]
    instead: tuple[tuple[str, Test, Plan], ...]
    named: re.Pattern[str] | None
    group: bool
    failed: tuple[tuple[str, bytes], ...]


class Planner:
    """Makes the plans of one dialect. `keys`: all attributes that may be read by them, flattened lists apart."""

    def __init__(self, dialect: Dialect, text: Callable[[bytes], str]) -> None:
        self.dialect = dialect
        self._text = text
        self._kinds = {value.lower(): kind for value, kind in dialect.kinds.items()}
        self._asks = {kind: self._asks_of(kind) for kind in Kind}
        self.step = self.of_kind(Kind.STEP, "step")
        marks = (dialect.tools, dialect.groups, dialect.failed_marks)
        self.keys = frozenset(
            {dialect.kind, dialect.nodes, *dialect.error_type, *dialect.error_message}
            | {*dialect.arguments, *dialect.result}
            | {key for some in marks for key, _ in some}
            | {key for asks in self._asks.values() for key, *_ in asks}
        )

    def of_operation(self, raw: bytes) -> Plan:
        """The plan for what the dialect's key for kinds says; unknown operations are steps, never errors."""
        operation = read_text(raw).strip().lower()
        kind = self._kinds.get(operation)
        if kind is None:
            return self.step
        conventional = self.dialect.kind == "gen_ai.operation.name"
        return self.of_kind(kind, operation if conventional else kind.value)

    def of_kind(self, kind: Kind, label: str, group: bool = False) -> Plan:
        table = self.dialect
        instead: list[tuple[str, Test, Plan]] = []
        if kind is Kind.AGENT and not group:
            tool, graph = self.of_kind(Kind.TOOL, "tool"), self.of_kind(Kind.AGENT, label, group=True)
            instead += [(key, _equals(value), tool) for key, value in _marks(table.tools)]
            instead += [(key, _equals(value), graph) for key, value in _marks(table.groups)]
            if table.nodes:
                instead.append((table.nodes, self._is_graph, graph))
        named = table.named.get(kind)
        asks = self._asks[kind]
        return Plan(
            dialect=table,
            kind=Kind.STEP if group else kind,
            label=label,
            subject=SUBJECTS.get(kind, AGENT),
            asks=tuple((key, slot, read) for key, slot, read, plain in reversed(asks) if plain),
            content=tuple((key, slot, read) for key, slot, read, plain in asks if not plain),
            instead=tuple(instead),
            named=re.compile(named, re.DOTALL) if named else None,
            group=group,
            failed=_marks(table.failed_marks),
        )

    def _asks_of(self, kind: Kind) -> list[tuple[str, int, Meaning, bool]]:
        """(key, slot, meaning, whether it is an attribute of its own), the first of each slot's keys first."""
        table = self.dialect
        name = Memo[str](self._text, MEMO).__getitem__
        agents = table.agent + table.own_agent if kind is Kind.AGENT else table.agent
        wanted: list[tuple[Keys, int, Meaning]] = [(agents, AGENT, Memo[str](self._agent, MEMO).__getitem__)]
        if kind in MODELS:
            count = Memo[int](read_int, MEMO).__getitem__
            written = tuple(f'"{start}'.encode() for start in table.written_calls)  # as JSON has it
            finish = Memo[tuple[str, ...]](lambda raw: finish_reasons(raw, table.finish_spellings), MEMO).__getitem__
            wanted += [
                (table.model, MODEL, name),
                (table.response_id, RESPONSE_ID, self._text),  # as many as there are spans: not worth remembering
                (table.finish, FINISH, finish),
                (table.messages, ASKED, lambda raw: tool_calls_asked(raw, table.tool_call_parts, written)),
                (table.input_tokens, INPUT, count),
                (table.output_tokens, OUTPUT, count),
                (table.cached_tokens, CACHED, count),
                (table.cost, COST, read_cost),
                (table.provider, PROVIDER, Memo[str](self._provider, MEMO).__getitem__),
            ]
        elif kind is Kind.TOOL:
            wanted += [(table.tool, TOOL, name), (table.call_id, CALL_ID, self._text)]
        elif kind is Kind.HANDOFF:
            wanted += [(table.handoff_to, TARGET, name)]
        elif kind is Kind.GUARDRAIL:
            wanted += [(table.tripped, TRIPPED, self._tripped)]
        asks = [
            (key_of(source), slot, reader_of(source, meaning), isinstance(source, str))
            for keys, slot, meaning in wanted
            for source in keys
        ]
        if kind in MODELS:
            asks += [(one.key, ASKED, _length(one), False) for one in table.calls if isinstance(one, Inside)]
        return asks

    def _agent(self, raw: bytes) -> str:
        agent = self._text(raw)
        return "" if agent in self.dialect.not_agents else agent

    def _is_graph(self, raw: bytes) -> bool:
        return self.dialect.agent_nodes.isdisjoint(names_in(raw))

    def _provider(self, raw: bytes) -> str:
        provider = self._text(raw).strip().lower()
        return provider if provider.startswith(WHOLE_PROVIDERS) else provider.partition(".")[0]

    def _tripped(self, raw: bytes) -> bool:
        return str(read_value(raw)).lower() in self.dialect.tripped_values


def _marks(marks: Marks) -> tuple[tuple[str, bytes], ...]:
    return tuple((key, write_value(value) if value else b"") for key, value in marks)


def _equals(value: bytes) -> Test:
    """Whether bytes are these; any are, if these are none."""
    return lambda raw: not value or raw == value


def _length(source: Inside) -> Meaning:
    path = source.path
    return lambda raw: list_length(raw, path)
