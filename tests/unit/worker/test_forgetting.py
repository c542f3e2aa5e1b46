"""An order to erase, as it is put into Kafka: to whom, in which order, and never half of it in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from pipeline.core.ingest import subject_hash
from pipeline.errors import StoreUnavailable
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from pipeline.sinks.erasing import Receipt, StoredSessions
from pipeline.worker.forgetting import Orders
from schemas.envelope import decoder
from schemas.erasing import Forget
from schemas.topics import Topic, partition_of

KEY = b"a key of sixteen"
PARTITIONS = 4


class Log:
    """Keeps what is appended while it is open."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.open = False

    async def start(self) -> None:
        self.open = True

    async def stop(self) -> None:
        self.open = False

    async def append(self, messages: Sequence[Outgoing]) -> list[int]:
        assert self.open
        self.sent += messages
        return list(range(len(messages)))

    def read(self) -> dict[int, list[Forget]]:
        """The orders, by partition of stage 4."""
        assert {one.topic for one in self.sent} == {Topic.SESSION_EVENTS}
        decode = decoder(Forget).decode
        return {one.partition: list(decode(one.value or b"").records) for one in self.sent}


class Store:
    """Knows two conversations of a subject."""

    def __init__(self, away: bool = False) -> None:
        self.away = away

    async def conversations_of(self, tenant: str, subject: str) -> list[StoredSessions]:
        self._ask()
        known = {("t", subject_hash(KEY, b"ada")): [StoredSessions("old", 3), StoredSessions("older", 1)]}
        return known.get((tenant, subject), [])

    async def sessions_of(self, tenant: str, conversation: str) -> int:
        self._ask()
        return {("t", "c"): 2}.get((tenant, conversation), 0)

    async def receipts(self, order: str) -> list[Receipt]:
        self._ask()
        return [Receipt("judge", 0, "erased:1", "sessions", len(order))]

    def _ask(self) -> None:
        if self.away:
            raise StoreUnavailable("away")


def orders(log: Log, store: Store | None = None) -> Orders:
    return Orders(lambda: cast(KafkaLog, log), store or Store(), PARTITIONS, KEY)


def test_a_conversation_goes_to_its_own_partition_with_what_the_store_knows() -> None:
    log = Log()
    name = asyncio.run(orders(log).forget_conversation("t", "c"))

    [(partition, [one])] = log.read().items()
    assert partition == partition_of(PARTITIONS, "t", "c")
    assert (one.tenant, one.conversation, one.subject, one.ordinals, one.order) == ("t", "c", "", 2, name)
    assert name.startswith("c-")
    assert len(one.salt) == 16
    assert not log.open


def test_a_subject_goes_to_every_partition_behind_the_conversations_that_the_store_knows() -> None:
    log = Log()
    name = asyncio.run(orders(log).forget_subject("t", "ada"))

    found = log.read()
    assert sorted(found) == list(range(PARTITIONS))
    assert name.startswith("s-")
    known = {one.conversation: one.ordinals for box in found.values() for one in box[:-1]}
    assert known == {"old": 3, "older": 1}
    assert {box[-1].subject for box in found.values()} == {subject_hash(KEY, b"ada")}
    assert not any(b"ada" in (one.value or b"") for one in log.sent)
    for conversation in known:
        there = found[partition_of(PARTITIONS, "t", conversation)]
        assert conversation in [one.conversation for one in there]


def test_two_orders_have_nothing_in_common_by_which_what_stays_could_be_found_again() -> None:
    log = Log()
    first, second = (asyncio.run(orders(log).forget_conversation("t", "c")) for _ in range(2))
    salts = [decoder(Forget).decode(one.value or b"").records[0].salt for one in log.sent]
    assert first != second
    assert salts[0] != salts[1]


@pytest.mark.parametrize("call", ["forget_conversation", "forget_subject"])
def test_without_the_store_nothing_is_ordered(call: str) -> None:
    log = Log()
    with pytest.raises(StoreUnavailable):
        asyncio.run(getattr(orders(log, Store(away=True)), call)("t", "c"))
    assert log.sent == []


def test_the_report_is_made_of_receipts() -> None:
    report: Any = asyncio.run(orders(Log()).report("c-1"))
    assert (report.done, report.found) == (False, {"judge": {"sessions": 3}})
