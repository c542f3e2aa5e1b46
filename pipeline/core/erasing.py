"""What the stages share about erasure: digests of what must not come again, receipts, and letters for what came.

The rule this file keeps: what is erased is remembered as a digest alone, and only for as long as anything of it could
still be taken: until event time is past the order by the retention, when older spans and outcomes are refused anyhow.
"""

from __future__ import annotations

import heapq
from hashlib import blake2b

import msgspec

from pipeline.core.effects import Changed, Outbox, Result
from pipeline.core.timeline import TimeRules
from schemas.rows import ERASURES
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter, Keyed, Row

ERASED = "\0erased"
"""Stands where the name of an erased conversation stood; no id holds a zero."""
REASON = "erased"
DIGEST_BYTES = 16
PREFIX = b"x"
"""Of the state keys of tombstones, in every stage."""

CONVERSATION, SUBJECT, TRACE, RESPONSE, KEY, IDENTITY = "conversation", "subject", "trace", "response", "key", "outcome"
"""What tombstones may stand for: the first part of what is digested."""


def digest_of(*parts: str | bytes) -> bytes:
    """Of some parts, so that none can forge a border: ids hold no zero."""
    texts = (part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts)
    return blake2b(b"\0".join(texts), digest_size=DIGEST_BYTES).digest()


def conversation_digest(tenant: str, conversation: str) -> bytes:
    return digest_of(CONVERSATION, tenant, conversation)


class Tombstone(msgspec.Struct, array_like=True, frozen=True):
    """Args:
    until: event time, ns. at, order, salt: of the order, where more may be found by it (see `Forget`).
    """

    until: int
    at: int = 0
    order: str = ""
    salt: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tombstone).decode


class Tombstones:
    """What is erased in one partition, by digest; empty in most, and then it costs nothing."""

    __slots__ = ("_changed", "_due", "_gone", "_held")

    def __init__(self) -> None:
        self._held: dict[bytes, Tombstone] = {}
        self._due: list[tuple[int, bytes]] = []
        self._changed: set[bytes] = set()
        self._gone: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, digest: bytes, one: Tombstone) -> None:
        """Put one up; of two the later end holds."""
        known = self._held.get(digest)
        if known is None or known.until < one.until:
            self._held[digest] = one
            heapq.heappush(self._due, (one.until, digest))
            self._changed.add(digest)
            self._gone.discard(digest)

    def find(self, *parts: str | bytes) -> Tombstone | None:
        return self._held.get(digest_of(*parts)) if self._held else None

    def expire(self, watermark: int) -> None:
        while self._due and self._due[0][0] < watermark:
            until, digest = heapq.heappop(self._due)
            known = self._held.get(digest)
            if known is not None and known.until == until:
                del self._held[digest]
                self._changed.discard(digest)
                self._gone.add(digest)

    def load(self, key: bytes, state: bytes) -> bool:
        """Take over a restored key; whether it was one of ours."""
        if key[:1] != PREFIX:
            return False
        one = _decode(state)
        self._held[key[1:]] = one
        heapq.heappush(self._due, (one.until, key[1:]))
        return True

    def with_changes(self, states: list[tuple[bytes, bytes]], gone: list[bytes]) -> Changed:
        """What else changed in the partition, and tombstones that changed since the last call."""
        states += [(PREFIX + digest, _encode(self._held[digest])) for digest in self._changed]
        gone += [PREFIX + digest for digest in self._gone]
        self._changed, self._gone = set(), set()
        return Changed(states, gone)


def erased_until(ordered_at: int, rules: TimeRules) -> int:
    """Event time from which on whatever was there at the order is refused as too old (RULES.md 48), ns."""
    return ordered_at + rules.max_clock_skew + rules.retention + rules.bucket


def receipt(order: str, stage: Stage, partition: int, alias: str, what: str, n: int) -> Row:
    """A row of `erasures`: what an order found in a place. The greatest `n` of one holds, as repeats find less."""
    return Row(ERASURES, [order, stage.value, partition, alias, what, n])


def bury(outbox: Outbox, partition: int, topic: Topic, tenant: str, what: str, n: int = 1) -> None:
    """A letter, without a name, for what came of something erased; `n` counts."""
    outbox.count(Result.DEAD_LETTERED, REASON, n)
    letter = DeadLetter(REASON, f"{what} of a conversation that was erased", topic, partition, -1, 0, 0, tenant)
    outbox.send(Topic.DEAD_LETTERS, partition, Keyed(topic.encode(), msgspec.json.encode(letter)))
