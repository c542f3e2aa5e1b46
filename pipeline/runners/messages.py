"""Messages as the runners see them, the log they lie in, and how records become messages.

The rule this file keeps: a mark travels only in the last message that a cut sends to a partition, so that nobody hears
of a watermark before all that belongs before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.envelope import FORMAT, Envelope, Mark, encode
from schemas.topics import Topic
from schemas.wire import Keyed

MAX_RECORDS = 500
MAX_BYTES = 700_000  # below the 1 MB that brokers and clients take by default

PLAIN = frozenset({Topic.VERDICTS, Topic.DEAD_LETTERS})
"""Topics for readers outside the pipeline: one message a record, with a key."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message read from a log; `record_time` is the broker's or the sender's, in ns."""

    topic: str
    partition: int
    offset: int
    record_time: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be appended to a log."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


class MessageLog(Protocol):
    """The broker, as far as a checkpoint and a delivery need it."""

    async def append(self, messages: Sequence[Outgoing]) -> list[int]:
        """Append in this order, wait until all are durable; returns their offsets."""

    def read(self, topic: str, partition: int, start: int, stop: int) -> AsyncIterator[Incoming]:
        """What lies at the offsets in [start, stop) now; `stop` is at most the end of the log."""

    async def begin(self, topic: str, partition: int) -> int:
        """The first offset that is still there."""

    async def end(self, topic: str, partition: int) -> int:
        """The offset that the next message gets."""


def envelopes(records: Sequence[Any], marks: list[Mark]) -> list[bytes]:
    """`records` as messages of at most `MAX_RECORDS` records and, where records allow it, `MAX_BYTES`; never none."""
    messages: list[bytes] = []
    starts = range(0, len(records), MAX_RECORDS) or [0]
    for start in starts:
        chunk = list(records[start : start + MAX_RECORDS])
        messages.extend(_fitting(chunk, marks if start == starts[-1] else []))
    return messages


def _fitting(records: list[Any], marks: list[Mark]) -> Iterable[bytes]:
    encoded = encode(Envelope(FORMAT, marks, records))
    if len(encoded) <= MAX_BYTES or len(records) < 2:
        return [encoded]
    half = len(records) // 2
    return [*_fitting(records[:half], []), *_fitting(records[half:], marks)]


def pack(records: Mapping[tuple[Topic, int], list[Any]], marks: Mapping[Topic, list[Mark]]) -> list[Outgoing]:
    """The messages of an outbox.

    Args:
        marks: for each topic that hears of the sender's watermark.
    """
    messages: list[Outgoing] = []
    for (topic, partition), batch in records.items():
        if topic in PLAIN:
            keyed: list[Keyed] = batch
            messages.extend(Outgoing(topic, partition, one.key, one.value or None) for one in keyed)
        else:
            heard = marks.get(topic, [])
            messages.extend(Outgoing(topic, partition, None, value) for value in envelopes(batch, heard))
    return messages


def unwritable(records: Mapping[tuple[Topic, int], Sequence[Any]]) -> Exception | None:
    """What encoding these records raises, if it does; those for readers outside are encoded already."""
    try:
        for (topic, _), batch in records.items():
            if topic not in PLAIN and batch:
                encode(Envelope(FORMAT, [], list(batch)))
    except MemoryError:
        raise
    except Exception as error:  # OverflowError, UnicodeEncodeError, TypeError: what an encoder may say of a value
        return error
    return None


def heartbeats(marks: Mapping[Topic, list[Mark]], partitions: int) -> list[Outgoing]:
    """An empty message to every partition of each topic."""
    return [
        Outgoing(topic, partition, None, encode(Envelope(FORMAT, heard, [])))
        for topic, heard in marks.items()
        for partition in range(partitions)
    ]
