"""The runners' edges on Apache Kafka: topics, a group's limits, commits over rebalances, following a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.kafka.cluster import Cluster
from pipeline.errors import BrokerUnreachable, GroupRefused, TopicMismatch
from pipeline.runners.faust_runner import FaustRunner
from pipeline.runners.follower import SnapFollower
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from pipeline.runners.options import RunnerOptions
from pipeline.runners.topics_admin import ensure_topics
from schemas.envelope import decoder
from schemas.topics import TOPICS, Stage, Topic
from tests.unit.runners.test_local_runner import LettersOnly
from tests.unit.runners.toy import Item, Spec

PARTITIONS = 3  # `LettersOnly` spreads over so many
RECORDS = 3000
PATIENCE = 40.0


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(tmp_path_factory.mktemp("kafka"), 1) as running:
        asyncio.run(ensure_topics([running.bootstrap], PARTITIONS))
        yield running.bootstrap


def options(bootstrap: str, folder: Path, **changes: Any) -> RunnerOptions:
    return RunnerOptions((bootstrap,), PARTITIONS, folder, **{"checkpoint_interval": 0.2, **changes})


@asynccontextmanager
async def connected(bootstrap: str) -> AsyncIterator[KafkaLog]:
    log = KafkaLog([bootstrap])
    await log.start()
    try:
        yield log
    finally:
        await log.stop()


async def items(log: KafkaLog) -> list[Item]:
    found: list[Item] = []
    for partition in range(PARTITIONS):
        end = await log.end(Topic.SPANS, partition)
        async for one in log.read(Topic.SPANS, partition, 0, end):
            found += decoder(Item).decode(one.value or b"").records
    return found


def test_topics_are_made_once_and_wrong_ones_are_named(bootstrap: str) -> None:
    assert asyncio.run(ensure_topics([bootstrap], PARTITIONS)) == []
    with pytest.raises(TopicMismatch) as raised:
        asyncio.run(ensure_topics([bootstrap], PARTITIONS + 1))
    ours = [topic for topic, spec in TOPICS.items() if not spec.users_own]
    assert len(raised.value.problems) == len(ours)
    assert f"trueup.spans: {PARTITIONS} partitions, wanted {PARTITIONS + 1}" in str(raised.value)


def test_no_broker_is_said_so() -> None:
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        asyncio.run(ensure_topics(["127.0.0.1:1"], PARTITIONS))


def test_a_session_timeout_that_the_broker_refuses_is_named_with_the_range(bootstrap: str, tmp_path: Path) -> None:
    async def start() -> None:
        runner = FaustRunner(Spec(), None, options(bootstrap, tmp_path, session_timeout=4.0))
        await runner.start()

    with pytest.raises(GroupRefused, match=r"broker_session_timeout` is 4 s, but the broker admits 6 s to 1800 s"):
        asyncio.run(start())


def test_ingest_loses_nothing_while_members_come_and_go_and_a_follower_shows_the_counts(
    bootstrap: str, tmp_path: Path
) -> None:
    letters = [chr(ord("a") + number % 26) for number in range(RECORDS)]

    async def run() -> None:
        async with connected(bootstrap) as log:
            stage = FaustRunner(Spec(), None, options(bootstrap, tmp_path))
            follower = SnapFollower(Spec(), None, options(bootstrap, tmp_path))
            members = [IngestRunner(LettersOnly(), options(bootstrap, tmp_path), max_records=20)]
            try:
                await asyncio.gather(members[0].start(), stage.start(), follower.start())
                for start in range(0, RECORDS, 300):
                    await log.append(
                        [
                            Outgoing(Topic.OTLP_SPANS, number % PARTITIONS, None, letter.encode())
                            for number, letter in enumerate(letters[start : start + 300])
                        ]
                    )
                    if start == 900:
                        members.append(IngestRunner(LettersOnly(), options(bootstrap, tmp_path), max_records=20))
                        await members[1].start()
                    if start == 1800:
                        assert await members.pop(0).stop()
                wanted = {letter: letters.count(letter) for letter in set(letters)}
                async with asyncio.timeout(PATIENCE):
                    while totals(follower) != wanted:
                        await asyncio.sleep(0.2)
                assert totals(stage) == wanted  # a second delivery would be more, a loss less
                assert sorted(item.key for item in await items(log)) == sorted(letters)
                all_of_it = dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)
                async with asyncio.timeout(PATIENCE):  # offsets follow with the next heartbeat
                    while await log.committed(f"trueup-{Stage.INGEST}", Topic.OTLP_SPANS) != all_of_it:
                        await asyncio.sleep(0.2)
            finally:
                ended = await asyncio.gather(stage.stop(), *(member.stop() for member in members))
                await follower.stop()
            assert all(ended)

    asyncio.run(run())


def totals(shown: FaustRunner | SnapFollower) -> dict[str, int]:
    steps: list[Any] = list(shown.steps().values())
    return {key: total for step in steps for key, total in step.totals.items()}
