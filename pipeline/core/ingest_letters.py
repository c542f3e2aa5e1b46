"""Dead letters: what could not be used, where it lies and why; its content only where that was asked for."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

import msgspec

from pipeline.core.effects import Outbox, Result
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter, Keyed

SHOWN_BYTES = 8
MAX_PAYLOAD = 65_536
"""Of larger records, each of whose parts may have a letter of its own, place and offset must do."""
BAD_TENANT = "the tenant's name holds a zero character, by which parts of an id are told apart"
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Place:
    """The record that is being read; what it holds that is unusable is buried from here.

    Args:
        with_payload: the letters hold the record, too, in base64.
    """

    outbox: Outbox
    partitions: int
    topic: Topic
    partition: int
    offset: int
    record_time: int
    value: bytes
    with_payload: bool = False

    def bury(self, reason: str, detail: str, tenant: str = "", trace_id: str = "") -> None:
        letter = DeadLetter(
            reason=reason,
            detail=detail,
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            size=len(self.value),
            record_time=self.record_time,
            tenant=tenant,
            trace_id=trace_id,
            payload=b64encode(self.value).decode() if self.with_payload and len(self.value) <= MAX_PAYLOAD else "",
        )
        key = f"{self.topic}/{self.partition}".encode()
        self.outbox.send(Topic.DEAD_LETTERS, partition_of(self.partitions, key), Keyed(key, _encode(letter)))
        self.outbox.count(Result.DEAD_LETTERED, reason)


def in_words(value: bytes) -> str:
    """What a record's bytes look like, and its first ones."""
    return f"it begins with {value[:SHOWN_BYTES].hex(' ') or 'nothing'}: {_likely(value)}"


def _likely(value: bytes) -> str:
    start = value.lstrip(b"\xef\xbb\xbf \t\r\n")
    if value.startswith(GZIP):
        return "gzip; the record should be sent uncompressed, and the producer's compression used"
    if value.startswith(ZSTD):
        return "zstd; the record should be sent uncompressed, and the producer's compression used"
    if start[:1] in (b"{", b"["):
        return "JSON or text that looks like it"
    if value[:1] == b"\0" and len(value) > 4:
        return "a schema registry's prefix or a gRPC frame before the message"
    if value[:1] == b"\x0a":
        return "protobuf, cut short or of another kind"
    if value.isascii() and all(byte >= 0x20 or byte in b"\t\r\n" for byte in value[:SHOWN_BYTES]):
        return "plain text"
    return "another binary encoding, such as avro or a jaeger or zipkin span"
