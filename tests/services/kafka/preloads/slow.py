"""Loaded into every worker of a test: restores and seeks take seconds, as with large state; a message holds 50 records.

That is when the engine drops queued messages while two rebalances overlap. A worker takes one message at a time from
the engine, so that what comes during a restore waits in the engine's own queues, as a backlog of large messages does.
A seek ends a little before the restores that began beside it: what the engine has queued by then waits for them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from faust.transport.consumer import Consumer

from pipeline.logs import Log
from pipeline.runners import delivery, messages
from pipeline.runners.delivery import LivePartition
from tests.services.kafka.preloads import SEEKS

RESTORE_SECONDS = 3.0
SEEK_SECONDS = 2.4

messages.MAX_RECORDS = 50
delivery.WAITING = 1

_log, _restore, _seek = Log("preloads.slow"), LivePartition.open, Consumer.perform_seek


async def slow_restore(self: LivePartition) -> None:
    await asyncio.sleep(RESTORE_SECONDS)
    await _restore(self)


async def slow_seek(self: Any) -> None:
    _log.info(SEEKS)
    await _seek(self)
    await asyncio.sleep(SEEK_SECONDS)


LivePartition.open = slow_restore  # type: ignore[assignment, method-assign]
Consumer.perform_seek = slow_seek  # type: ignore[method-assign]
