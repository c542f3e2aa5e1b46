"""Reads a span's attributes by the dialects' tables.

The rule this file keeps: nothing of what people or models wrote is kept. A span's name is put together from known
fields, of messages only the number of tool calls is read, of error messages only whether they are control flow.

This is the pipeline's innermost loop. A span's operation names a plan: which keys to ask the undecoded attributes for
and what their bytes mean; what few different bytes mean (names, counts, reasons) is remembered, not decoded again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pipeline.core.dialects.aliases import read_aliases
from pipeline.core.dialects.content import numbered
from pipeline.core.dialects.evaluations import flattened, in_events
from pipeline.core.dialects.failures import FINE, failure_of, marked_failure, steering_of
from pipeline.core.dialects.messages import UNKNOWN
from pipeline.core.dialects.plans import ASKED, FINISH, MEMO, NOTHING, Planner
from pipeline.core.dialects.said import read_said
from pipeline.core.dialects.session_like import SessionLike
from pipeline.core.dialects.shapes import Fit, Shape, Shapes, fitted
from pipeline.core.dialects.span_events import answer_in
from pipeline.core.dialects.span_names import BY_NAME, NAMES
from pipeline.core.dialects.table import Dialect, with_aliases
from pipeline.core.dialects.trials import SCENARIO, with_trial
from pipeline.core.ids import conversation_id, normalise_id
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import Memo, read_text, read_value
from schemas.span import Control, Kind, Said, Span, SpanFlag, Value

Attributes = Mapping[str, bytes]

MAX_TEXT = 1024

_NONE, _INFERENCE, _TOOL, _GUARDRAIL = Control.NONE, Kind.INFERENCE, Kind.TOOL, Kind.GUARDRAIL
"""Looked up here: to get a member of its enum is slow."""


class Reader:
    """Reads spans; keeps nothing but what bytes mean, and which unknown keys look like a conversation's.

    Args:
        dialects: the first whose key for kinds a span has decides how it is read.
        conversation_keys: where ids are looked for; the ids of a span stand in this order.
        aliases: what attributes say -> keys of a user's own that say it, see `aliases.py`.

    `messages`: where the conventions have what a model answered, a user's own keys first.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        conversation_keys: tuple[str, ...],
        aliases: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.session_like = SessionLike()
        self._cut: set[str] = set()
        self._ids: Memo[str] = Memo(lambda raw: conversation_id(read_value(raw)), MEMO)
        self._targets: dict[str, str | None] = {}
        own = read_aliases(aliases or {})
        known = (*dialects, *own.kinds, BY_NAME)
        *planners, by_name = [Planner(with_aliases(one, own.fields), self._text) for one in known]
        self._shapes = Shapes(planners, by_name, (*own.conversation, *conversation_keys), own.ours)
        self.messages = by_name.dialect.messages
        self._handoff = re.compile(by_name.dialect.handoff_tools, re.IGNORECASE | re.DOTALL)
        self._not_targets = by_name.dialect.not_targets
        self._step = fitted(by_name.step, frozenset())
        self._by_name = {
            one.scope: [(re.compile(name, re.DOTALL), by_name.of_kind(kind, kind.value)) for name, kind in one.kinds]
            for one in NAMES
        }

    def read(
        self,
        wired: Any,
        ids: tuple[bytes, bytes, bytes],
        start: int,
        end: int,
        flags: int,
        tenant: str,
        resource: dict[str, Value],
        scope: str,
        evaluated: bool,
        notes: Callable[[str], None],
    ) -> Span:
        """The slim record of a span.

        Args:
            wired: the span in its wire form.
            ids: trace, span and parent id.
            scope: the name of the instrumentation.
            evaluated: whether to look for evaluations among the span's events.
            notes: is told what is counted beside the span.
        """
        attributes: Attributes = wired.attributes
        names = tuple(attributes)
        shape = self._shapes[names]
        _, deciders, id_keys, _, _, session_like, _, rare = shape
        slots = NOTHING.copy()
        for key, fits in deciders:
            raw = attributes[key]
            if raw:
                fit = fits[raw]
                break
        else:
            fit = self._step if scope not in self._by_name else self._named(wired.name, scope, shape, slots)
        if fit.instead:
            fit = _instead(fit, attributes)
        table, kind, label, subject, asks, content, _, named, is_group, failures, steered, requested = fit
        for key, slot, meaning in asks:
            raw = attributes[key]
            if raw:
                slots[slot] = meaning(raw)
        for key, slot, meaning in content:
            if slots[slot] == NOTHING[slot] and (raw := attributes[key]):
                value = meaning(raw)
                if value is not None:
                    slots[slot] = value
        if kind is _INFERENCE:
            if not slots[FINISH] and wired.events:
                slots[FINISH], told = answer_in(wired.events, table)
                slots[ASKED] = told if slots[ASKED] == UNKNOWN else slots[ASKED]
            if table.numbered_calls and slots[ASKED] == UNKNOWN:
                slots[ASKED] = numbered(frozenset(names), table.numbered_calls)
        elif named is not None and not slots[subject]:
            slots[subject] = _name(fit, named, wired.name, scope)
        agent, tool, call_id, target, model, response_id, finish, asked, sent, got, cached, tripped, provider, cost = (
            slots
        )
        if slots[subject]:
            label = f"{label} {slots[subject]}"

        failed, control = False, _NONE
        status = wired.status
        if status not in FINE:
            failed, control = failure_of(table, status, attributes, wired.events)
        elif steered:
            control = steering_of(table, attributes, wired.events)
        if failures and control is _NONE and not failed:
            failed, control = marked_failure(table, failures, attributes, wired.events)

        said: Said | None = None
        group = ""
        if kind is _TOOL:
            handed = self._target(tool)
            if handed is not None:
                kind, target, requested = Kind.HANDOFF, handed, False
            elif requested:
                requested = not failed and control is _NONE and scope.endswith(table.requesting_scopes)
        elif kind is _GUARDRAIL:
            said = Said(tripped=tripped)
        elif is_group:
            agent, group = "", agent

        conversations: tuple[str, ...] = ()
        if id_keys:
            conversations = self._conversations([attributes[key] for key in id_keys], notes)
        if rare or evaluated or SCENARIO in resource:
            said = self._said(shape, wired, end, said, evaluated, notes)
            if SCENARIO in attributes or SCENARIO in resource:
                called = table.arguments if fit.kind is _TOOL else ()
                said = with_trial(attributes, resource, called, wired.events, said)
            if session_like and not conversations:
                notes("looks_like_session_id")
                self.session_like.note(session_like)

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
            len(names),
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
            group,
            requested,
            provider,
            (),
            cost,
        )

    def _text(self, raw: bytes) -> str:
        text = read_text(raw)
        if len(text) > MAX_TEXT:
            text = text[:MAX_TEXT]
            if len(self._cut) >= MEMO:
                self._cut.clear()
            self._cut.add(text)
        return text

    def _named(self, name: bytes, scope: str, shape: Shape, slots: list[Any]) -> Fit:
        """How a span is read that says by its name what it is, and what else the name says."""
        text = name.decode("utf-8", "replace")[:MAX_TEXT]
        for pattern, plan in self._by_name[scope]:
            match = pattern.fullmatch(text)
            if match is not None:
                if match.lastindex:
                    slots[plan.subject] = match[1]
                return fitted(plan, shape.keys)
        return self._step

    def _conversations(self, found: list[bytes], notes: Callable[[str], None]) -> tuple[str, ...]:
        if len(found) == 1:
            text = self._ids[found[0]]
            ids: tuple[str, ...] = (text,) if text else ()
        else:
            ids = tuple(dict.fromkeys(text for raw in found if (text := self._ids[raw])))
            if len(ids) > 1:
                notes("conflicting_ids")
        if not ids:
            notes("missing_id")
        return ids

    @staticmethod
    def _said(
        shape: Shape, wired: Any, end: int, said: Said | None, evaluated: bool, notes: Callable[[str], None]
    ) -> Said | None:
        attributes = wired.attributes
        if shape.own:
            said = read_said(shape.own, attributes, said, notes)
        if shape.subjects:
            said = _served([attributes[key] for key in shape.subjects], said)
        found = flattened(attributes, shape.evaluations, end)
        if evaluated:
            found += in_events(wired.events, end)
        return msgspec.structs.replace(said or Said(), evaluations=tuple(found)) if found else said

    def _target(self, tool: str) -> str | None:
        """Whom a tool hands over to: None where it is no hand-off, empty where its name does not say."""
        if tool in self._targets:
            return self._targets[tool]
        if len(self._targets) >= MEMO:
            self._targets.clear()
        match = self._handoff.fullmatch(tool)
        target = None if match is None else next((group for group in match.groups() if group), "")
        if target in self._not_targets:
            target = ""
        self._targets[tool] = target
        return target


def _instead(fit: Fit, attributes: Attributes) -> Fit:
    """What an agent span really is, by its marks."""
    for key, test, other in fit.instead:
        if test(attributes[key]):
            return other
    return fit


def _name(fit: Fit, named: re.Pattern[str], name: bytes, scope: str) -> str:
    """The agent or tool that a span's name names."""
    if fit.kind is Kind.AGENT and scope.endswith(fit.dialect.unnamed_scopes):
        return ""
    match = named.fullmatch(name.decode("utf-8", "replace")[:MAX_TEXT])
    return "" if match is None else match[1]


def _served(found: list[bytes], said: Said | None) -> Said | None:
    """Who is served, unless the span states it in an attribute of our own."""
    if said is not None and said.subjects:
        return said
    subject = next((text for raw in found if (text := normalise_id(read_value(raw)))), "")
    return msgspec.structs.replace(said or Said(), subjects=(subject,)) if subject else said


def _linked(links: Any, own: bytes) -> tuple[bytes, ...]:
    """The traces that a span links to, other than its own; ids that are none are left out."""
    traces = {bytes(wire.Link.FromString(link).trace_id) for link in links}
    return tuple(sorted(trace for trace in traces if len(trace) == len(own) and trace != own and any(trace)))
