"""CEL expressions of contracts, and what a missing field makes of them (RULES.md 23, 25).

A missing field is unknown: `&&` and `||` absorb it as CEL absorbs errors, and what stays unknown is not true. An
expression that raises for another reason is `RAISED`, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import cel

VARIABLES = frozenset({"state", "evidence", "tools", "resource", "session"})
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
_STRING = re.compile(r"""r?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_FIELD = re.compile(
    r"""(?<![\w.])(state|evidence|tools|resource|session)\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*(\x00\d+\x00)\s*\])"""
)
_NAME = re.compile(r"(?<![\w.])(state|evidence|tools|resource|session)\b")
ZERO_CALLS = {"calls": 0, "ok": 0, "failed": 0}


class Truth(Enum):
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    RAISED = "raised"


class Expression:
    """One compiled expression.

    Args:
        source: CEL text.
    Raises:
        ValueError: it does not parse.
    """

    __slots__ = ("_program", "fields", "source", "variables")

    def __init__(self, source: str) -> None:
        self.source = source
        self._program = cel.compile(source)
        strings: list[str] = []

        def keep(match: re.Match[str]) -> str:
            strings.append(match[0].lstrip("r")[1:-1])
            return f"\0{len(strings) - 1}\0"

        bare = _STRING.sub(keep, source)
        self.variables = frozenset(_NAME.findall(bare))
        fields: dict[str, set[str]] = {}
        for variable, dotted, indexed in _FIELD.findall(bare):
            fields.setdefault(variable, set()).add(dotted or strings[int(indexed.strip("\0"))])
        self.fields: dict[str, frozenset[str]] = {name: frozenset(found) for name, found in fields.items()}

    def reads(self, variable: str) -> frozenset[str]:
        """The fields of `variable` that the expression names."""
        return self.fields.get(variable, frozenset())

    def holds(self, values: Mapping[str, Any]) -> Truth:
        """Evaluate; tools that were never called count as zeros."""
        read = {name: values[name] for name in self.variables}  # the rest need not be turned into CEL values
        named = self.reads("tools")
        if named and not named <= read["tools"].keys():
            read["tools"] = {**dict.fromkeys(named, ZERO_CALLS), **read["tools"]}
        try:
            answer = self._program.execute(read)
        except KeyError:
            return Truth.UNKNOWN
        except (ValueError, TypeError, ArithmeticError, RuntimeError, LookupError):
            return Truth.RAISED
        if answer is True:
            return Truth.TRUE
        return Truth.FALSE if answer is False else Truth.RAISED

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"
