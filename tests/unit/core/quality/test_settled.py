"""Quality, causes, trials and contracts of sessions that have settled: later outcomes revise them all the same."""

from __future__ import annotations

from pipeline.core.contracts.parse import read
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules, to_text
from pipeline.runners.local_runner import CrashPoint
from pipeline.topology import Setup, contracts_changed
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import Line, sent, tool, turn
from tests.unit.core.quality.sale import END, FAMILY, SALE, book, counts, evaluated, means

SETTLED = END + 5 * DAY
PLAYED = SALE + "expected_tool_calls: [{calls: [{tool: stock}]}]\n"


def broken(text: str = PLAYED) -> Line:
    """A sale of which nothing was reported, after a tool that failed; it has settled."""
    line = Line(book=book(text))
    said = {**FAMILY, "gen_ai.conversation.id": "c1", "trueup.scenario": "x"}
    call = sent(1, 150, T0, T0 + SECOND, tool("stock"), 100, status={"code": 2})
    return line.spans(*turn(1, T0, said), call).until(SETTLED)


def test_a_late_score_reaches_a_settled_session_and_its_means() -> None:
    line = broken()
    evaluated(line, "e", "coherence", time=END + 6 * DAY - HOUR, score=4).until(SETTLED + DAY)
    found = line.only()
    assert (found["quality"]["coherence"], found["revision"]) == (4.0, 2)
    assert means(line)["coherence"] == (4.0, 1)
    assert found["failure"]["cause"] == "tool stock"
    assert found["trial"]["reliability"] == 1.0
    assert counts(line, "stage") == {"execution": 1}


def test_so_it_does_after_a_crash() -> None:
    line = broken()
    for partition in range(2):
        line.runner.crash(Stage.JUDGE, partition, CrashPoint.MARKER_SENT)
    evaluated(line, "e", "coherence", time=END + 6 * DAY - HOUR, score=4).until(SETTLED + DAY)
    assert (line.only()["quality"]["coherence"], line.only()["failure"]["cause"]) == (4.0, "tool stock")
    assert means(line)["coherence"] == (4.0, 1)


def test_rule_31_a_settled_session_keeps_the_contract_that_judged_it() -> None:
    contracts = book(PLAYED)
    line = Line(book=contracts)
    line.spans(*turn(1, T0, {**FAMILY, "gen_ai.conversation.id": "c1", "trueup.state.done": True})).until(SETTLED)
    later = (
        f'family: sale\nversion: 2\neffective_from: {to_text(T0 - HOUR)}\ncriteria:\n  - {{id: k, check: "state.k"}}\n'
    )
    contracts.add(read("later.yaml", later, TimeRules()).contract)
    for step in line.runner.steps(Stage.JUDGE).values():
        contracts_changed(Setup(contracts, TimeRules(), 2), step)
    line.until(SETTLED + MINUTE)
    assert (line.only()["contract"], line.only()["completion"], line.only()["revision"]) == ("sale@1", "complete", 1)
    evaluated(line, "e", "coherence", time=SETTLED, score=4).until(SETTLED + DAY)
    assert (line.only()["contract"], line.only()["completion"], line.only()["revision"]) == ("sale@1", "complete", 2)
