"""The verdicts as any other system would take them over: by reading their topic to its end, again and again.

The rule this file keeps: of a session the highest version holds, whatever comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pipeline.demo.verdicts import Sessions, facts_of_verdict, place_of
from pipeline.runners.kafka_log import consumer
from schemas.topics import Topic

QUIET_MS = 300
_decode = msgspec.json.Decoder().decode


class Published:
    """What was read of the topic so far.

    Args:
        brokers: where they are now.
    """

    def __init__(self, brokers: Callable[[], Sequence[str]], dev_broker: bool) -> None:
        self._brokers, self._dev_broker = brokers, dev_broker
        self._read_to: dict[int, int] = {}
        self._newest: dict[bytes, dict[str, Any]] = {}

    def sessions(self) -> Sessions:
        """All that there are now."""
        asyncio.run(self._read())
        present = [one for one in self._newest.values() if not one.get("deleted")]
        return {place_of(one): facts_of_verdict(one) for one in present}

    async def _read(self) -> None:
        reader = consumer(self._brokers(), self._dev_broker, Topic.VERDICTS)
        await reader.start()
        try:
            for place in reader.assignment():
                reader.seek(place, self._read_to.get(place.partition, 0))
            # Where the log ends, the embedded broker tells only roughly: it is read until nothing more comes.
            while found := await reader.getmany(timeout_ms=QUIET_MS):
                for place, records in found.items():
                    self._read_to[place.partition] = records[-1].offset + 1
                    for record in records:
                        self._take(record.key or b"", record.value)
        finally:
            await reader.stop()

    def _take(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._newest.pop(key, None)
            return
        verdict = _decode(value)
        if verdict["version"] >= self._newest.get(key, verdict)["version"]:
            self._newest[key] = verdict
