"""A connection to ClickHouse, on a server or inside this process, and its errors as two kinds.

The rule this file keeps: rows are to blame only where ClickHouse says so by a code; everything else is the server's or
its set-up's fault, and then rows wait and are never dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeVar

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, DataError

from pipeline.errors import StoreUnavailable

DATABASE = "trueup"
EMBEDDED = "chdb://"
# Codes of ClickHouse that blame the rows. Every other answer blames the server or its set-up: wait, do not drop.
ROWS_ARE_BAD = frozenset(
    {
        6,  # CANNOT_PARSE_TEXT
        26,  # CANNOT_PARSE_QUOTED_STRING
        27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
        33,  # CANNOT_READ_ALL_DATA
        53,  # TYPE_MISMATCH
        69,  # ARGUMENT_OUT_OF_BOUND
        70,  # CANNOT_CONVERT_TYPE
        117,  # INCORRECT_DATA
        131,  # TOO_LARGE_STRING_SIZE
        321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
        469,  # VIOLATED_CONSTRAINT
    }
)

Answer = TypeVar("Answer")


class Connection:
    """A ClickHouse database. Opening it connects to nothing: the first call does, or the first that succeeds."""

    def __init__(self, connect: Callable[[], Client], database: str, embedded: bool) -> None:
        self._connect = connect
        self._database = database
        self._client: Client | None = None
        # The embedded engine shares one handle: one call at a time, whatever thread it comes from.
        self._lock: AbstractContextManager[Any] = threading.RLock() if embedded else nullcontext()
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(1 if embedded else 4, thread_name_prefix="clickhouse")

    @classmethod
    def open(cls, dsn: str) -> Self:
        """A store at `chdb:///absolute/path`, or on a server: `http[s]://user:password@host:port[/database]`."""
        if dsn.startswith(EMBEDDED):
            path = dsn.removeprefix(EMBEDDED)
            if not path.startswith("/"):
                raise ValueError(f"{dsn}: chdb:// needs an absolute path, such as chdb:///var/lib/trueup")
            return cls(lambda: clickhouse_connect.get_client(interface="chdb", path=path), DATABASE, embedded=True)
        scheme, found, rest = dsn.partition("://")
        if scheme not in ("http", "https", "clickhouse", "clickhouses") or not found:
            raise ValueError("the dsn must begin with chdb:///, http:// or https://")
        address, _, query = rest.partition("?")
        server, _, database = address.partition("/")
        bare = f"{scheme}://{server}?{query}"

        def connect() -> Client:
            return clickhouse_connect.get_client(
                dsn=bare,
                interface="https" if scheme in ("https", "clickhouses") else "http",
                autogenerate_session_id=False,
            )

        return cls(connect, database or DATABASE, embedded=False)

    def close(self) -> None:
        self._threads.shutdown()
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def create_database(self) -> None:
        self.call(
            lambda client: client.command(f"CREATE DATABASE IF NOT EXISTS `{self._database}`", use_database=False)
        )

    def command(
        self, statement: str, parameters: dict[str, Any] | None = None, settings: dict[str, Any] | None = None
    ) -> None:
        self.call(lambda client: client.command(statement, parameters=parameters, settings=settings), in_database=True)

    def query(self, statement: str, parameters: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows; times are milliseconds since the epoch."""
        return [tuple(row) for row in self._query(statement, parameters).result_rows]

    def records(self, statement: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows by column name; times are milliseconds since the epoch."""
        return list(self._query(statement, parameters).named_results())

    async def in_thread(self, call: Callable[[], Answer]) -> Answer:
        """Run a call of this store beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def ping(self) -> None:
        """
        Raises:
            StoreUnavailable: it does not answer, or has no database of ours.
        """
        await self.in_thread(lambda: self.query("SELECT 1"))

    def call(self, call: Callable[[Client], Answer], in_database: bool = False) -> Answer:
        """
        Raises:
            DataError: the rows are to blame.
            StoreUnavailable: anything else.
        """
        try:
            with self._lock:
                client = self._connected()
                if in_database and client.database != self._database:
                    client.database = self._database
                return call(client)
        except DataError:
            raise
        except (ClickHouseError, OSError) as error:
            code = getattr(error, "code", None)
            if code in ROWS_ARE_BAD:
                raise DataError(str(error), code=code) from error
            raise StoreUnavailable(f"ClickHouse: {_one_line(error)}") from error

    def _connected(self) -> Client:
        with self._opening:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _query(self, statement: str, parameters: dict[str, Any] | None) -> Any:
        return self.call(
            lambda client: client.query(statement, parameters=parameters, query_formats={"DateTime64": "int"}),
            in_database=True,
        )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
