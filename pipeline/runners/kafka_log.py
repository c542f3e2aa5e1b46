"""The broker's log: own producer and own consumers, outside the engine.

The rule this file keeps: nothing is taken for sent before the broker has said so, and an error of the broker that its
client could not cure is raised, never logged away. aiokafka is untyped; its `Any` ends here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, KafkaError

from pipeline.errors import BrokerUnreachable
from pipeline.runners.messages import Incoming, Outgoing
from schemas.topics import Topic

MAX_MESSAGE = 8 << 20  # a single state may be large; the topics allow it
FETCH_BYTES = 8 << 20
REQUEST_TIMEOUT_MS = 30_000
METADATA_MS = 10_000  # so long a client may go on asking a broker that is gone; aiokafka's own is five minutes
READY_SECONDS = 30.0
DEV_FETCH_WAIT_MS = 50  # the embedded broker answers a long poll only when its time is over


def message_of(record: Any) -> Incoming:
    """A record of aiokafka."""
    return Incoming(
        record.topic, record.partition, record.offset, record.timestamp * 1_000_000, record.key, record.value
    )


def consumer(brokers: Sequence[str], dev_broker: bool, *topics: str, **settings: Any) -> AIOKafkaConsumer:
    """A consumer that commits only when told to and that reads from the beginning where nothing was committed."""
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=list(brokers),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
        metadata_max_age_ms=METADATA_MS,
        fetch_max_wait_ms=DEV_FETCH_WAIT_MS if dev_broker else 500,
        **settings,
    )


class KafkaLog:
    """`MessageLog` over a real broker."""

    def __init__(self, brokers: Sequence[str], dev_broker: bool = False) -> None:
        self.brokers, self.dev_broker = tuple(brokers), dev_broker
        self._producer: Any = None
        self._probe: Any = None

    async def start(self) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=list(self.brokers),
            acks="all",
            linger_ms=2,
            max_batch_size=1 << 20,
            max_request_size=MAX_MESSAGE,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_MS,
            enable_idempotence=not self.dev_broker,
        )
        self._probe = consumer(self.brokers, self.dev_broker)
        try:
            await self._producer.start()
            await self._probe.start()
        except KafkaConnectionError as error:
            await self.stop()
            raise BrokerUnreachable(f"no Kafka broker answers at {', '.join(self.brokers)}") from error

    async def stop(self) -> None:
        for client in (self._producer, self._probe):
            if client is not None:
                await client.stop()

    async def append(self, messages: Sequence[Outgoing]) -> list[int]:
        waiting = []
        for message in messages:
            sent = await self._producer.send(message.topic, message.value, key=message.key, partition=message.partition)
            waiting.append(sent)
        return [done.offset for done in await asyncio.gather(*waiting)]

    async def read(self, topic: str, partition: int, start: int, stop: int) -> AsyncIterator[Incoming]:
        if start >= stop:
            return
        at = TopicPartition(topic, partition)
        reader = consumer(self.brokers, self.dev_broker)
        await reader.start()
        try:
            reader.assign([at])
            reader.seek(at, start)
            # The position moves on over offsets that hold no message, such as the marks of a transaction.
            while await reader.position(at) < stop:
                for records in (await reader.getmany(at, timeout_ms=200)).values():
                    for record in records:
                        if record.offset < stop:
                            yield message_of(record)
        finally:
            await reader.stop()

    async def begin(self, topic: str, partition: int) -> int:
        at = TopicPartition(topic, partition)
        first: int = (await self._probe.beginning_offsets([at]))[at]
        return first

    async def end(self, topic: str, partition: int) -> int:
        return (await self.ends(topic, [partition]))[partition]

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The end of several partitions with one request."""
        at = [TopicPartition(topic, partition) for partition in partitions]
        found = await self._probe.end_offsets(at) if at else {}
        return {place.partition: end for place, end in found.items()}

    async def partition_counts(self, topics: Iterable[Topic]) -> dict[Topic, int]:
        """How many partitions topics have; 0 when one is not there."""
        cluster = await self._probe._client.fetch_all_metadata()
        return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """What a consumer group has committed on a topic."""
        admin = AIOKafkaAdminClient(bootstrap_servers=list(self.brokers), request_timeout_ms=REQUEST_TIMEOUT_MS)
        try:
            await admin.start()
            found = await _patiently(lambda: admin.list_consumer_group_offsets(group))
        except KafkaError as error:
            raise BrokerUnreachable(f"the offsets of group {group} cannot be read: {error!r}") from error
        finally:
            await admin.close()
        return {at.partition: place.offset for at, place in found.items() if at.topic == topic and place.offset >= 0}


async def _patiently(ask: Callable[[], Awaitable[Any]]) -> Any:
    """Ask again while the broker says that it is not ready, as a new one is until its own topics are made."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.2)
