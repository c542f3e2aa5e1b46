"""CEL expressions of contracts, and what a missing field makes of them (RULES.md 23, 25).

A missing field is unknown: `&&` and `||` absorb it as CEL absorbs errors, and what stays unknown is not true. An
expression that raises for another reason is `RAISED`, never a guess. What an expression may cost is bounded by its
text (`scan.py`) and by what it is given: over more than that it raises, the same in every worker and every replay,
since no clock is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import cel

from pipeline.core.contracts.absorbing import FAILS, TooDear, absorbed, truth
from pipeline.core.contracts.absorbing import Truth as Truth
from pipeline.core.contracts.scan import BadExpression, scan

SESSION_FIELDS = frozenset(
    {
        "agents",
        "tools",
        "models",
        "turns",
        "runs",
        "handoffs",
        "errors",
        "retries",
        "guardrails",
        "duration_s",
        "claimed",
    }
)
ZERO_CALLS = {"calls": 0, "ok": 0, "failed": 0}
MAX_STEPS = 100_000
"""Steps of loops over what is given; about a quarter of a second."""
MAX_TEXT = 10_000
"""Characters of a text that patterns and additions may be given."""


class Expression:
    """One compiled expression.

    Args:
        source: CEL text.
    Raises:
        ValueError: it does not parse, is too large, or does not name literally what it reads.
    """

    __slots__ = ("_has_parts", "_program", "_scan", "_weighs", "fields", "source", "variables")

    def __init__(self, source: str) -> None:
        self.source = source
        self._scan = scan(source)
        try:
            self._program = cel.compile(source)
        except ValueError as error:
            raise BadExpression(f"is no CEL: {_parser_says(str(error))}") from error
        self.fields: dict[str, frozenset[str]] = {name: frozenset(found) for name, found in self._scan.fields.items()}
        self.variables = frozenset(self.fields)
        self._has_parts = bool(self._scan.loops) or any(sign in source for sign in ("||", "&&"))
        self._weighs = bool(self._scan.loops or self._scan.adds or self._scan.matches)

    def reads(self, variable: str) -> frozenset[str]:
        """The fields of `variable` that the expression names."""
        return self.fields.get(variable, frozenset())

    def holds(self, values: Mapping[str, Any]) -> Truth:
        """Evaluate; tools that were never called count as zeros."""
        try:
            read = self._read(values)
        except KeyError:
            return Truth.UNKNOWN
        except FAILS:
            return Truth.RAISED
        found = truth(lambda: self._program.execute(read))
        if self._has_parts and found in (Truth.UNKNOWN, Truth.RAISED):
            longest, items = _sizes(read[name].get(one) for name, names in self.fields.items() for one in names)
            try:
                return absorbed(self.source, read, MAX_STEPS // (1 + items + longest // 100))
            except TooDear:
                return found
        return found

    def value(self, values: Mapping[str, Any]) -> Any:
        """What the expression comes to.

        Raises:
            KeyError: something that it needs is missing.
            Exception: it raises, or is given more than it may be.
        """
        return self._program.execute(self._read(values))

    def _read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What it is given of the values.

        Raises:
            OverflowError: that is more than it may be given.
        """
        read = {name: values[name] for name in self.variables}  # the rest need not be turned into CEL values
        named = self.reads("tools")
        if named and not named <= read["tools"].keys():
            read["tools"] = {**dict.fromkeys(named, ZERO_CALLS), **read["tools"]}
        if self._weighs:
            self._weigh(read)
        return read

    def _weigh(self, read: Mapping[str, Any]) -> None:
        """
        Raises:
            OverflowError: what is given is too much for what the expression does with it.
        """
        given = [read[name].get(one) for name, names in self.fields.items() for one in names]
        longest, items = _sizes(given)
        items = max(items, self._scan.literals)
        if longest > MAX_TEXT:
            raise OverflowError(f"a text of {longest} characters")
        steps: int = items ** (self._scan.loops + self._scan.collects) if self._scan.loops else 0
        if self._scan.loops and (self._scan.adds or self._scan.matches or self._scan.collects):
            steps *= 1 + longest // 100
        if steps > MAX_STEPS:
            raise OverflowError(f"{steps} steps")

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"


def _sizes(given: Iterable[Any]) -> tuple[int, int]:
    """The longest text and the longest list among values and their items."""
    longest = items = 0
    for value in given:
        if isinstance(value, str):
            longest = max(longest, len(value))
        elif isinstance(value, list):
            items = max(items, len(value))
            longest = max([longest, *(len(one) for one in value if isinstance(one, str))])
    return longest, items


def _parser_says(text: str) -> str:
    """The parser's own words, without the picture of where it stood."""
    return " ".join(text.split("ERROR: ", 1)[-1].split("\n", 1)[0].split())
