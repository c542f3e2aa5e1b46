"""Erasure orders, from this process into Kafka, and how far they are.

The rule this file keeps: an order lies on stage 4's own topic, so that it is read after whatever it is about, survives
every crash, and needs this process no longer. What the state has left already is looked up in the store before.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from pipeline.core.ingest import subject_hash
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing, envelopes
from pipeline.serve.forgetting import Report, report_of
from pipeline.sinks.erasing import Receipt, StoredSessions
from schemas.erasing import Forget
from schemas.topics import Topic, partition_of

SALT_BYTES = 16
CONVERSATION, SUBJECT = "c", "s"


class Stored(Protocol):
    """What is asked of the store."""

    async def conversations_of(self, tenant: str, subject: str) -> list[StoredSessions]: ...

    async def sessions_of(self, tenant: str, conversation: str) -> int: ...

    async def receipts(self, order: str) -> list[Receipt]: ...


class Orders:
    """`serve.forgetting.Forgets` over Kafka and the store.

    Args:
        open_log: a connection to the brokers, not started: orders are too rare to keep one.
        subject_key: what subjects are hashed by, as ingest does.
    """

    def __init__(self, open_log: Callable[[], KafkaLog], store: Stored, partitions: int, subject_key: bytes) -> None:
        self._open_log, self._store, self._partitions, self._key = open_log, store, partitions, subject_key

    async def forget_conversation(self, tenant: str, conversation: str) -> str:
        """
        Raises:
            StoreUnavailable, BrokerUnreachable: nothing was ordered.
        """
        sessions = await self._store.sessions_of(tenant, conversation)
        order, at, salt = _new(CONVERSATION)
        await self._send([Forget(tenant, conversation, "", order, at, salt, sessions)], [])
        return order

    async def forget_subject(self, tenant: str, subject: str) -> str:
        """
        Raises:
            StoreUnavailable, BrokerUnreachable: nothing, or not everything, was ordered: it is to be ordered again.
        """
        hashed = subject_hash(self._key, subject.encode("utf-8", "surrogatepass"))
        stored = await self._store.conversations_of(tenant, hashed)
        order, at, salt = _new(SUBJECT)
        known = [Forget(tenant, one.conversation, "", order, at, salt, one.sessions) for one in stored]
        await self._send(known, [Forget(tenant, "", hashed, order, at, salt)])
        return order

    async def report(self, order: str) -> Report:
        """
        Raises:
            StoreUnavailable: it cannot be told now.
        """
        return report_of(order, await self._store.receipts(order), self._partitions)

    async def _send(self, conversations: Iterable[Forget], everywhere: list[Forget]) -> None:
        """Each to its partition; `everywhere` to all of them, behind the others."""
        boxes: dict[int, list[Forget]] = {number: [] for number in range(self._partitions)} if everywhere else {}
        for one in conversations:
            boxes.setdefault(partition_of(self._partitions, one.tenant, one.conversation), []).append(one)
        messages = [
            Outgoing(Topic.SESSION_EVENTS, number, None, value)
            for number, box in boxes.items()
            for value in envelopes([*box, *everywhere], [])
        ]
        log = self._open_log()
        await log.start()
        try:
            await log.append(messages)
        finally:
            await log.stop()


def _new(kind: str) -> tuple[str, int, bytes]:
    """The name of a new order, when it is given, and its salt."""
    return f"{kind}-{secrets.token_hex(SALT_BYTES)}", time.time_ns(), secrets.token_bytes(SALT_BYTES)
