"""From a handler to Kafka: what it calls, and what that answers.

The rule this file keeps: a record counts as taken only when all in-sync replicas have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from pipeline.errors import BrokerError, BrokerUnreachable

MAX_RECORD_BYTES = 900_000
DELIVERY_SECONDS = 10.0
METADATA_MS = 10_000  # a broker that is gone is asked no longer than this


class RecordTooLarge(BrokerError):
    """The broker will never take this record: trying again is of no use."""


class Produce(Protocol):
    """Send one record; the awaitable is done when it is delivered.

    Raises:
        BrokerUnreachable: not delivered, or not known to be; it may be sent again.
        RecordTooLarge: it will never be delivered.
    """

    def __call__(self, topic: str, value: bytes, key: bytes | None = None, /) -> Awaitable[None]: ...


class KafkaProduce:
    """`Produce` over aiokafka. Records without a key go over the partitions in turn, so that none stays silent."""

    def __init__(
        self, brokers: str, max_record_bytes: int = 1_048_576, delivery_seconds: float = DELIVERY_SECONDS
    ) -> None:
        self._brokers = brokers
        self._max_record_bytes = max_record_bytes
        self._delivery_seconds = delivery_seconds
        self._producer: AIOKafkaProducer | None = None
        self._turn: Counter[str] = Counter()

    async def start(self) -> None:
        """
        Raises:
            BrokerUnreachable: nobody answers at the addresses.
        """
        producer = AIOKafkaProducer(
            bootstrap_servers=self._brokers,
            acks="all",
            linger_ms=5,
            max_request_size=self._max_record_bytes,
            metadata_max_age_ms=METADATA_MS,
            request_timeout_ms=int(self._delivery_seconds * 1000),
        )
        try:
            await producer.start()
        except (KafkaError, OSError) as error:
            await producer.stop()
            raise BrokerUnreachable(f"no Kafka broker answers at {self._brokers}: {error}") from error
        self._producer = producer

    async def stop(self) -> None:
        if self._producer is not None:
            await self._producer.stop()
            self._producer = None

    async def __call__(self, topic: str, value: bytes, key: bytes | None = None, /) -> None:
        if self._producer is None:
            raise BrokerUnreachable(f"not connected to Kafka at {self._brokers}")
        try:
            partition = None
            if key is None:
                partitions = sorted(await self._producer.partitions_for(topic))
                partition = partitions[self._turn[topic] % len(partitions)]
                self._turn[topic] += 1
            await self._producer.send_and_wait(topic, value, key=key, partition=partition)
        except MessageSizeTooLargeError as error:
            raise RecordTooLarge(f"{topic}: a record of {len(value)} bytes is above what Kafka takes") from error
        except (KafkaError, OSError) as error:
            raise BrokerUnreachable(f"{topic}: Kafka did not take a record: {type(error).__name__}") from error
