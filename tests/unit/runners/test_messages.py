"""How records become messages."""

from __future__ import annotations

import pytest

from pipeline.runners.messages import MAX_BYTES, MAX_RECORDS, envelopes, heartbeats, pack
from schemas.envelope import Mark, decoder
from schemas.topics import Topic
from schemas.wire import Keyed
from tests.unit.runners.toy import Item

MARKS = [Mark("resolve", "trueup.spans", 1, 99, False)]
ITEMS = decoder(Item)


@pytest.mark.parametrize(
    ("records", "messages"), [(0, 1), (1, 1), (MAX_RECORDS, 1), (MAX_RECORDS + 1, 2), (3 * MAX_RECORDS, 3)]
)
def test_a_batch_is_split_and_only_the_last_message_carries_the_marks(records: int, messages: int) -> None:
    sent = [Item(str(number)) for number in range(records)]
    read = [ITEMS.decode(value) for value in envelopes(sent, MARKS)]
    assert len(read) == messages
    assert [one.marks for one in read] == [[]] * (messages - 1) + [MARKS]
    assert [record for one in read for record in one.records] == sent


def test_large_records_are_split_by_size_in_order() -> None:
    sent = [Item(f"{number}-" + "x" * 100_000) for number in range(20)]
    values = envelopes(sent, MARKS)
    assert all(len(value) <= MAX_BYTES for value in values)
    read = [ITEMS.decode(value) for value in values]
    assert [record for one in read for record in one.records] == sent
    assert [bool(one.marks) for one in read] == [False] * (len(read) - 1) + [True]


def test_a_record_larger_than_the_limit_goes_alone() -> None:
    [first, second] = envelopes([Item("x" * 2 * MAX_BYTES), Item("small")], MARKS)
    assert len(ITEMS.decode(first).records) == 1
    assert ITEMS.decode(second).marks == MARKS


def test_only_topics_that_hear_of_the_watermark_get_marks() -> None:
    outbox = {(Topic.SESSION_EVENTS, 0): [Item("a")], (Topic.CORRELATIONS, 1): [Item("b")]}
    first, second = pack(outbox, {Topic.SESSION_EVENTS: MARKS})
    assert ITEMS.decode(first.value or b"").marks == MARKS
    assert ITEMS.decode(second.value or b"").marks == []
    assert (second.topic, second.partition, second.key) == (Topic.CORRELATIONS, 1, None)


def test_verdicts_are_messages_of_their_own_and_an_empty_one_is_a_tombstone() -> None:
    messages = pack({(Topic.VERDICTS, 3): [Keyed(b"k", b"v"), Keyed(b"k", b"")]}, {Topic.VERDICTS: MARKS})
    assert [(one.partition, one.key, one.value) for one in messages] == [(3, b"k", b"v"), (3, b"k", None)]


def test_a_heartbeat_reaches_every_partition() -> None:
    messages = heartbeats({Topic.SPANS: MARKS}, 4)
    assert [one.partition for one in messages] == [0, 1, 2, 3]
    assert all(ITEMS.decode(one.value or b"").marks == MARKS for one in messages)
