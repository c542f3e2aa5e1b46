"""Topics and the broker's limits, looked at before anything starts.

The rule this file keeps: what is missing is made, what is there is only looked at, and everything wrong is named at
once, with what was found and what is wanted; the topics are the users', so nothing is changed behind their backs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from pipeline.errors import BrokerError, BrokerUnreachable, GroupRefused, TopicMismatch
from pipeline.runners.kafka_log import MAX_MESSAGE
from schemas.topics import TOPICS, Topic, TopicSpec

ALREADY_THERE = 36  # Kafka's code for a topic that exists
BEING_MADE_SECONDS = 10.0
REPLICATION = "default.replication.factor"
SMALLEST, GREATEST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
Configs = Mapping[str, str]


def wanted_configs(spec: TopicSpec) -> dict[str, str]:
    """The settings of a topic that we make."""
    if spec.users_own:
        return {}
    configs = {
        "cleanup.policy": "compact" if spec.compacted else "delete",
        "max.message.bytes": str(MAX_MESSAGE),
    }
    if spec.retention_ms is not None:
        configs["retention.ms"] = str(spec.retention_ms)
    return configs


def problems(topic: Topic, spec: TopicSpec, partitions: int, found: int, configs: Configs) -> list[str]:
    """What is wrong with a topic that is there, one line each.

    Args:
        partitions: wanted. found: there are. configs: its settings, as far as the broker tells them.
    """
    if spec.users_own:
        return []
    wrong = []
    if found != partitions:
        wrong.append(f"{topic}: {found} partitions, wanted {partitions} (setting `partitions`)")
    for name, wanted in wanted_configs(spec).items():
        value = configs.get(name)
        if value is None or value == wanted:
            continue
        if name == "cleanup.policy" or _less(int(value), int(wanted)):
            wrong.append(
                f"{topic}: {name} is {value}, wanted {wanted}" + ("" if name == "cleanup.policy" else " or more")
            )
    return wrong


def _less(value: int, wanted: int) -> bool:
    return value != -1 and (wanted == -1 or value < wanted)


@asynccontextmanager
async def _admin(brokers: Sequence[str]) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(bootstrap_servers=list(brokers), request_timeout_ms=30_000)
    try:
        await admin.start()
        yield admin
    except KafkaError as error:
        raise BrokerUnreachable(
            f"the Kafka brokers at {', '.join(brokers)} do not answer ({type(error).__name__}): start them, or name "
            "others with --brokers or TRUEUP_BROKERS"
        ) from error
    finally:
        await admin.close()


async def ensure_topics(
    brokers: Sequence[str],
    partitions: int,
    replication: int = 1,
    topics: Iterable[Topic] = tuple(TOPICS),
    dev_broker: bool = False,
) -> list[Topic]:
    """Make the topics that are missing and look at the others.

    Args:
        replication: of those that are made; -1 is the broker's default, which the client cannot leave to it.

    Returns:
        The topics that were made.

    Raises:
        TopicMismatch: with every wrong setting of every topic.
    """
    topics = list(topics)
    async with _admin(brokers) as admin:
        there = set(await admin.list_topics())
        missing = [topic for topic in topics if topic not in there]
        await _create(admin, missing, partitions, replication, dev_broker)
        old = [topic for topic in topics if topic in there]
        if old:
            counts = await _partition_counts(admin, old)
            configs = {} if dev_broker else await _configs(admin, ConfigResourceType.TOPIC, old)
            wrong = [
                line
                for topic in old
                for line in problems(topic, TOPICS[topic], partitions, counts.get(topic, 0), configs.get(topic, {}))
            ]
            if wrong:
                raise TopicMismatch(wrong)
        return missing


async def _partition_counts(admin: Any, topics: list[Topic]) -> dict[str, int]:
    """A topic that another process is just making is listed before its partitions are known: they are waited for."""
    deadline = time.monotonic() + BEING_MADE_SECONDS
    while True:
        counts = {one["topic"]: len(one["partitions"]) for one in await admin.describe_topics(topics)}
        if all(counts.get(topic, 0) for topic in topics) or time.monotonic() > deadline:
            return counts
        await asyncio.sleep(0.1)


async def _create(admin: Any, topics: list[Topic], partitions: int, replication: int, dev_broker: bool) -> None:
    if not topics:
        return
    if replication < 0:
        replication = 1 if dev_broker else int((await _broker_configs(admin)).get(REPLICATION, "1"))
    new = [
        NewTopic(str(topic), partitions, replication, topic_configs={} if dev_broker else wanted_configs(TOPICS[topic]))
        for topic in topics
    ]
    answer = await admin.create_topics(new)
    refused = [
        f"{name}: {for_code(code).__name__} {' '.join(map(str, message))}".strip()
        for name, code, *message in answer.topic_errors
        if code not in (0, ALREADY_THERE)
    ]
    if refused:
        raise BrokerError("topics could not be made: " + "; ".join(refused))


async def _configs(admin: Any, kind: Any, names: Iterable[str]) -> dict[str, dict[str, str]]:
    answers = await admin.describe_configs([ConfigResource(kind, str(name)) for name in names])
    found: dict[str, dict[str, str]] = {}
    for answer in answers:
        for code, _, _, name, entries in answer.resources:
            if code == 0:
                found[name] = {entry[0]: entry[1] for entry in entries}
    return found


async def _broker_configs(admin: Any) -> dict[str, str]:
    """The settings of one of the brokers, which all share."""
    node = str(next(iter(admin._client.cluster.brokers())).nodeId)
    return (await _configs(admin, ConfigResourceType.BROKER, [node])).get(node, {})


async def check_session_timeout(brokers: Sequence[str], seconds: float) -> None:
    """Raise `GroupRefused` when the broker would not admit a member with this session timeout.

    The engine itself only logs the refusal once, and then stays up doing nothing.
    """
    async with _admin(brokers) as admin:
        configs = await _broker_configs(admin)
    smallest, greatest = (
        float(configs.get(name, default)) / 1000 for name, default in ((SMALLEST, "0"), (GREATEST, "inf"))
    )
    if not smallest <= seconds <= greatest:
        raise GroupRefused(
            f"setting `broker_session_timeout` is {seconds:g} s, but the broker admits "
            f"{smallest:g} s to {greatest:g} s ({SMALLEST}, {GREATEST})"
        )
