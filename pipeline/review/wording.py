"""Times, numbers and words as people say them; all times are UTC."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

ENDS = {
    "": "It is still open",
    "invalid": "It was set aside as invalid",
    "refused": "It was refused",
    "escalated": "It ended with a person",
    "claimed_failed": "It ended with the agent saying that it failed",
    "completed": "It ended with a claim of completion",
    "failed": "It ended in an error",
    "timed_out": "It ended waiting for a person",
    "abandoned": "It ended waiting for the customer",
    "ended": "It ended without a claim",
}
"""By terminal reason."""


def moment(text: str) -> str:
    """`2026-04-02T10:00:00.123Z` as `2026-04-02 10:00:00`."""
    return text[:19].replace("T", " ")


def after(end: str, at: str) -> str:
    """How long after (or before) the end of the session."""
    apart = datetime.fromisoformat(at) - datetime.fromisoformat(end)
    if abs(apart) < timedelta(seconds=1):
        return "at its end"
    return f"{length(abs(apart))} {'after' if apart > timedelta(0) else 'before'} its end"


def span_time(start: str, end: str) -> str:
    return length(datetime.fromisoformat(end) - datetime.fromisoformat(start))


def length(apart: timedelta) -> str:
    """The two greatest units: `1 d 3 h`, `2 h 5 min`, `12 s`."""
    seconds = int(apart.total_seconds())
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for index, (name, size) in enumerate(units):
        if seconds >= size:
            first, rest = divmod(seconds, size)
            smaller = units[index + 1] if index + 1 < len(units) else None
            second = rest // smaller[1] if smaller else 0
            return f"{first} {name} {second} {smaller[0]}" if smaller and second else f"{first} {name}"
    return f"{int(apart.total_seconds() * 1000)} ms"


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def listed(words: Iterable[str]) -> str:
    """`a, b and c`; none may be there while the store has only a part of a new verdict."""
    *first, last = list(words) or ["a criterion"]
    return f"{', '.join(first)} and {last}" if first else last


def answer(confirmed: bool) -> str:
    return "confirmed that it is done" if confirmed else "denied that it is done"


def value(one: Any) -> str:
    """A value as JSON would write it, text without its quotes."""
    return one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
