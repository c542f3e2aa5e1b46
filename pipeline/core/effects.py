"""What the steps share: what a step is to its runner, and what it wants done.

A step holds the state of one partition. It is given records in log order and the watermark; it answers with records for
other partitions, with counts, and with the keys that changed. It never sends, never waits and never asks for the time,
so that the same input gives the same output, in a worker, in a replay and in a test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

from schemas.topics import Topic


class Result(StrEnum):
    """What became of a record. used + dropped + dead_lettered + held = received."""

    RECEIVED = "received"
    USED = "used"
    DROPPED = "dropped"
    DEAD_LETTERED = "dead_lettered"
    NOTED = "noted"  # something counted beside a record's fate: a conflict, a flag, a restatement


class Changed(msgspec.Struct, frozen=True):
    """The keys of a partition that changed since the last cut: encoded state, and keys to forget."""

    states: list[tuple[bytes, bytes]]
    gone: list[bytes]


Mark = tuple[dict[tuple[Topic, int], int], Counter[tuple[str, str]]]


class KeyBroke(Exception):
    """The step raised while it published what it holds under `key`; the error itself is the cause."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.key = key


class At:
    """`with At(key): ...`: what is raised within says at which key, as `KeyBroke`."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            raise KeyBroke(self._key) from error


class Outbox:
    """What a step wants sent and counted; the runner takes it at every cut."""

    __slots__ = ("counts", "records")

    def __init__(self) -> None:
        self.records: dict[tuple[Topic, int], list[Any]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()

    def send(self, topic: Topic, partition: int, record: Any) -> None:
        """Send `record` to that partition; what is sent to one partition arrives in the order of the calls."""
        batch = self.records.get((topic, partition))
        if batch is None:
            batch = self.records[topic, partition] = []
        batch.append(record)

    def count(self, result: Result, reason: str, n: int = 1) -> None:
        self.counts[result, reason] += n

    def mark(self) -> Mark:
        """What is in the box now, to go `back` to."""
        return {key: len(batch) for key, batch in self.records.items()}, self.counts.copy()

    def since(self, mark: Mark) -> dict[tuple[Topic, int], list[Any]]:
        """What came since."""
        lengths, _ = mark
        return {key: batch[lengths.get(key, 0) :] for key, batch in self.records.items()}

    def back(self, mark: Mark) -> None:
        """Take out what came since."""
        lengths, counts = mark
        self.records = {key: self.records[key][:n] for key, n in lengths.items()}
        self.counts = counts

    def take(self) -> tuple[dict[tuple[Topic, int], list[Any]], Counter[tuple[str, str]]]:
        """All that waits, and an empty box from now on."""
        taken = self.records, self.counts
        self.records, self.counts = {}, Counter()
        return taken


class Versions:
    """The versions that a partition gives out: they grow, also over restarts and after state was forgotten.

    Source: DESIGN.md section 5: epoch (8 bits), restore count of the partition (20 bits), emission number (36 bits).
    """

    __slots__ = ("emission", "epoch", "restores")

    def __init__(self, epoch: int = 0, restores: int = 0, emission: int = 0) -> None:
        self.epoch, self.restores, self.emission = epoch, restores, emission

    def next(self) -> int:
        self.emission += 1
        return (self.epoch << 56) | (self.restores << 36) | self.emission


class PartitionStep(Protocol):
    """One partition of a keyed stage. The runner calls, in this order:

    `load` for each restored key, then `opened`; then, for each message of the input partition in log order, `apply` and
    `advance`; `publish` before every cut, then `outbox.take` and `changed`; `caught_up` once, after the last message
    that was in the log when the partition was opened.
    """

    outbox: Outbox
    versions: Versions

    def load(self, key: bytes, state: bytes) -> None:
        """Take over a restored key."""

    def opened(self, watermark: int) -> None:
        """All keys are loaded. Until `caught_up`, a dead worker may have read the input: emit what it touches again."""

    def apply(self, records: Sequence[Any]) -> None:
        """Records of one message."""

    def advance(self, watermark: int) -> None:
        """Event time has come to `watermark` (ns; never lower than before). Also called without new data."""

    def caught_up(self) -> None:
        """All that was in the log when the partition was opened has been applied."""

    def publish(self) -> None:
        """Bring what is emitted up to date with the state; several changes of a key since the last call become one.

        Raises:
            KeyBroke: something went wrong at this key alone. A step that raises it has a set `aside`: keys that it
                leaves as they were last published.
        """

    def changed(self) -> Changed:
        """The keys that changed since the last call."""

    def passes_on(self, watermark: int) -> int:
        """The watermark for the next stages: `watermark`, or the start of the oldest thing held back."""


@runtime_checkable
class FollowedStep(PartitionStep, Protocol):
    """A step of which others keep read-only copies, as its state changes.

    A copy is given `load` again for a key that it has: the newer state replaces the older.
    """

    def unload(self, key: bytes) -> None:
        """Whoever owns the partition has forgotten the key."""


def merge_counts(into: Counter[tuple[str, str]], counts: Iterable[tuple[tuple[str, str], int]]) -> None:
    for key, n in counts:
        into[key] += n
