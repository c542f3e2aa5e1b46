"""What a PromQL expression asks for: its selectors, its aggregations, and the labels these need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser

_BUILT_IN = re.compile(r"\$(?:__rate_interval|__interval|__range)\b")
_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class Selector:
    """One series selector, with the labels that the aggregations around it keep."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]  # label, operator, value
    kept: tuple[str, ...] | None  # of the innermost aggregation; None: not aggregated
    operator: str | None

    @property
    def labels(self) -> set[str]:
        return {label for label, _, _ in self.matchers} | set(self.kept or ())


def expanded(expression: str, values: dict[str, str]) -> str:
    """Grafana's variables replaced; an unknown one raises KeyError."""
    fixed = _BUILT_IN.sub("5m", expression)
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]], fixed)


def selectors(expression: str) -> list[Selector]:
    """Every selector of an expression; ValueError if it does not parse."""
    return list(_walk(promql_parser.parse(expression), None, None))


def aggregations(expression: str) -> Iterator[tuple[str, tuple[str, ...], list[Selector]]]:
    """Every aggregation by labels, with the selectors under it."""
    yield from _aggregations(promql_parser.parse(expression))


def ranges(expression: str) -> list[str]:
    return re.findall(r"\[([^\]:]+)\]", expression)


def _children(node: Any) -> list[Any]:
    found: list[Any] = []
    for name in ("lhs", "rhs", "expr", "args", "param"):
        child = getattr(node, name, None)
        if child is not None:
            found.extend(child if isinstance(child, list) else [child])
    return found


def _walk(node: Any, operator: str | None, kept: tuple[str, ...] | None) -> Iterator[Selector]:
    if isinstance(node, promql_parser.MatrixSelector):
        node = node.vector_selector
    if isinstance(node, promql_parser.VectorSelector):
        matchers = tuple((m.name, _operator(m), m.value) for m in node.matchers.matchers)
        yield Selector(node.name or "", matchers, kept, operator)
        return
    if isinstance(node, promql_parser.AggregateExpr):
        operator, kept = str(node.op), _by(node)
    for child in _children(node):
        yield from _walk(child, operator, kept)


def _aggregations(node: Any) -> Iterator[tuple[str, tuple[str, ...], list[Selector]]]:
    if isinstance(node, promql_parser.AggregateExpr):
        yield str(node.op), _by(node), list(_walk(node, None, None))
    for child in _children(node):
        yield from _aggregations(child)


def _by(node: Any) -> tuple[str, ...]:
    modifier = node.modifier
    if modifier is None:
        return ()
    if modifier.type != promql_parser.AggModifierType.By:
        raise ValueError("`without` hides which labels are kept: name them with `by`")
    return tuple(modifier.labels)


def _operator(matcher: Any) -> str:
    kinds = promql_parser.MatchOp
    names = ((kinds.Equal, "="), (kinds.NotEqual, "!="), (kinds.Re, "=~"), (kinds.NotRe, "!~"))
    return next(text for kind, text in names if matcher.op == kind)
