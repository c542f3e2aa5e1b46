"""The way to Kafka over the embedded broker, which is a real one on the wire."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from pipeline.embedded import Broker, free_port
from pipeline.errors import BrokerUnreachable
from pipeline.gateway.broker import KafkaProduce, RecordTooLarge
from pipeline.runners.topics_admin import ensure_topics
from schemas.topics import Topic

PARTITIONS = 2


async def read(address: str, topic: str) -> list[tuple[int, bytes]]:
    """Partition and value of every record."""
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: list[tuple[int, bytes]] = []
        while len(found) < sum(ends.values()):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [(record.partition, record.value) for record in records]
        return found
    finally:
        await consumer.stop()


def test_records_go_over_the_partitions_in_turn_and_are_there_when_it_returns() -> None:
    async def whole(address: str) -> None:
        await ensure_topics([address], PARTITIONS, topics=[Topic.OTLP_SPANS, Topic.OUTCOMES], dev_broker=True)
        produce = KafkaProduce(address, max_record_bytes=100_000)
        await produce.start()
        try:
            for number in range(10):
                await produce(Topic.OTLP_SPANS.value, b"%d" % number)
                await produce(Topic.OUTCOMES.value, b"o%d" % number)
            with pytest.raises(RecordTooLarge):
                await produce(Topic.OUTCOMES.value, bytes(200_000))

            spans = await read(address, Topic.OTLP_SPANS.value)
            outcomes = await read(address, Topic.OUTCOMES.value)
        finally:
            await produce.stop()
        assert sorted(value for _, value in spans) == [b"%d" % number for number in range(10)]
        assert Counter(partition for partition, _ in spans) == {0: 5, 1: 5}
        assert Counter(partition for partition, _ in outcomes) == {0: 5, 1: 5}

    with Broker() as running:
        asyncio.run(whole(running.address))


def test_where_nobody_answers_it_does_not_start_and_takes_nothing() -> None:
    async def whole() -> None:
        produce = KafkaProduce(f"127.0.0.1:{free_port()}")
        with pytest.raises(BrokerUnreachable, match="no Kafka broker"):
            await produce.start()
        with pytest.raises(BrokerUnreachable, match="not connected"):
            await produce(Topic.OUTCOMES.value, b"x")

    asyncio.run(whole())


def test_a_broker_that_goes_away_is_unreachable_and_not_silent() -> None:
    async def whole(broker: Broker) -> None:
        await ensure_topics([broker.address], PARTITIONS, topics=[Topic.OUTCOMES], dev_broker=True)
        produce = KafkaProduce(broker.address, delivery_seconds=1.0)
        await produce.start()
        await produce(Topic.OUTCOMES.value, b"x")
        try:
            await asyncio.to_thread(broker.stop)
            with pytest.raises(BrokerUnreachable, match=Topic.OUTCOMES.value):
                await produce(Topic.OUTCOMES.value, b"y")
        finally:
            await produce.stop()

    with Broker() as running:
        asyncio.run(whole(running))
