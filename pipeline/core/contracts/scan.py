"""What a CEL expression names, told from its text: fields, functions, macros and patterns, and how large it is.

The rule this file keeps: every field is named literally, so that what an expression reads is known before it runs; an
expression about which that cannot be said is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import cel

ROOTS = frozenset({"state", "evidence", "tools", "resource", "session"})
MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
FUNCTIONS = frozenset(
    {"has", "size", "contains", "startsWith", "endsWith", "matches", "string", "int", "uint", "double", "bytes", "dyn",
     "type", "timestamp", "duration", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek",
     "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"}
)  # fmt: skip
WORDS = frozenset({"true", "false", "null", "in", "int", "uint", "double", "bool", "string", "bytes", "list", "map"})
MAX_LENGTH, MAX_TOKENS, MAX_DEPTH, MAX_LOOPS = 4096, 500, 32, 2
"""Characters; tokens; brackets within brackets; macros within macros."""
MAX_PATTERN = 2000
"""Characters of a pattern times its counted repetitions: about the states of the automaton that it becomes."""

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//)|(?P<triple>[rRbB]{0,2}(?:'{3}|"{3}))
    |(?P<text>[bB]?[rR][bB]?(?:'[^'\n]*'|"[^"\n]*")|[bB]?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    |(?P<number>\d\w*(?:\.\d\w*)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,\[\](){}])""",
    re.VERBOSE,
)
_COUNTED = re.compile(r"\{(\d*)(?:,(\d*))?\}")
Token = tuple[str, str]
END: Token = ("end", "")


class BadExpression(ValueError):
    """An expression that cannot be used; the text says why, and what to write."""


@dataclass(slots=True)
class Scan:
    """What an expression names.

    Args:
        fields: variable -> the fields of it that are read.
        loops: the deepest nesting of macros; `collects`: whether one of them builds a list.
        literals: the most items that a list in the text can have.
    """

    fields: dict[str, set[str]] = field(default_factory=dict)
    loops: int = 0
    collects: bool = False
    adds: bool = False
    matches: bool = False
    literals: int = 0


def scan(source: str) -> Scan:
    """Reads an expression without running it.

    Raises:
        BadExpression: it is too large, or says something whose meaning would depend on more than its fields.
    """
    if len(source) > MAX_LENGTH:
        raise BadExpression(f"is longer than {MAX_LENGTH} characters; split it into several criteria")
    tokens = tokens_of(source)
    if len(tokens) > MAX_TOKENS:
        raise BadExpression(f"has more than {MAX_TOKENS} words and signs; split it into several criteria")
    found = Scan()
    bound = _loops(tokens, found)
    for index, (kind, text) in enumerate(tokens):
        before, after = _at(tokens, index - 1), _at(tokens, index + 1)
        found.adds |= text == "+" and kind == "sign"
        found.literals += text == ","
        if kind != "name":
            continue
        if after == ("sign", "("):
            _call(tokens, index, found)
        elif before != ("sign", ".") and text not in WORDS and text not in bound:
            _root(tokens, index, found)
    return found


def tokens_of(source: str) -> list[Token]:
    """Its words and signs.

    Raises:
        BadExpression: it holds something else.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise BadExpression(f"cannot be read at {source[at : at + 10]!r}")
        kind = str(match.lastgroup)
        if kind == "comment":
            raise BadExpression("holds a comment; write it beside the expression, with #")
        if kind == "triple":
            raise BadExpression("holds a text in triple quotes; use single ones")
        if kind != "space":
            tokens.append((kind, match[0]))
        at = match.end()
    return tokens


def _at(tokens: list[Token], index: int) -> Token:
    return tokens[index] if 0 <= index < len(tokens) else END


def _loops(tokens: list[Token], found: Scan) -> set[str]:
    """The names that macros bind; counts how deep brackets and macros lie within one another."""
    bound: set[str] = set()
    open_brackets: list[bool] = []
    for index, (kind, text) in enumerate(tokens):
        if kind != "sign":
            continue
        if text in ("(", "[", "{"):
            named = _at(tokens, index - 1)[1]
            is_macro = text == "(" and named in MACROS and _at(tokens, index - 2) == ("sign", ".")
            if is_macro:
                bound.add(_bound(tokens, index + 1))
                found.collects |= named in ("map", "filter")
            open_brackets.append(is_macro)
            found.loops = max(found.loops, sum(open_brackets))
            if len(open_brackets) > MAX_DEPTH:
                raise BadExpression(f"has brackets more than {MAX_DEPTH} deep; split it into several criteria")
        elif text in (")", "]", "}") and open_brackets:
            open_brackets.pop()
    if found.loops > MAX_LOOPS:
        raise BadExpression(f"goes through lists within lists within lists; {MAX_LOOPS} levels are allowed")
    return bound


def _bound(tokens: list[Token], index: int) -> str:
    kind, name = _at(tokens, index)
    if kind != "name" or _at(tokens, index + 1) != ("sign", ","):
        raise BadExpression("has a macro without a variable; write `list.exists(x, ...)`")
    if name in ROOTS or name in WORDS:
        raise BadExpression(f"binds `{name}`, which means something else here; take another name")
    return name


def _call(tokens: list[Token], index: int, found: Scan) -> None:
    name, is_method = tokens[index][1], _at(tokens, index - 1) == ("sign", ".")
    if name not in FUNCTIONS and not (is_method and name in MACROS):
        known = ", ".join(sorted(FUNCTIONS | MACROS))
        raise BadExpression(f"calls `{name}`, which there is not; there are {known}")
    if name == "matches":
        found.matches = True
        at = index + 2 if is_method else index + 2 + 2  # matches(text, pattern) is refused below, having no literal
        pattern = _at(tokens, at)
        if not is_method or pattern[0] != "text" or _at(tokens, at + 1) != ("sign", ")"):
            raise BadExpression("matches a pattern that is not written out; write `field.matches('pattern')`")
        check_pattern(str(cel.evaluate(pattern[1])))


def check_pattern(pattern: str) -> None:
    """
    Raises:
        BadExpression: it is no regular expression, or one that becomes too large.
    """
    size = len(pattern)
    for least, most in _COUNTED.findall(pattern):
        size *= max(1, int(most or least or 1))
    if size > MAX_PATTERN:
        raise BadExpression(f"has a pattern that becomes too large ({size} of {MAX_PATTERN}); count fewer repetitions")
    try:
        cel.compile("text.matches(pattern)").execute({"text": "", "pattern": pattern})
    except (RuntimeError, ValueError) as error:
        said = str(error).split("Check", 1)[0].strip()
        raise BadExpression(f"has a pattern that is no regular expression: {' '.join(said.split())}") from error


def _root(tokens: list[Token], index: int, found: Scan) -> None:
    """A variable and the field of it that is named, as `state.x` or `state['x']`."""
    root = tokens[index][1]
    if root not in ROOTS:
        raise BadExpression(f"reads `{root}`, which there is not; there are {', '.join(sorted(ROOTS))}")
    sign, (kind, name), after = _at(tokens, index + 1)[1], _at(tokens, index + 2), _at(tokens, index + 3)[1]
    if sign == "." and kind == "name" and after != "(":
        found.fields.setdefault(root, set()).add(name)
    elif sign == "[" and kind == "text" and after == "]":
        found.fields.setdefault(root, set()).add(str(cel.evaluate(name)))
    else:
        raise BadExpression(f"reads `{root}` without naming a field; write {root}.name or {root}['name']")
