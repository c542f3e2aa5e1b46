"""ClickHouse, on a server or inside this process: rows in, the numbers and stories of the read API out.

The rule this file keeps: a second write of a batch changes nothing. The row with the highest version of a key holds,
whoever wrote it how often; the deduplication token only saves work. Every read is right before any merge.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DataError

from pipeline.errors import StoreUnavailable
from pipeline.logs import Log
from pipeline.sinks.columns import BadValue, Convert, converter
from pipeline.sinks.connection import Connection
from pipeline.sinks.conversation import Conversation, read_conversation
from pipeline.sinks.erasing import (
    ErasedConversations,
    Receipt,
    StoredSessions,
    conversations_of,
    erase,
    receipts,
    sessions_of,
)
from pipeline.sinks.listing import Page, Place, Wanted, read_page
from pipeline.sinks.restatements import Restatement, read_restatements
from schemas.erasing import EraseRows
from schemas.rows import TABLES
from schemas.topics import Topic

log = Log("sinks.clickhouse")

DEAD_LETTERS = "dead_letters"
INSERT = {"async_insert": 0, "wait_end_of_query": 1}

RateCount = tuple[dict[str, str], str, int, int]


class Store(Connection):
    """A ClickHouse of ours. Opening it connects to nothing: the first call does."""

    def __init__(self, connect: Callable[[], Client], database: str, embedded: bool) -> None:
        super().__init__(connect, database, embedded)
        self._types: dict[str, list[str]] = {}
        self._erased = ErasedConversations(self)

    def warm_up(self) -> None:
        """Does once what else the first batch and the first question would wait for; what it writes goes nowhere.

        Raises:
            StoreUnavailable: the store is away.
        """
        for table in TABLES:
            self._types_of(table)
        name = f"warm_up_{secrets.token_hex(8)}"
        self.command(f"CREATE TABLE {name} (x UInt8) ENGINE = Null")
        try:
            self.call(
                lambda client: client.insert(name, [[0]], column_names=["x"], column_type_names=["UInt8"]),
                in_database=True,
            )
        finally:
            self.command(f"DROP TABLE {name}")
        read_conversation(self, "", "")

    async def write(self, table: str, rows: Sequence[Sequence[Any]], token: str) -> int:
        """Insert rows of `schemas.rows.TABLES[table]`; when it returns they are there.

        A row that the table cannot hold is found by halving the batch, and lies in `dead_letters` instead. A row of a
        conversation that is erased is left out.

        Args:
            token: names the batch, the same whenever the same batch is sent again (made of Kafka offsets).

        Returns:
            How many rows were refused.

        Raises:
            StoreUnavailable: write the same batch again later.
        """
        return await self.in_thread(lambda: self._write(table, rows, token))

    async def erase(self, orders: Sequence[EraseRows]) -> None:
        """Erase conversations, now and for what may still come; when it returns it is done.

        Raises:
            StoreUnavailable: do it again later.
        """
        await self.in_thread(lambda: self._erase(orders))

    async def receipts(self, order: str) -> list[Receipt]:
        """What an erasure order has found so far, in every place."""
        return await self.in_thread(lambda: receipts(self, order))

    async def conversations_of(self, tenant: str, subject: str) -> list[StoredSessions]:
        """Conversations that served a subject."""
        return await self.in_thread(lambda: conversations_of(self, tenant, subject))

    async def sessions_of(self, tenant: str, conversation: str) -> int:
        """How many sessions of a conversation there are."""
        return await self.in_thread(lambda: sessions_of(self, tenant, conversation))

    async def rates(self, cube: str, window_start_ns: int, window_end_ns: int) -> list[RateCount]:
        """Dimensions, rate, numerator and denominator over the buckets that begin in [start, end)."""
        statement = (
            "SELECT dimensions, rate, sum(numerator), sum(denominator) FROM v_rates WHERE cube = {cube:String} "
            "AND bucket >= fromUnixTimestamp64Milli({start:Int64}, 'UTC') "
            "AND bucket < fromUnixTimestamp64Milli({end:Int64}, 'UTC') "
            "GROUP BY dimensions, rate ORDER BY toString(dimensions), rate"
        )
        bounds = {"cube": cube, "start": _up(window_start_ns), "end": _up(window_end_ns)}
        found = await self.in_thread(lambda: self.query(statement, bounds))
        return [(dict(dimensions), rate, int(k), int(n)) for dimensions, rate, k, n in found]

    async def session(self, tenant: str, conversation: str) -> Conversation | None:
        """All sessions of a conversation with what they rest on; None where there are none."""
        return await self.in_thread(lambda: read_conversation(self, tenant, conversation))

    async def sessions(self, wanted: Wanted, after: Place | None, limit: int) -> Page:
        """A page of the sessions that are wanted."""
        return await self.in_thread(lambda: read_page(self, wanted, after, limit))

    async def restatements(self, cube: str, rate: str | None, since: int, limit: int) -> tuple[int, list[Restatement]]:
        """How many buckets since then no longer count what was first published, and the newest of them."""
        return await self.in_thread(lambda: read_restatements(self, cube, rate, since, limit))

    def _erase(self, orders: Sequence[EraseRows]) -> None:
        erase(self, orders)
        for one in orders:
            self._erased.add(one)

    def _write(self, table: str, rows: Sequence[Sequence[Any]], token: str) -> int:
        rows = self._erased.without(table, rows)
        good: list[list[Any]] = []
        refused: list[tuple[int, str]] = []
        converters = [converter(column_type) for column_type in self._types_of(table)]
        positions: list[int] = []
        for position, row in enumerate(rows):
            try:
                good.append(_converted(TABLES[table], converters, row))
                positions.append(position)
            except BadValue as error:
                refused.append((position, str(error)))
        self._insert(table, good, positions, token, refused)
        if refused:
            self._bury(table, refused, token)
        return len(refused)

    def _insert(
        self, table: str, rows: list[list[Any]], positions: list[int], token: str, refused: list[tuple[int, str]]
    ) -> None:
        if not rows:
            return
        # The content is part of the token: offsets begin anew when a topic is made anew, and a token that was seen
        # before would make the server drop the rows without a word.
        digest = hashlib.blake2b(msgspec.msgpack.encode(rows), digest_size=16).hexdigest()
        settings = INSERT | {"insert_deduplication_token": f"{token}:{digest}"}
        types = self._types_of(table)
        try:
            self.call(
                lambda client: client.insert(
                    table, rows, column_names=TABLES[table], column_type_names=types, settings=settings
                ),
                in_database=True,
            )
        except DataError as error:
            if len(rows) == 1:
                refused.append((positions[0], f"refused by ClickHouse, code {error.code or 'none'}"))
                return
            half = len(rows) // 2
            self._insert(table, rows[:half], positions[:half], token, refused)
            self._insert(table, rows[half:], positions[half:], token, refused)

    def _bury(self, table: str, refused: list[tuple[int, str]], token: str) -> None:
        now = time.time_ns()
        letters = [
            ["bad_row", f"{table}, row {position} of {token}: {why}", Topic.ROWS.value, 0, -1, 0, now, "", "", ""]
            for position, why in sorted(refused)
        ]
        log.error("rows refused", table=table, rows=len(refused), first=letters[0][1])
        converters = [converter(column_type) for column_type in self._types_of(DEAD_LETTERS)]
        rows = [_converted(TABLES[DEAD_LETTERS], converters, letter) for letter in letters]
        self._insert(DEAD_LETTERS, rows, list(range(len(rows))), token, [])

    def _types_of(self, table: str) -> list[str]:
        known = self._types.get(table)
        if known is None:
            found = self.query(
                "SELECT name, type FROM system.columns WHERE database = {database:String} AND table = {table:String}",
                {"database": self._database, "table": table},
            )
            types: Mapping[str, str] = dict(found)
            missing = [column for column in TABLES[table] if column not in types]
            if missing:
                raise StoreUnavailable(f"table {table} lacks {', '.join(missing)}; run: trueup migrate")
            known = self._types[table] = [types[column] for column in TABLES[table]]
        return known


def _converted(columns: Sequence[str], converters: Sequence[Convert], row: Sequence[Any]) -> list[Any]:
    if len(row) != len(columns):
        raise BadValue(f"{len(row)} values for {len(columns)} columns")
    done = []
    for column, convert, value in zip(columns, converters, row, strict=True):
        try:
            done.append(convert(value))
        except BadValue as error:
            raise BadValue(f"{column}: {error}") from error
    return done


def _up(ns: int) -> int:
    """To whole milliseconds, as a bound: what begins before it still begins before it."""
    return -(-ns // 1_000_000)
