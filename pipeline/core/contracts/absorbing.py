"""What an expression comes to where something in it is missing or raises (RULES.md 25), in whatever order it stands.

```
a || b, list.exists(x, b)    true if any is, else unknown if any is, else raised if any does, else false
a && b, list.all(x, b)       false if any is, else unknown if any is, else raised if any does, else true
```
The library absorbs what is missing in `||` and `&&`. But it ends a list at the first item that is unknown, and of two
parts of which one is unknown and one raises it tells the one that stands first. So where it has no answer, the parts
are asked one by one here. The rule this file keeps: where the library has an answer, that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

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
    return _Asking(most).truth(tuple(tokens_of(source)), values)


class _Asking:
    def __init__(self, most: int) -> None:
        self._left = most

    def truth(self, tokens: Sequence[Token], values: Mapping[str, Any]) -> Truth:
        tokens = _bare(tokens)
        choice = _cut(tokens, "?")
        if len(choice) > 1:
            return self._choice(tokens, len(choice[0]), values)
        for sign, decides in (("||", Truth.TRUE), ("&&", Truth.FALSE)):
            parts = _cut(tokens, sign)
            if len(parts) > 1:
                return _together((self.truth(part, values) for part in parts), decides)
        if tokens[:1] == (("sign", "!"),) and not _signs(tokens[1:]) & BINARY:
            found = self.truth(tokens[1:], values)
            return _NOT.get(found, found)
        macro = _macro(tokens)
        if macro is None:
            return truth(lambda: self._ask(tokens, values))
        range_of, decides, name, check = macro
        try:
            items = list(self._ask(range_of, values))
        except KeyError:
            return Truth.UNKNOWN
        except FAILS:
            return Truth.RAISED
        return _together((self.truth(check, {**values, name: item}) for item in items), decides)

    def _choice(self, tokens: Sequence[Token], at: int, values: Mapping[str, Any]) -> Truth:
        """`a ? b : c`, where `a` ends at `at`."""
        condition = self.truth(tokens[:at], values)
        depth, colon = 0, at + 1
        while depth or tokens[colon] != ("sign", ":"):
            depth += _step(tokens[colon], ("?",), (":",))
            colon += 1
        if condition is Truth.TRUE:
            return self.truth(tokens[at + 1 : colon], values)
        return self.truth(tokens[colon + 1 :], values) if condition is Truth.FALSE else condition

    def _ask(self, tokens: Sequence[Token], values: Mapping[str, Any]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooDear
        named = {text for kind, text in tokens if kind == "name"}
        return _compiled(_text(tokens)).execute({name: value for name, value in values.items() if name in named})


def _text(tokens: Sequence[Token]) -> str:
    """As it was written: nothing but words stands apart, so that `1e-3` is one number still."""
    text = ""
    apart = False
    for kind, one in tokens:
        is_word = kind != "sign"
        text += f" {one}" if apart and is_word else one
        apart = is_word
    return text


@lru_cache(maxsize=1024)
def _compiled(text: str) -> cel.Program:
    return cel.compile(text)


def _together(found: Iterable[Truth], decides: Truth) -> Truth:
    """Of all of them; `decides` alone is the answer wherever it stands."""
    seen = set()
    for one in found:
        if one is decides:
            return decides
        seen.add(one)
    for one in (Truth.UNKNOWN, Truth.RAISED):
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


def _macro(tokens: Sequence[Token]) -> tuple[Sequence[Token], Truth, str, Sequence[Token]] | None:
    """(list, what decides, variable, check), if the whole of it is `list.exists(x, ...)` or `list.all(x, ...)`."""
    decides = {"exists": Truth.TRUE, "all": Truth.FALSE}
    if tokens[-1:] != (("sign", ")"),) or _signs(tokens) & (BINARY | {"!"}):
        return None
    at = _opening(tokens)
    if at < 3 or tokens[at - 2] != ("sign", ".") or tokens[at - 1][1] not in decides:
        return None
    return tokens[: at - 2], decides[tokens[at - 1][1]], tokens[at + 1][1], tokens[at + 3 : -1]
