"""What an expression comes to where something in it is missing or raises (RULES.md 25), in whatever order it stands.

```
a || b, list.exists(x, b)    true if any is, else raised if any does, else unknown if any is, else false
a && b, list.all(x, b)       false if any is, else raised if any does, else unknown if any is, else true
```
The library absorbs what is missing in `||` and `&&`. But it ends a list at the first item that is unknown, and of two
parts of which one is unknown and one raises it tells the one that stands last. So where it has no answer, the parts
are asked one by one here. The rule this file keeps: where the library has an answer, that holds; what raises is told
at once, whatever else is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol

import cel

from pipeline.core.contracts.scan import Token, tokens_of

BINARY = frozenset({"||", "&&", "?", ":", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%"})
OPENS, CLOSES = ("(", "[", "{"), (")", "]", "}")


class Truth(Enum):
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    RAISED = "raised"


FAILS = (ValueError, TypeError, ArithmeticError, RuntimeError, LookupError)
"""Of an evaluation; of them a KeyError is something missing."""
_NOT = {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE}


class TooDear(Exception):
    """More parts than may be asked."""


def truth(ask: Callable[[], Any]) -> Truth:
    """What an evaluation comes to; what is no boolean raises."""
    try:
        answer = ask()
    except KeyError:
        return Truth.UNKNOWN
    except FAILS:
        return Truth.RAISED
    if answer is True:
        return Truth.TRUE
    return Truth.FALSE if answer is False else Truth.RAISED


def absorbed(source: str, values: Mapping[str, Any], most: int) -> Truth:
    """What the expression comes to, asked part by part.

    Args:
        most: parts that may be asked.
    Raises:
        TooDear: it would take more.
    """
    return _parsed(source).truth(values, _Budget(most))


@lru_cache(maxsize=1024)
def _parsed(source: str) -> _Part:
    return _part(tuple(tokens_of(source)))


class _Budget:
    """How many parts may still be asked."""

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooDear


class _Part(Protocol):
    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth: ...


class _Leaf:
    """What is asked as a whole."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._names = frozenset(text for kind, text in tokens if kind == "name")
        self._program = cel.compile(_text(tokens))

    def value(self, values: Mapping[str, Any], budget: _Budget) -> Any:
        budget.spend()
        return self._program.execute({name: value for name, value in values.items() if name in self._names})

    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth:
        return truth(lambda: self.value(values, budget))


@dataclass(frozen=True, slots=True)
class _Joined:
    """Parts of which `decides` is the answer wherever it stands."""

    decides: Truth
    parts: Sequence[_Part]

    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth:
        return _together((part.truth(values, budget) for part in self.parts), self.decides)


@dataclass(frozen=True, slots=True)
class _Negated:
    part: _Part

    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth:
        found = self.part.truth(values, budget)
        return _NOT.get(found, found)


@dataclass(frozen=True, slots=True)
class _Choice:
    condition: _Part
    then: _Part
    otherwise: _Part

    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth:
        found = self.condition.truth(values, budget)
        if found is Truth.TRUE:
            return self.then.truth(values, budget)
        return self.otherwise.truth(values, budget) if found is Truth.FALSE else found


@dataclass(frozen=True, slots=True)
class _Macro:
    """`list.exists(name, check)`, or `all`."""

    range_of: _Leaf
    decides: Truth
    name: str
    check: _Part

    def truth(self, values: Mapping[str, Any], budget: _Budget) -> Truth:
        try:
            items = list(self.range_of.value(values, budget))
        except KeyError:
            return Truth.UNKNOWN
        except FAILS:
            return Truth.RAISED
        return _together((self.check.truth({**values, self.name: one}, budget) for one in items), self.decides)


def _part(tokens: Sequence[Token]) -> _Part:
    tokens = _bare(tokens)
    at = len(_cut(tokens, "?")[0])
    if at < len(tokens):
        colon = _colon(tokens, at + 1)
        return _Choice(_part(tokens[:at]), _part(tokens[at + 1 : colon]), _part(tokens[colon + 1 :]))
    for sign, decides in (("||", Truth.TRUE), ("&&", Truth.FALSE)):
        parts = _cut(tokens, sign)
        if len(parts) > 1:
            return _Joined(decides, [_part(one) for one in parts])
    if tokens[:1] == (("sign", "!"),) and not _signs(tokens[1:]) & BINARY:
        return _Negated(_part(tokens[1:]))
    return _macro(tokens) or _Leaf(tokens)


def _colon(tokens: Sequence[Token], begin: int) -> int:
    """Where the second part of a choice begins, the first of which begins here."""
    depth, at = 0, begin
    while depth or tokens[at] != ("sign", ":"):
        depth += _step(tokens[at], ("?",), (":",))
        at += 1
    return at


def _text(tokens: Sequence[Token]) -> str:
    """As it was written: nothing but words stands apart, so that `1e-3` is one number still."""
    text = ""
    apart = False
    for kind, one in tokens:
        is_word = kind != "sign"
        text += f" {one}" if apart and is_word else one
        apart = is_word
    return text


def _together(found: Iterable[Truth], decides: Truth) -> Truth:
    """Of all of them; `decides` alone is the answer wherever it stands."""
    seen = set()
    for one in found:
        if one is decides:
            return decides
        seen.add(one)
    for one in (Truth.RAISED, Truth.UNKNOWN):
        if one in seen:
            return one
    return _NOT[decides]


def _step(token: Token, opens: Sequence[str] = (), closes: Sequence[str] = ()) -> int:
    """How much deeper it is after this token."""
    kind, text = token
    if kind != "sign":
        return 0
    return (text in OPENS or text in opens) - (text in CLOSES or text in closes)


def _cut(tokens: Sequence[Token], sign: str) -> list[Sequence[Token]]:
    """The parts between the signs that are in no brackets."""
    parts, begin, depth = [], 0, 0
    for index, token in enumerate(tokens):
        depth += _step(token)
        if not depth and token == ("sign", sign):
            parts.append(tokens[begin:index])
            begin = index + 1
    return [*parts, tokens[begin:]]


def _signs(tokens: Sequence[Token]) -> set[str]:
    """What joins parts that are in no brackets."""
    found, depth = set(), 0
    for kind, text in tokens:
        depth += _step((kind, text))
        if not depth and (kind == "sign" or text == "in"):
            found.add("==" if text == "in" else text)
    return found


def _opening(tokens: Sequence[Token]) -> int:
    """Where the bracket opens that the last token closes."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        depth += _step(tokens[index])
        if not depth:
            return index
    return 0


def _bare(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without brackets around the whole of it."""
    while tokens[:1] == (("sign", "("),) and tokens[-1:] == (("sign", ")"),) and _opening(tokens) == 0:
        tokens = tokens[1:-1]
    return tokens


def _macro(tokens: Sequence[Token]) -> _Macro | None:
    """If the whole of it is `list.exists(x, ...)` or `list.all(x, ...)`."""
    decides = {"exists": Truth.TRUE, "all": Truth.FALSE}
    if tokens[-1:] != (("sign", ")"),) or _signs(tokens) & (BINARY | {"!"}):
        return None
    at = _opening(tokens)
    if at < 3 or tokens[at - 2] != ("sign", ".") or tokens[at - 1][1] not in decides:
        return None
    check = _part(tokens[at + 3 : -1])
    return _Macro(_Leaf(tokens[: at - 2]), decides[tokens[at - 1][1]], tokens[at + 1][1], check)
