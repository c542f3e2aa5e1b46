"""The last stage: rows into the store, in large inserts.

The rule this file keeps: offsets are committed only after the store has taken the rows; while it does not, the same
batch is tried again in place, so that only the offsets of this group wait. A batch may be written twice,
never not at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from pipeline.core.effects import Result
from pipeline.errors import StoreUnavailable
from pipeline.logs import Log
from pipeline.runners.group_runner import GroupRunner, Place
from pipeline.runners.messages import Incoming
from pipeline.runners.options import RunnerOptions
from schemas.envelope import FORMAT, decoder
from schemas.erasing import ERASE_ROWS, EraseRows
from schemas.rows import TABLES
from schemas.topics import Stage, Topic
from schemas.wire import DeadLetter, Row

log = Log("runners.sink")

DEAD_LETTERS = "dead_letters"
FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0  # seconds between two tries


class RowSink(Protocol):
    """`sinks.clickhouse.Store`, as the runner sees it."""

    async def write(self, table: str, rows: Sequence[Sequence[Any]], token: str) -> Any:
        """Insert rows; when it returns they are there. Raises `StoreUnavailable`."""

    async def erase(self, orders: Sequence[EraseRows]) -> None:
        """Erase conversations; when it returns it is done. Raises `StoreUnavailable`."""


class SinkRunner(GroupRunner):
    """One member of the sink group.

    Args:
        max_rows, max_seconds: a batch is written when it has so many rows of a table, or is so old.
        rested_seconds: one that comes when nothing was written for `max_seconds` is written when it is so old.
        first_wait: seconds until the second try; each later one waits twice as long, up to `LONGEST_WAIT`.
    """

    def __init__(
        self,
        sink: RowSink,
        options: RunnerOptions,
        max_rows: int = 50_000,
        max_seconds: float = 1.0,
        rested_seconds: float = 0.2,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        super().__init__(Stage.SINK, [Topic.ROWS, Topic.DEAD_LETTERS], options, max_records=200)
        self._sink, self._max_rows, self._max_seconds, self._first_wait = sink, max_rows, max_seconds, first_wait
        self._rested_seconds = rested_seconds
        self._rows: dict[str, list[Sequence[Any]]] = {}
        self._orders: list[EraseRows] = []
        self._read: dict[Place, tuple[int, int]] = {}  # first and last offset of the batch
        self._since = self._written = 0.0
        self._waits = False
        self._decode_rows = decoder(Row).decode
        self._decode_letter = msgspec.json.Decoder(DeadLetter).decode

    @property
    def pending(self) -> int:
        """Rows read and not yet in the store."""
        return sum(map(len, self._rows.values()))

    @property
    def waits(self) -> bool:
        return self._waits

    async def step(self, messages: list[Incoming]) -> None:
        if messages and not self._read:
            self._since = time.monotonic()
        for message in messages:
            self._collect(message)
        full = any(len(rows) >= self._max_rows for rows in self._rows.values())
        if self._read and (full or self._is_due(time.monotonic()) or self.interrupted.is_set()):
            await self._write()
            self._written = time.monotonic()

    def _is_due(self, now: float) -> bool:
        """A single session need not wait for others that would share its insert."""
        rested = now - self._written >= self._max_seconds
        return now - self._since >= (min(self._rested_seconds, self._max_seconds) if rested else self._max_seconds)

    def given_up(self) -> None:
        self._rows, self._orders, self._read, self._waits = {}, [], {}, False

    def _collect(self, message: Incoming) -> None:
        place = message.topic, message.partition
        first, _ = self._read.get(place, (message.offset, 0))
        self._read[place] = first, message.offset
        try:
            if message.topic == Topic.DEAD_LETTERS:
                letter = self._decode_letter(message.value or b"")
                self._add(DEAD_LETTERS, [getattr(letter, column) for column in TABLES[DEAD_LETTERS]])
                return
            envelope = self._decode_rows(message.value or b"")
        except msgspec.MsgspecError as error:
            self._bury(message, "undecodable", str(error))
            return
        if envelope.format != FORMAT:
            self._bury(message, "unknown_format", f"format {envelope.format}")
            return
        for row in envelope.records:
            if row.table in TABLES:
                self._add(row.table, row.values)
            elif row.table == ERASE_ROWS:
                self._take_order(message, row)
            else:
                self._bury(message, "unknown_table", row.table)

    def _take_order(self, message: Incoming, row: Row) -> None:
        try:
            self._orders.append(msgspec.convert(row.values, EraseRows))
        except msgspec.ValidationError as error:
            self._bury(message, "undecodable", str(error))

    def _add(self, table: str, values: Sequence[Any]) -> None:
        self._rows.setdefault(table, []).append(values)

    def _bury(self, message: Incoming, reason: str, detail: str) -> None:
        size = len(message.value or b"")
        place = message.topic, message.partition, message.offset
        letter = DeadLetter(reason, detail, *place, size, message.record_time)
        self._add(DEAD_LETTERS, [getattr(letter, column) for column in TABLES[DEAD_LETTERS]])
        self.statistics.records[Result.DEAD_LETTERED, reason] += 1

    def _token(self, table: str) -> str:
        """Names the batch by what it was read from, so that the store knows it when it comes again."""
        text = ",".join(
            f"{topic}/{number}:{first}-{last}" for (topic, number), (first, last) in sorted(self._read.items())
        )
        return f"{table}:{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    async def _write(self) -> None:
        for table in sorted(self._rows):
            rows = self._rows[table]
            if not await self._try(partial(self._sink.write, table, rows, self._token(table)), table, len(rows)):
                return
        orders = self._orders  # after the rows, which may be of what is to be erased
        if orders and not await self._try(partial(self._sink.erase, orders), ERASE_ROWS, len(orders)):
            return
        await self.commit({place: last + 1 for place, (_, last) in self._read.items()})
        self._rows, self._orders, self._read = {}, [], {}

    async def _try(self, call: Callable[[], Awaitable[Any]], table: str, rows: int) -> bool:
        """Try until it is there; `False` when a rebalance or a stop ends the trying: then nothing is committed."""
        wait = self._first_wait
        while True:
            try:
                await call()
            except StoreUnavailable as error:
                if not self._waits:
                    log.warning("the store takes no rows: trying again", table=table, rows=rows, error=error)
                self._waits = True
            else:
                if self._waits:
                    log.info("the store takes rows again", table=table)
                self._waits = False
                self.statistics.records[Result.USED, table] += rows
                return True
            if await self._interrupted_within(wait):
                self.given_up()
                return False
            wait = min(2 * wait, LONGEST_WAIT)

    async def _interrupted_within(self, seconds: float) -> bool:
        waiting = asyncio.ensure_future(self.interrupted.wait())
        done, _ = await asyncio.wait({waiting}, timeout=seconds)
        waiting.cancel()
        return bool(done)
