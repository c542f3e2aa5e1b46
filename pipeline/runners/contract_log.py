"""`trueup.contracts`: where all workers find the contracts, in one order.

The rule this file keeps: a worker judges by what it has read back from the log, also of its own contracts, so that of
two workers that bring the same version with unequal content both come to the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from schemas.contract import ContractRecord
from schemas.topics import Topic

PARTITION = 0
_decode = msgspec.json.Decoder(ContractRecord).decode


class ContractLog:
    """The log, read from its beginning on."""

    def __init__(self, brokers: Sequence[str], dev_broker: bool) -> None:
        self._log = KafkaLog(brokers, dev_broker)
        self._next = 0

    async def start(self) -> None:
        """
        Raises:
            BrokerUnreachable: nobody answers.
        """
        await self._log.start()
        self._next = await self._log.begin(Topic.CONTRACTS, PARTITION)

    async def stop(self) -> None:
        await self._log.stop()

    async def news(self) -> list[ContractRecord]:
        """What was written since it was asked last; a record that is none of ours is passed over."""
        end = await self._log.end(Topic.CONTRACTS, PARTITION)
        found = []
        async for message in self._log.read(Topic.CONTRACTS, PARTITION, self._next, end):
            try:
                found.append(_decode(message.value or b""))
            except msgspec.MsgspecError:
                continue
        self._next = max(self._next, end)
        return found

    async def write(self, records: Sequence[ContractRecord]) -> None:
        """Returns when all are durable.

        One after the other: the embedded broker counts the end of its log by batches.
        """
        for one in records:
            value = msgspec.json.encode(one)
            await self._log.append([Outgoing(Topic.CONTRACTS, PARTITION, one.name.encode(), value)])
