"""What a verdict says of quality, causes and trials, as the store gives it back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from pipeline.core.judging.rows import verdict_rows
from pipeline.core.timeline import SECOND, to_text
from pipeline.sinks.clickhouse import Store
from pipeline.sinks.listing import Wanted
from schemas.verdict import (
    Completion,
    CriterionVerdict,
    EvaluationVerdict,
    Failure,
    Quality,
    Reason,
    Scoring,
    Stage,
    Status,
    Trial,
    Verdict,
)
from schemas.wire import Row

AT = 1_766_000_000 * SECOND
SCORED = EvaluationVerdict("coherence", Scoring.SCORED, 4.0, 0.4, source="judge", at=AT, contradictions=2)
FAILED = EvaluationVerdict("recall", Scoring.ERROR, layer="memory", source="ragas", at=AT, from_agent=True)
VERDICT = Verdict(
    "quality",
    "c",
    1,
    version=1,
    revision=1,
    start=AT,
    end=AT,
    as_of=AT,
    family="sale",
    contract="sale@1",
    terminal=True,
    terminal_reason="ended",
    completion=Completion.INCOMPLETE,
    eligible=True,
    criteria=(CriterionVerdict("old", Status.FAILED, Reason.FALSE, True, False, 1.0, failed_at=AT),),
    quality=Quality(6.5, Scoring.SCORED, 4.0, Scoring.SCORED, 2, {"tool": 0.25}, 0.8, (SCORED, FAILED)),
    failure=Failure(Stage.EXECUTION, "tool stock", "picker", AT),
    trial=Trial("ticket", "7", 2, 2, 1.0, 0.5, 1.0, 0.75, 0.625),
)


def write(store: Store, verdict: Verdict) -> None:
    rows: Iterable[Row] = verdict_rows(verdict, AT, settled=False)
    for number, row in enumerate(rows):
        token = f"{verdict.conversation} {verdict.version} {number}"
        assert asyncio.run(store.write(row.table, [row.values], token)) == 0


def session(store: Store, conversation: str) -> Any:
    story = asyncio.run(store.session("quality", conversation))
    assert story is not None
    (found,) = story.sessions
    return found


def test_it_is_read_back_as_it_was_judged(store: Store) -> None:
    write(store, VERDICT)
    found = session(store, "c")
    told = {
        "goal_achievement": 6.5, "goal_state": "scored", "coherence": 4.0, "coherence_state": "scored",
        "contradictions": 2, "feedback": 0.8, "tool": 0.25, "memory": None, "failure_stage": "execution",
        "failure_cause": "tool stock", "failure_agent": "picker", "failure_at": to_text(AT), "scenario": "ticket",
        "trial": "7", "tool_name_precision": 1.0, "tool_name_recall": 0.5, "tool_argument_precision": 1.0,
        "tool_argument_recall": 0.75, "reliability": 0.625,
    }  # fmt: skip
    assert {name: found.verdict[name] for name in told} == told
    assert [(one["evaluation"], one["state"], one["score"], one["from_agent"]) for one in found.evaluations] == [
        ("coherence", "scored", 4.0, False), ("recall", "error", None, True),
    ]  # fmt: skip
    assert found.criteria[0]["failed_at"] == to_text(AT)


def test_what_a_verdict_no_longer_has_is_not_told(store: Store) -> None:
    first = replace(VERDICT, conversation="gone")
    other = (CriterionVerdict("new", Status.PASSED, Reason.MET, True, False, 1.0, passed_at=AT),)
    second = replace(first, version=2, criteria=other, quality=Quality(evaluations=(SCORED,)), failure=None, trial=None)
    write(store, first)
    write(store, second)
    found = session(store, "gone")
    assert [one["criterion"] for one in found.criteria] == ["new"]
    assert [one["evaluation"] for one in found.evaluations] == ["coherence"]
    assert (found.verdict["failure_stage"], found.verdict["failure_at"], found.verdict["scenario"]) == ("", None, "")
    of_conversation = "WHERE tenant = 'quality' AND conversation = 'gone'"
    assert store.query(f"SELECT criterion FROM v_criteria {of_conversation}") == [("new",)]
    assert store.query(f"SELECT evaluation FROM v_evaluations {of_conversation}") == [("coherence",)]


def test_a_list_of_sessions_tells_it_too(store: Store) -> None:
    write(store, replace(VERDICT, conversation="listed", family="listed"))
    page = asyncio.run(store.sessions(Wanted(tenant="quality", family="listed"), None, 5))
    (found,) = page.sessions
    names = ("goal_achievement", "coherence", "failure_stage", "failure_cause", "scenario", "reliability")
    assert [found[name] for name in names] == [6.5, 4.0, "execution", "tool stock", "ticket", 0.625]
