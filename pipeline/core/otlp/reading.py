"""What reading a record yields: spans or log records in their wire form, and what in it could not be read.

The rule this file keeps: one bad part never takes the good ones with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_KEY = 100


class NotOtlp(Exception):
    """The whole record is unreadable; the text says what it looks like, without its content."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A part that goes to the dead-letter topic.

    Args:
        part: what was lost: a `span`, a `log`, an `attribute`.
        trace_id: hex, where known.
    """

    part: str
    reason: str
    detail: str
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Spans, or log records, of one resource and scope.

    Args:
        resource: encoded `Resource`.
        spans: messages of the trimmed wire schema.
        flags: `SpanFlag`s that hold for each of them.
        scope: the name of the instrumentation.
    """

    resource: bytes
    spans: Iterable[Any]
    flags: int = 0
    scope: str = ""


@dataclass(slots=True)
class Reading:
    """Args:
    others: log records that are not read, as their events are none of those asked for.
    """

    batches: list[Batch] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    others: int = 0


def key_in_words(key: bytes | str) -> str:
    """An attribute's key for a dead letter: short and printable."""
    text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_KEY])
