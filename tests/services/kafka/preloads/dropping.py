"""Loaded into every worker of a test: after each assignment the engine drops messages, as in overlapping rebalances.

What it does by itself only within milliseconds is done here each time: the first messages of every partition reach no
stage, and the commit passes over them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.runners.engine import Engine
from pipeline.runners.messages import Incoming

DROPPED = 5

_init = Engine.__init__


def dropping(self: Engine, *arguments: Any) -> None:
    *before, on_message, on_assigned, on_revoked = arguments
    left: dict[int, int] = {}

    async def drop_some(message: Incoming, acknowledge: Callable[[], None]) -> None:
        if left.get(message.partition, 0):
            left[message.partition] -= 1
            acknowledge()
            return
        await on_message(message, acknowledge)

    def assigned(partitions: set[int]) -> None:
        left.update(dict.fromkeys(partitions, DROPPED))
        on_assigned(partitions)

    _init(self, *before, drop_some, assigned, on_revoked)  # type: ignore[call-arg]


Engine.__init__ = dropping  # type: ignore[method-assign, assignment]
