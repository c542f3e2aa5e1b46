"""Completion, verified, and the version that judges (RULES.md 30, 31), also of a version that comes while running."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import load, read
from pipeline.core.judging.step import JudgeStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules, to_text
from pipeline.runners.local_runner import CrashPoint
from pipeline.topology import Setup, contracts_changed
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import Line, turn

END = T0 + 10 * SECOND
FAR = END + 10 * DAY

SALE = """
family: sale
version: 1
criteria:
  - {id: done, check: "state.done"}
  - {id: nice, check: "state.nice", required: false}
  - {id: paid, check: "evidence.paid == true", fails_when: "evidence.paid == false", trust: independent, deadline: 24h,
     applies: "!has(state.free)"}
  - {id: sent, check: "evidence.sent == true", trust: independent, deadline: 48h, required: false}
"""
MOMENT = T0 + HOUR


def book(*texts: str) -> ContractBook:
    return load([(f"{index}.yaml", text) for index, text in enumerate(texts)], TimeRules())


def version(number: int, since: int, check: str) -> str:
    return (
        f"family: sale\nversion: {number}\neffective_from: {to_text(since)}\n"
        f'criteria:\n  - {{id: done, check: "{check}"}}\n'
    )


def sale(line: Line, trace: int = 1, start: int = T0, **state: Any) -> Line:
    said = {"trueup.task.family": "sale", "gen_ai.conversation.id": f"c{trace}"}
    return line.spans(*turn(trace, start, said | {f"trueup.state.{name}": value for name, value in state.items()}))


def judged(watermark: int = FAR, evidence: dict[str, Any] | None = None, **state: Any) -> dict[str, Any]:
    line = sale(Line(book=book(SALE)), **state)
    for name, value in (evidence or {}).items():
        line.outcome(name, END + HOUR, session_id="c1", data={name: value})
    return line.until(watermark).only()


@pytest.mark.parametrize(
    ("state", "evidence", "watermark", "completion", "verified"),
    [
        ({"done": True}, {"paid": True, "sent": True}, FAR, "complete", True),
        ({"done": True}, {"paid": True}, FAR, "complete", False),
        ({"done": True}, {"paid": True}, END + 48 * HOUR, "complete", False),
        ({"done": True}, {"sent": True}, END + 24 * HOUR, "pending", False),
        ({"done": True}, {"sent": True}, END + 24 * HOUR + 1, "incomplete", False),
        ({"done": False}, {}, END + 31 * MINUTE, "incomplete", False),
        ({"done": False}, {"paid": True, "sent": True}, FAR, "incomplete", False),
        ({"done": True, "nice": False}, {"paid": True, "sent": True}, FAR, "complete", True),
        ({"done": True, "free": True}, {"sent": True}, FAR, "complete", True),
        ({"done": "yes"}, {"paid": True, "sent": True}, FAR, "incomplete", False),
    ],
    ids=[
        "everything holds",
        "one that is not required is not confirmed",
        "one that is not required may still come",
        "at the deadline",
        "one nanosecond later",
        "a failure goes before what is pending",
        "evidence does not heal what the agent did not do",
        "what is not required fails",
        "one does not apply and the other passed",
        "an error is a failure",
    ],
)
def test_rule_30_completion_and_verified(
    state: dict[str, Any], evidence: dict[str, Any], watermark: int, completion: str, verified: bool | None
) -> None:
    found = judged(watermark, evidence, **state)
    assert (found["completion"], found["verified"]) == (completion, verified)


def test_rule_30_where_no_independent_criterion_applies_nothing_is_verified() -> None:
    only = SALE.replace(
        "deadline: 48h, required: false}", 'deadline: 48h, required: false, applies: "!has(state.free)"}'
    )
    line = sale(Line(book=book(only)), done=True, free=True).until(FAR)
    assert (line.only()["completion"], line.only()["verified"]) == ("complete", None)
    assert line.rate("verified_completion") == (0, 0)
    assert line.rate("completion") == (1, 1)


def test_rule_30_what_the_agent_itself_sends_verifies_nothing() -> None:
    line = sale(Line(book=book(SALE), agent_sources=frozenset({"crm"})), done=True)
    for name in ("paid", "sent"):
        line.outcome(name, END + HOUR, session_id="c1", data={name: True})
    found = line.until(FAR).only()
    assert (found["completion"], found["verified"], found["evidence"]) == ("incomplete", False, {})


# -- 31: versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "contract"),
    [(MOMENT - 1_000_000, "sale@1"), (MOMENT, "sale@2"), (MOMENT + DAY, "sale@3")],
    ids=["a moment before", "at the moment", "after the third"],
)
def test_rule_31_the_version_in_force_at_the_start_judges_and_is_stored(start: int, contract: str) -> None:
    versions = book(
        version(3, MOMENT + DAY, "state.three"), SALE, version(2, MOMENT, "state.two")
    )  # in whatever order files are read
    line = sale(Line(book=versions), start=start, two=True).until(start + 10 * DAY)
    assert line.only()["contract"] == contract
    assert line.only()["completion"] == ("complete" if contract == "sale@2" else "incomplete")
    assert {row["contract_version"] for row in line.rows("verdicts")} == {contract}


def test_rule_31_before_the_first_version_nobody_judges() -> None:
    line = sale(Line(book=book(version(1, MOMENT, "state.one"))), start=MOMENT - 1_000_000, one=True).until(FAR)
    assert (line.only()["contract"], line.only()["eligible"], line.only()["family"]) == ("", False, "sale")


def test_rule_31_an_earlier_span_may_bring_another_version() -> None:
    line = Line(book=book(SALE, version(2, MOMENT, "state.two")))
    line = sale(line, start=MOMENT + SECOND, two=True).until(MOMENT + 2 * HOUR)
    assert line.only()["contract"] == "sale@2"
    line.spans(*turn(7, MOMENT - MINUTE, {"gen_ai.conversation.id": "c1"}), record_time=MOMENT + 2 * HOUR)
    assert line.until(MOMENT + 3 * HOUR).only()["contract"] == "sale@1"


# -- a version that comes while running --------------------------------------------------------------------------------


def loaded(line: Line, contracts: ContractBook, text: str) -> Line:
    """As a running worker takes a version up."""
    contracts.add(read("new.yaml", text, TimeRules()).contract)
    for stage in (Stage.RESOLVE, Stage.JUDGE):
        for step in line.runner.steps(stage).values():
            contracts_changed(Setup(contracts, TimeRules(), 2), step)
    return line


def two_sales(contracts: ContractBook, until: int = MOMENT + 3 * HOUR) -> Line:
    line = Line(book=contracts)
    sale(line, 1, MOMENT - 20 * SECOND, done=True, two=True)
    sale(line, 2, MOMENT + 20 * SECOND, done=True, two=False)
    return line.until(until)


def contracts_of(line: Line) -> dict[str, tuple[str, str]]:
    return {one["conversation"]: (one["contract"], one["completion"]) for one in line.sessions()}


def test_rule_31_a_version_that_comes_later_judges_what_began_since_it_takes_effect_and_nothing_else() -> None:
    contracts = book(SALE)
    line = two_sales(contracts)
    sent = len(line.runner.verdicts())
    loaded(line, contracts, version(2, MOMENT, "state.two")).until(MOMENT + 4 * HOUR)

    assert contracts_of(line) == {"c1": ("sale@1", "pending"), "c2": ("sale@2", "incomplete")}
    assert len(line.runner.verdicts()) == sent + 1, "the other is not judged again"
    (revision,) = line.sessions("c2")
    assert revision["revision"] == 2
    assert revision["reason"].startswith("contract sale@2: ")


def test_rule_31_when_a_version_came_makes_no_difference_in_the_end() -> None:
    later = version(2, MOMENT, "state.two")
    contracts = book(SALE)
    late = loaded(two_sales(contracts), contracts, later).until(FAR)
    early = two_sales(book(SALE, later)).until(FAR)

    def content(line: Line) -> list[dict[str, Any]]:
        of_sending = ("version", "revision", "reason", "as_of")
        return [{name: value for name, value in one.items() if name not in of_sending} for one in line.sessions()]

    assert content(late) == content(early)
    assert late.rate("completion") == early.rate("completion")


def test_rule_31_a_worker_that_dies_before_it_judged_anew_judges_anew_when_it_is_back() -> None:
    contracts = book(SALE)
    line = two_sales(contracts)
    contracts.add(read("new.yaml", version(2, MOMENT, "state.two"), TimeRules()).contract)  # while nobody ran
    for partition in range(2):
        line.runner.crash(Stage.JUDGE, partition, CrashPoint.BEFORE_OUTPUTS)
    line.until(MOMENT + 4 * HOUR)
    assert contracts_of(line) == {"c1": ("sale@1", "pending"), "c2": ("sale@2", "incomplete")}
    again = len(line.runner.verdicts())
    for partition in range(2):
        line.runner.crash(Stage.JUDGE, partition, CrashPoint.BEFORE_OUTPUTS)
    line.until(MOMENT + 5 * HOUR)
    assert {one["revision"] for one in line.sessions("c2")} == {2}, "once"
    assert len(line.runner.verdicts()) >= again


def test_rule_31_what_a_new_family_derives_is_judged_by_it_from_then_on() -> None:
    contracts = book(SALE)
    line = Line(book=contracts)
    line.spans(*turn(1, T0, {"gen_ai.conversation.id": "c1", "trueup.state.x": 1})).until(T0 + 3 * HOUR)
    assert line.only()["family_source"] == "no_contract"
    text = 'family: help\nversion: 1\napplies_when: "state.x == 1"\ncriteria:\n  - {id: a, check: "state.x == 1"}\n'
    loaded(line, contracts, text).until(T0 + 4 * HOUR)
    assert (line.only()["contract"], line.only()["completion"]) == ("help@1", "complete")
    assert line.rate("completion") == (1, 1)


def test_a_longer_horizon_moves_when_buckets_settle() -> None:
    contracts = book(SALE)
    line = Line(book=contracts)
    steps = [*line.runner.steps(Stage.RESOLVE).values()]
    before = [step.settles_after for step in steps]  # type: ignore[attr-defined]
    loaded(line, contracts, version(2, MOMENT, "state.two") + "reopen_window: 10d\n")
    after = [step.settles_after for step in steps]  # type: ignore[attr-defined]
    assert [new - old for new, old in zip(after, before, strict=True)] == [7 * DAY] * 2
    assert all(isinstance(step, JudgeStep) for step in line.runner.steps(Stage.JUDGE).values())
