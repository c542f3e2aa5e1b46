"""The contracts of a running process: one log for all workers, files that change, files that are broken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pipeline.core.contracts.book import ContractBook
from pipeline.core.timeline import TimeRules
from pipeline.errors import TrueupError
from pipeline.worker.contracts import Contracts, ContractsRefused
from schemas.contract import ContractRecord

ORDER = 'family: order\nversion: 1\ncriteria:\n  - {id: a, check: "state.a"}\n'
OTHER = ORDER.replace("state.a", "state.b")
LATER = ORDER.replace("version: 1", "version: 2\neffective_from: 2026-04-01T00:00:00Z")
BROKEN = LATER.replace("state.a", "state.a =")


class Log:
    """What all workers share."""

    def __init__(self) -> None:
        self.records: list[ContractRecord] = []


class Reader:
    """One worker's way to it."""

    def __init__(self, log: Log) -> None:
        self.log, self.read = log, 0
        self.before_writing: list[ContractRecord] = []

    async def news(self) -> list[ContractRecord]:
        found, self.read = self.log.records[self.read :], len(self.log.records)
        return found

    async def write(self, records: Sequence[ContractRecord]) -> None:
        self.log.records += [*self.before_writing, *records]


class Worker:
    """A worker with a folder of contracts."""

    def __init__(self, log: Log, **files: str) -> None:
        self.files = files
        self.book = ContractBook(())
        self.told = 0
        self.reader = Reader(log)
        self.contracts = Contracts(self.book, TimeRules(), self._folder, self.reader, self._changed)

    def _folder(self) -> list[tuple[str, str]]:
        if not self.files:
            raise TrueupError("contracts: has no contract (*.yaml)")
        return [(f"{name}.yaml", text) for name, text in sorted(self.files.items())]

    def _changed(self) -> None:
        self.told += 1

    def start(self) -> Worker:
        asyncio.run(self.contracts.start())
        return self

    def look(self, times: int = 2) -> Worker:
        for _ in range(times):
            asyncio.run(self.contracts.look())
        return self

    def names(self) -> list[str]:
        return sorted(one.name for one in self.book)


def check(worker: Worker, name: str) -> str:
    contract = worker.book.named(name)
    assert contract is not None
    return contract.criteria[0].check.source


def test_what_a_worker_brings_is_in_force_when_it_has_started() -> None:
    worker = Worker(Log(), order=ORDER, later=LATER).start()
    assert worker.names() == ["order@1", "order@2"]
    assert worker.contracts.problems == []


def test_a_worker_judges_by_what_others_brought_too() -> None:
    log = Log()
    Worker(log, order=ORDER).start()
    other = Worker(log, later=LATER).start()
    assert other.names() == ["order@1", "order@2"]
    assert [one.name for one in log.records] == ["order@1", "order@2"]


def test_a_file_that_is_added_is_in_force_after_it_stayed_the_same_for_a_look() -> None:
    log = Log()
    worker, other = Worker(log, order=ORDER).start(), Worker(log, order=ORDER).start()
    worker.told = other.told = 0
    worker.files["later"] = LATER[:40]  # it is still being written

    assert worker.look(1).names() == ["order@1"]
    worker.files["later"] = LATER
    assert worker.look(1).names() == ["order@1"]
    assert worker.contracts.problems == []
    assert worker.look(1).names() == ["order@1", "order@2"]
    assert worker.told == 1
    assert other.look(1).names() == ["order@1", "order@2"]
    assert other.told == 1
    assert (worker.look().told, other.look().told) == (1, 1), "once"


def test_a_broken_file_is_told_with_its_line_and_what_was_in_force_stays() -> None:
    worker = Worker(Log(), order=ORDER).start()
    worker.files["later"] = BROKEN
    worker.look()

    assert worker.names() == ["order@1"]
    (told,) = worker.contracts.health()["refused"]
    assert (told["file"], told["line"], told["field"]) == ("later.yaml", 5, "criteria.0.check")
    assert told["problem"]
    assert told["remedy"]
    worker.files["later"] = LATER
    worker.look()
    assert worker.contracts.health()["refused"] == []
    assert [one["contract"] for one in worker.contracts.health()["in_force"]] == ["order@1", "order@2"]


def test_a_broken_file_keeps_no_other_from_being_taken_up() -> None:
    worker = Worker(Log(), order=ORDER).start()
    worker.files |= {"later": BROKEN, "search": ORDER.replace("order", "search")}
    assert worker.look().names() == ["order@1", "search@1"]


def test_the_same_version_with_another_content_is_refused_while_running_and_the_old_stays() -> None:
    worker = Worker(Log(), order=ORDER).start()
    worker.files["order"] = OTHER
    worker.look()

    assert check(worker, "order@1") == "state.a"
    (problem,) = worker.contracts.problems
    assert (problem.file, problem.line, problem.field) == ("order.yaml", 2, "version")
    assert "a version never changes" in problem.remedy


def test_it_is_refused_across_a_restart_too() -> None:
    log = Log()
    Worker(log, order=ORDER).start()
    with pytest.raises(ContractsRefused, match=r"order\.yaml:2: version: .*another content.*number of its own"):
        Worker(log, order=OTHER).start()


def test_another_spelling_of_the_same_is_no_other_content() -> None:
    log = Log()
    Worker(log, order=ORDER).start()
    spelled = "# what an order is\nversion: 1\nfamily: order\nassume_claim: true\ncriteria: [{check: state.a, id: a}]\n"
    assert Worker(log, order=spelled).start().contracts.problems == []
    assert len(log.records) == 1


def test_of_two_workers_that_bring_one_version_the_first_in_the_log_holds_for_both() -> None:
    log = Log()
    first, second = Worker(log, search=ORDER.replace("order", "search")).start(), Worker(log, order=ORDER)
    record = ContractRecord("order@1", "other", "order.yaml", OTHER)
    second.reader.before_writing = [record]  # the first worker's arrives while the second writes its own
    with pytest.raises(ContractsRefused, match="another content"):
        second.start()
    assert check(first.look(1), "order@1") == check(second, "order@1") == "state.b"


def test_of_two_versions_with_one_moment_the_first_in_the_log_holds_for_all() -> None:
    log = Log()
    same_moment = LATER.replace("version: 2", "version: 3")
    worker = Worker(log, order=ORDER).start()
    log.records += [ContractRecord("order@2", "x", "a", LATER), ContractRecord("order@3", "y", "b", same_moment)]
    assert worker.look(1).names() == ["order@1", "order@2"]
    assert Worker(log, order=ORDER).start().names() == ["order@1", "order@2"]


def test_a_file_that_is_taken_away_takes_no_contract_away() -> None:
    worker = Worker(Log(), order=ORDER, later=LATER).start()
    del worker.files["later"]
    assert worker.look().names() == ["order@1", "order@2"]
    worker.files.clear()
    assert worker.look().names() == ["order@1", "order@2"]
    (problem,) = worker.contracts.problems
    assert "no contract" in problem.text


def test_a_contract_that_another_version_of_trueup_wrote_ends_the_start() -> None:
    log = Log()
    log.records.append(ContractRecord("order@9", "z", "new.yaml", ORDER + "colour: blue\n"))
    with pytest.raises(ContractsRefused, match="order@9, which this version does not understand"):
        Worker(log, order=ORDER).start()
