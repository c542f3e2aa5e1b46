"""A topic that is not as it must be is named, with what was found and what is wanted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pipeline.runners import topics_admin
from pipeline.runners.topics_admin import problems, wanted_configs
from schemas.topics import TOPICS, Topic

DAY_MS = 86_400_000


def found(topic: Topic, partitions: int = 8, **configs: str) -> list[str]:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    return problems(topic, TOPICS[topic], 8, partitions, {**wanted_configs(TOPICS[topic]), **given})


@pytest.mark.parametrize("topic", list(Topic))
def test_a_topic_as_we_make_it_is_right(topic: Topic) -> None:
    assert found(topic) == []


@pytest.mark.parametrize(
    ("topic", "partitions", "configs", "words"),
    [
        (Topic.SPANS, 4, {}, "trueup.spans: 4 partitions, wanted 8"),
        (Topic.SPANS, 8, {"cleanup_policy": "compact"}, "cleanup.policy is compact, wanted delete"),
        (Topic.SPANS, 8, {"retention_ms": str(DAY_MS)}, f"retention.ms is {DAY_MS}, wanted {3 * DAY_MS} or more"),
        (Topic.VERDICTS, 8, {"retention_ms": str(DAY_MS)}, f"retention.ms is {DAY_MS}, wanted -1 or more"),
        (Topic.JUDGE_SNAP, 8, {"max_message_bytes": "1048588"}, "max.message.bytes is 1048588, wanted 8388608 or more"),
    ],
    ids=["partitions", "compacted batches", "short retention", "verdicts that go away", "small messages"],
)
def test_what_is_wrong_is_named(topic: Topic, partitions: int, configs: dict[str, str], words: str) -> None:
    [line] = found(topic, partitions, **configs)
    assert words in line


def test_more_than_wanted_is_right() -> None:
    assert found(Topic.SPANS, retention_ms="-1", max_message_bytes="99999999") == []


def test_the_users_topics_are_theirs() -> None:
    assert found(Topic.OTLP_SPANS, partitions=3, cleanup_policy="compact") == []


class BeingMade:
    """The admin of a broker where a topic's partitions are known only to the `after`th who asks."""

    def __init__(self, after: int) -> None:
        self.asked, self._after = 0, after

    async def describe_topics(self, topics: list[Topic]) -> list[dict[str, Any]]:
        self.asked += 1
        known = [0, 1] if self.asked >= self._after else []
        return [{"topic": str(topic), "partitions": known} for topic in topics]


def test_a_topic_that_another_process_is_making_is_waited_for() -> None:
    admin = BeingMade(after=3)

    assert asyncio.run(topics_admin._partition_counts(admin, [Topic.SPANS, Topic.ROWS])) == {
        "trueup.spans": 2,
        "trueup.rows": 2,
    }
    assert admin.asked == 3


def test_a_topic_without_partitions_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_admin, "BEING_MADE_SECONDS", 0.15)

    assert asyncio.run(topics_admin._partition_counts(BeingMade(after=1_000), [Topic.SPANS])) == {"trueup.spans": 0}
