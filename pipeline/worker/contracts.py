"""The contracts of a running process: read when it starts, looked at again while it runs.

The rule this file keeps: a file that cannot be used is refused as a whole, told with line and remedy, and changes
nothing: what was in force stays in force. A new version is in force once it was read back from the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import ContractError, read_all
from pipeline.core.contracts.problems import Problem
from pipeline.core.contracts.registry import Registry
from pipeline.core.timeline import TimeRules, to_text
from pipeline.errors import TrueupError
from pipeline.logs import Log
from schemas.contract import ContractRecord

log = Log("contracts")
LOOK_SECONDS = 2.0

Files = Callable[[], list[tuple[str, str]]]
"""Name and text of every contract that the process is given."""


class ContractsRefused(TrueupError):
    """Contracts that the process was started with and that cannot be used."""


class SharedLog(Protocol):
    """`runners.contract_log.ContractLog`."""

    async def news(self) -> list[ContractRecord]: ...

    async def write(self, records: Sequence[ContractRecord]) -> None: ...


class Contracts:
    """Keeps `book` in step with the log, and the log with the files.

    Args:
        changed: is called when more contracts are in force, between two messages.

    Attributes:
        problems: what is wrong with files now, by whose fault they are not in force.
    """

    def __init__(
        self, book: ContractBook, rules: TimeRules, files: Files, shared: SharedLog, changed: Callable[[], None]
    ) -> None:
        self._registry, self._rules = Registry(book, rules), rules
        self._files, self._log, self._changed = files, shared, changed
        self._seen: list[tuple[str, str]] = []
        self._taken: list[tuple[str, str]] | None = None
        self.problems: list[Problem] = []

    async def start(self) -> None:
        """Read the log, and bring it what the files have that it has not.

        Raises:
            ContractsRefused: a file cannot be used; nothing has begun yet, so that it can be mended first.
        """
        await self._read_log()
        self._seen = await asyncio.to_thread(self._files)
        await self._take(self._seen)
        if self.problems:
            more = len(self.problems) - 1
            raise ContractsRefused(f"{self.problems[0]}{f' (and {more} more)' if more else ''}")

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except TrueupError as error:
                log.error("contracts could not be looked at", error)

    async def look(self) -> None:
        """One look at the log and at the files; a file that is still being written is looked at next time."""
        if await self._read_log():
            self._changed()
            self._taken = None  # what is refused may be so by what came, or no more
        try:
            files = await asyncio.to_thread(self._files)
        except TrueupError as error:
            self._tell([Problem("contracts", 0, "folder", str(error))])
            return
        if files == self._seen and files != self._taken:
            await self._take(files)
        self._seen = files

    async def _take(self, files: list[tuple[str, str]]) -> None:
        found, problems = read_all(files, self._rules)
        news, clashes = self._registry.compare(found)
        if news:
            await self._log.write(news)
            if await self._read_log():
                self._changed()
            clashes = self._registry.compare(found)[1]  # another worker may have been first
        self._tell([*problems, *clashes])
        self._taken = files

    def _tell(self, problems: list[Problem]) -> None:
        for problem in problems:
            if problem not in self.problems:
                log.warning("a contract is refused", problem=str(problem))
        self.problems = problems

    async def _read_log(self) -> bool:
        """Whether more contracts are in force now."""
        news = False
        for record in await self._log.news():
            try:
                taken = self._registry.take(record)
            except ContractError as error:
                raise ContractsRefused(
                    f"trueup.contracts holds {record.name}, which this version does not understand: {error}"
                ) from error
            if taken:
                log.info("a contract is in force", contract=record.name, file=record.file)
            news |= taken
        return news

    def health(self) -> dict[str, Any]:
        """For `/api/health`."""
        in_force = sorted(self._registry.book, key=lambda one: (one.family, one.effective_from))
        return {
            "in_force": [
                {
                    "contract": one.name,
                    "effective_from": to_text(one.effective_from) if one.effective_from else None,
                    "digest": one.digest,
                }
                for one in in_force
            ],
            "refused": [
                {"file": one.file, "line": one.line, "field": one.field, "problem": one.text, "remedy": one.remedy}
                for one in self.problems
            ],
        }
