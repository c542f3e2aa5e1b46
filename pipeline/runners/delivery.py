"""A partition while a worker owns it: opened, fed in order, checkpointed.

The rule this file keeps: offsets decide what was read, not the engine's delivery. What was applied is skipped, what is
missing is read directly before anything later is applied, and where nothing moves though the log goes on, the rest is
read directly too. So nothing is applied twice or left out, whatever the engine drops or repeats in a rebalance.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.errors import InputLost, InputRemade, NoProgress
from pipeline.logs import Log
from pipeline.runners.applying import Applying, Assignment
from pipeline.runners.bad_records import StepBroke
from pipeline.runners.checkpoint import Cut, Fenced
from pipeline.runners.messages import Incoming
from pipeline.runners.options import heartbeat_seconds
from pipeline.runners.partition import Partition

log = Log("runners.delivery")

WAITING = 64  # messages that wait for a partition that is being opened; the engine waits when there are more
QUIET_SECONDS = 1.0  # without records for so long, a log that is read to its end may be called idle
IN_A_ROW = 3  # what is seen so often is no accident


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as the engine hands it over, and how to acknowledge it."""

    message: Incoming
    ack: Callable[[], None]


class LivePartition(Applying):
    """One partition of a stage that this worker owns or owned just now.

    Args:
        read_gaps: `False` trusts the engine's delivery; only the test that shows its losses does.
    """

    def __init__(self, given: Assignment, read_gaps: bool = True) -> None:
        super().__init__(given)
        self._read_gaps = read_gaps
        self.log_end = 0
        self.queue: asyncio.Queue[Delivered] = asyncio.Queue(WAITING)
        self._held: list[Callable[[], None]] = []
        self._heals = self._too_short = 0
        self._fenced_at = 0.0
        self._first_heal = 0.0

    # --- feeding

    async def run(self) -> None:
        """Apply what is delivered, in order; never returns."""
        while True:
            delivered = await self.queue.get()
            await self._opened.wait()
            async with self._turn:
                await self._deliver(delivered)

    async def _deliver(self, delivered: Delivered) -> None:
        partition, message = self._the_partition, delivered.message
        self._heals = 0
        if self.fenced:  # what is applied now would be thrown away
            self._held.append(delivered.ack)
            return
        if self._read_gaps and message.offset > partition.applied + 1:
            await self._read_directly(message.offset)
            partition = self._the_partition
        if message.offset <= partition.applied:
            self._statistics.redelivered += 1
        else:
            await self._apply_or_go_back(message)
        self._held.append(delivered.ack)  # no await since it was applied: a cut has both or neither

    async def _read_directly(self, stop: int) -> None:
        """Apply [applied + 1, stop) past the engine."""
        partition = self._the_partition
        source, start, records = self.spec.source, partition.applied + 1, 0
        first = await self._broker.begin(source, self.number)
        if first > start:
            raise InputLost(source, self.number, partition.applied, first)
        async for message in self._broker.read(source, self.number, start, stop):
            records += await self._apply_or_go_back(message)
        partition = self._the_partition
        partition.applied = max(partition.applied, stop - 1)
        self._moved = self._clock()
        self._statistics.holes += 1
        self._statistics.caught_up_records += records
        log.warning(
            "input read past the engine",
            stage=self.spec.stage,
            partition=self.number,
            start=start,
            stop=stop,
            records=records,
        )

    # --- looking after

    async def look_after(self, log_end: int, applied: int) -> None:
        """Read the rest of the log directly when nothing has moved for `heal_after`; every second or so.

        Args:
            applied: what was applied when the end of the log was asked for; more may be applied by now.

        Raises:
            InputRemade: the log ends before what was applied.
            NoProgress: the engine delivers nothing, again and again.
        """
        self.log_end = log_end
        if not self.ready:
            return
        partition = self._the_partition
        self._too_short = self._too_short + 1 if log_end <= applied and not self._options.dev_broker else 0
        if self._too_short >= IN_A_ROW:  # once may be a leader that is new and does not know the end yet
            raise InputRemade(self.spec.source, self.number, applied, log_end)
        now = self._clock()
        if log_end <= partition.applied + 1 or now - self._moved < self._options.heal_after:
            return
        if now - self._moved > self._options.watchdog_after:
            raise NoProgress(self._stuck(partition, f"nothing moved for {now - self._moved:.0f} s"))
        if self._read_gaps and not self._turn.locked():
            async with self._turn:
                await self._heal(log_end)

    async def _heal(self, log_end: int) -> None:
        partition = self._the_partition
        if log_end <= partition.applied + 1:
            return
        self._first_heal = self._first_heal if self._heals else self._clock()
        self._heals += 1
        await self._read_directly(log_end)
        silent = self._clock() - self._first_heal
        if self._heals >= IN_A_ROW and silent > self._options.watchdog_after:
            raise NoProgress(self._stuck(self._the_partition, f"the engine delivered nothing for {silent:.0f} s"))

    def _stuck(self, partition: Partition, what: str) -> str:
        behind = self.log_end - partition.applied - 1
        return f"stage {self.spec.stage}, {self.spec.source}[{self.number}]: {behind} messages behind, and {what}"

    def advance(self) -> None:
        """Event time goes on without data, too."""
        if self.ready and not self.fenced:
            self._the_partition.advance(time.monotonic_ns())

    @property
    def all_applied(self) -> bool:
        """The input log is read to its end, as far as is known, and has been quiet."""
        if self.partition is None or self.log_end > self.partition.applied + 1:
            return False
        return self._clock() - self._last_records >= QUIET_SECONDS

    @property
    def may_reopen(self) -> bool:
        """It was lost to another worker so long ago that the group would have told us, were it not ours again."""
        return self.fenced and self._clock() - self._fenced_at > 2 * heartbeat_seconds(self._options)

    @property
    def holds(self) -> bool:
        """Something waits for an acknowledgement."""
        return bool(self._held)

    @property
    def commit_age(self) -> float:
        """Seconds for which something applied has waited to become durable; 0 when nothing waits."""
        return self._clock() - self._flushed if self._held or self._flushing.locked() else 0.0

    # --- checkpointing

    async def flush(self, hurry: bool = False) -> None:
        """Make what was applied durable, then acknowledge it, in order.

        Args:
            hurry: a rebalance or a stop waits: no full snapshot now.
        """
        try:
            await self._flush(hurry)
        except StepBroke:
            broken = self._the_partition
            async with self._turn:
                if self._the_partition is broken:
                    await self._go_back(broken.applied)

    async def _flush(self, hurry: bool) -> None:
        if not self.ready:
            return
        async with self._flushing:
            partition = self._the_partition
            if self.fenced:
                self._acknowledge(self._take_held())
                return
            cut, held = partition.cut(self.all_applied), self._take_held()
            if self._has_content(cut, held):
                try:
                    await self._checkpoint.write(cut, may_snapshot=not hurry)
                except Fenced as fenced:
                    # Its input is not lost: the owner's applied offset decides, so the engine may as well forget it.
                    self.fenced, self._fenced_at = True, self._clock()
                    self._statistics.fenced += 1
                    log.warning("another worker owns the partition", stage=self.spec.stage, fenced=fenced)
                    self._acknowledge(held)
                    return
            partition.sent(cut)
            self._flushed = self._clock()
            self._statistics.records.update(cut.counts)
            self._acknowledge(held)

    def _has_content(self, cut: Cut, held: list[Callable[[], None]]) -> bool:
        changed = cut.changed.states or cut.changed.gone
        return bool(held or cut.outputs or changed or self._checkpoint.is_new)

    def _take_held(self) -> list[Callable[[], None]]:
        held, self._held = self._held, []
        return held

    @staticmethod
    def _acknowledge(held: list[Callable[[], None]]) -> None:
        for ack in held:
            ack()
