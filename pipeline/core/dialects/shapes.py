"""What a span's set of attribute keys decides: few instrumentations send few different sets, so it is decided once.

Asking a span's attributes for a key costs as much as listing one of its keys. So the keys are listed, and what may be
read of a span with just these keys is looked up by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.core.dialects.evaluations import evaluation_keys
from pipeline.core.dialects.plans import MEMO, Ask, Plan, Planner, Test
from pipeline.core.dialects.said import OURS
from pipeline.core.dialects.table import Dialect
from pipeline.core.otlp.values import Memo
from schemas.span import Kind

MAX_SHAPES = 5_000
MAX_KEYS = 48  # spans with more keys are those with flattened lists: few list the same

SESSION_LIKE = re.compile(r"(?:session|conversation|thread|chat)[._-]?id$", re.IGNORECASE)
NO_SESSIONS = frozenset({"thread.id", "mcp.session.id", "langsmith.trace.session_id"})
"""Keys that end as those of conversations do: a thread of a process, a transport's session, a project."""


class Fit(NamedTuple):
    """A plan, without what asks for keys that are not there. See `Plan`.

    Args:
        steered: events of spans that are no errors are asked what they steer.
        requested: it is a tool span with arguments and without a result.
    """

    dialect: Dialect
    kind: Kind
    label: str
    subject: int
    asks: tuple[Ask, ...]
    content: tuple[Ask, ...]
    instead: tuple[tuple[str, Test, Fit], ...]
    named: re.Pattern[str] | None
    group: bool
    failed: tuple[tuple[str, bytes], ...]
    steered: bool
    requested: bool


class Shape(NamedTuple):
    """What a set of keys decides.

    Args:
        keys: those that something may be read of.
        deciders: keys that say what a span is, with what each of their values means, in the dialects' order.
        ids: where conversation ids are, in the configured order; `subjects`: who is served.
        own: attributes that are ours or stand for one of ours: (key, ours), in order.
        session_like: unknown keys that look as if they held ids.
        evaluations: keys that name evaluations.
        rare: it has any of the last four.
    """

    keys: frozenset[str]
    deciders: tuple[tuple[str, Memo[Fit]], ...]
    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    own: tuple[tuple[str, str], ...]
    session_like: tuple[str, ...]
    evaluations: tuple[str, ...]
    rare: bool


class Shapes(dict[tuple[str, ...], Shape]):
    """Shapes by a span's keys as they are listed, made when first asked for.

    Args:
        planners: of dialects that decide by a key; `by_name`: of those that decide by a span's name.
    """

    def __init__(
        self,
        planners: Sequence[Planner],
        by_name: Planner,
        conversation_keys: tuple[str, ...],
        ours: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._ours = ours or {}
        self._planners = planners
        self._ids = conversation_keys
        self._subjects = tuple(dict.fromkeys(key for one in planners for key in one.dialect.subject))
        self._read = frozenset(conversation_keys).union(self._subjects, *(one.keys for one in (*planners, by_name)))
        self._idle: set[str] = set()
        self._shapes: dict[frozenset[str], Shape] = {}

    def __missing__(self, names: tuple[str, ...]) -> Shape:
        keys = self._read.intersection(names).union(self._odd(names))
        shape = self._shapes.get(keys)
        if shape is None:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            shape = self._shapes[keys] = self._shape(keys)
        if len(names) <= MAX_KEYS:
            if len(self) >= MAX_SHAPES:
                self.clear()
            self[names] = shape
        return shape

    def _odd(self, names: Iterable[str]) -> list[str]:
        """Keys that no table knows and that say something all the same; of the others it is remembered."""
        odd = []
        for key in names:
            if key in self._idle:
                continue
            if key.startswith(OURS) or key in self._ours or evaluation_keys((key,)) or self._is_session_like(key):
                odd.append(key)
                continue
            if len(self._idle) >= MEMO:
                self._idle.clear()
            self._idle.add(key)
        return odd

    def _is_session_like(self, key: str) -> bool:
        known = key in self._ids or key in NO_SESSIONS or key in self._ours
        return bool(SESSION_LIKE.search(key)) and not known

    def _shape(self, keys: frozenset[str]) -> Shape:
        deciders = tuple(
            (one.dialect.kind, Memo[Fit](_Fitting(one, keys), MEMO))
            for one in self._planners
            if one.dialect.kind in keys
        )
        ids = tuple(key for key in self._ids if key in keys)
        rare = (
            tuple(key for key in self._subjects if key in keys),
            self._own(keys),
            tuple(sorted(key for key in keys if self._is_session_like(key))),
            evaluation_keys(keys),
        )
        return Shape(keys, deciders, ids, *rare, rare=any(rare))

    def _own(self, keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
        """Those that stand for one of ours come first, the first named of them last, so that ours hold."""
        aliases = [(key, name) for key, name in reversed([*self._ours.items()]) if key in keys]
        return (*aliases, *sorted((key, key) for key in keys if key.startswith(OURS)))


class _Fitting:
    """What a decider's bytes mean to spans with these keys."""

    __slots__ = ("keys", "planner")

    def __init__(self, planner: Planner, keys: frozenset[str]) -> None:
        self.planner, self.keys = planner, keys

    def __call__(self, raw: bytes) -> Fit:
        return fitted(self.planner.of_operation(raw), self.keys)


def fitted(plan: Plan, keys: frozenset[str]) -> Fit:
    table = plan.dialect
    may_be_requested = plan.kind is Kind.TOOL and not keys.isdisjoint(table.arguments)
    return Fit(
        dialect=table,
        kind=plan.kind,
        label=plan.label,
        subject=plan.subject,
        asks=tuple(ask for ask in plan.asks if ask[0] in keys),
        content=tuple(ask for ask in plan.content if ask[0] in keys),
        instead=tuple((key, test, fitted(other, keys)) for key, test, other in plan.instead if key in keys),
        named=plan.named,
        group=plan.group,
        failed=tuple(mark for mark in plan.failed if mark[0] in keys),
        steered=table.control_in_events,
        requested=may_be_requested and keys.isdisjoint(table.result),
    )
