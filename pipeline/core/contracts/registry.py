"""Which content each version of a contract has, for ever and for every worker: the first that the log holds.

```
file --read--> clashes with what holds? --> refused, with file, line and remedy; what holds stays in force
               is it known?             --> nothing to do
               else                     --> written to the log --read by every worker--> in force
```
The rule this file keeps: a function of the log. All workers read the same log in the same order, so that all come to
the same contracts; which of them judges a session is decided by its start and `effective_from` alone, never by when a
file was found.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.core.contracts.book import CompiledContract, ContractBook
from pipeline.core.contracts.parse import ContractFile, read
from pipeline.core.contracts.problems import Problem, clashes
from pipeline.core.timeline import TimeRules
from schemas.contract import ContractRecord


class Registry:
    """What the log says so far.

    Args:
        book: the contracts in force; those of the log are added to it.

    Attributes:
        refused: records of the log that came second, by name: another content of a version, or of its moment.
    """

    def __init__(self, book: ContractBook, rules: TimeRules) -> None:
        self.book, self._rules = book, rules
        self._known: dict[str, ContractRecord] = {}
        self.refused: dict[str, ContractRecord] = {}

    def take(self, record: ContractRecord) -> bool:
        """The next record of the log; whether a contract is in force now that was not.

        Raises:
            ContractError: this version of trueup does not understand it; another one wrote it.
        """
        known = self._known.get(record.name)
        if known is not None or record.name in self.refused:
            if known is not None and known.digest != record.digest:
                self.refused[record.name] = record
            return False
        contract = read(record.file, record.text, self._rules).contract
        try:
            news = self.book.add(contract)
        except ValueError:
            self.refused[record.name] = record
            return False
        self._known[record.name] = record
        return news

    def compare(self, files: Sequence[ContractFile]) -> tuple[list[ContractRecord], list[Problem]]:
        """What of the files is to be written to the log, and what is refused."""
        news: list[ContractRecord] = []
        problems: list[Problem] = []
        for one in files:
            clash = next(
                (said for other in self._beside(one) if (said := clashes(one.heading, other[0], other[1]))), None
            )
            if clash is not None:
                problems.append(clash)
            elif one.contract.name not in self._known:
                news.append(ContractRecord(one.contract.name, one.contract.digest, one.file, one.text))
        return news, problems

    def _beside(self, one: ContractFile) -> list[tuple[CompiledContract, str]]:
        """The contracts of the log that a file must not contradict, with the file that each came from."""
        found = []
        for name, record in self._known.items():
            contract = self.book.named(name)
            if contract is not None and (name != one.contract.name or record.digest != one.contract.digest):
                found.append((contract, f"{record.file}, which every worker judges by"))
        return found
