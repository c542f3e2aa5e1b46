"""What a request asks for, made sure of: parameters that are known, values that are allowed, times that can be read.

The rule this file keeps: what cannot be meant is refused with the names of what can, and never guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from pipeline.core.timeline import from_datetime, nanoseconds, to_text
from schemas.contract import parse_duration


class Refusal(Exception):
    """A request that is answered with an error, as JSON."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status, self.body = status, {"error": message, **details}


def known_only(request: web.Request, allowed: Sequence[str]) -> None:
    """
    Raises:
        Refusal: there is a parameter that nobody knows.
    """
    for name in sorted(request.query.keys() - set(allowed)):
        raise Refusal(400, f"unknown parameter {name!r}", allowed=list(allowed))


def chosen(request: web.Request, name: str, allowed: Sequence[str], default: str | None) -> Any:
    """The value of a parameter that has few.

    Raises:
        Refusal: it is none of them.
    """
    value = request.query.get(name, default)
    if value is not None and value not in allowed:
        raise Refusal(400, f"unknown {name} {value!r}", parameter=name, allowed=list(allowed))
    return value


def number(request: web.Request, name: str, default: int, most: int) -> int:
    """A whole number, 1 to `most`.

    Raises:
        Refusal: it is none.
    """
    value = request.query.get(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise Refusal(400, f"{name} {value!r} is no number from 1 to {most}", parameter=name)
    return int(value)


def moment(request: web.Request, name: str, now: int) -> int | None:
    """A time, ns: ISO 8601 with its zone, or how long before `now` (`90m`, `7d`); None where it is not given.

    Raises:
        Refusal: it cannot be read.
    """
    value = request.query.get(name)
    if value is None:
        return None
    try:
        return max(0, now - nanoseconds(parse_duration(value)))
    except (ValueError, OverflowError):
        pass  # no duration: then it is a time
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        hint = "write 2026-04-01T00:00:00Z, 90m or 7d"
        raise Refusal(400, f"{name} {value!r} is neither a time with its zone nor a duration; {hint}", parameter=name)
    return max(0, from_datetime(found))


def time(ns: int) -> str | None:
    """As text; None for 0."""
    return to_text(ns) if ns else None


def json_body(body: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
