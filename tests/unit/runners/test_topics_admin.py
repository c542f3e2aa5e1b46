"""A topic that is not as it must be is named, with what was found and what is wanted."""

from __future__ import annotations

import pytest

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
