"""A conversation that was forgotten and began anew: of a session its own revisions, and no part of either is lost."""

from __future__ import annotations

import asyncio
from typing import Any

from pipeline.core.timeline import DAY, HOUR, to_text
from pipeline.runners.local_runner import CrashPoint
from pipeline.sinks.clickhouse import Store
from schemas.topics import Stage
from tests.builders import T0
from tests.unit.core.line import ORDER, Line, turn

OF_CONVERSATION = ("verdicts", "criteria", "evaluations", "revisions", "outcomes", "agent_steps")
OF_ROWS = ("verdicts", "revisions", "outcomes", "agent_steps")
"""Those that say which life they are of; the other two belong to a version of a verdict."""
LATER = T0 + 60 * DAY


def lived(conversation: str) -> Line:
    """Two sessions, one of them revised twice, with an evaluation; long after they are forgotten another one."""
    said = {"gen_ai.conversation.id": conversation}
    line = Line().spans(*turn(1, T0, {**ORDER, **said})).spans(*turn(2, T0 + 10 * HOUR, {**ORDER, **said}))
    line.outcome("v", T0 + HOUR, "evaluation", session_id=conversation, data={"name": "accuracy", "score": 2})
    line.until(T0 + 2 * DAY)
    line.outcome("i", T0 + HOUR, "invalidate", session_id=conversation, ordinal=1).until(T0 + 3 * DAY)
    return line.until(LATER).spans(*turn(3, LATER, {**said, "trueup.task.family": "search"})).until(LATER + DAY)


def stored(store: Store, line: Line) -> None:
    for table in OF_CONVERSATION:
        rows: list[list[Any]] = [list(row) for row in line.runner.rows(table)]
        if rows:
            assert asyncio.run(store.write(table, rows, f"{line}{table}{len(rows)}")) == 0


def test_rule_48_of_a_session_its_own_revisions_are_told_and_those_of_an_earlier_life_stay(store: Store) -> None:
    line = lived("lives")
    stored(store, line)
    story = asyncio.run(store.session("default", "lives"))

    assert story is not None
    (only,) = story.sessions
    assert (only.ordinal, only.verdict["start"], only.verdict["began"]) == (1, to_text(LATER), to_text(LATER))
    assert [one["revision"] for one in only.revisions] == list(range(1, only.verdict["revision"] + 1))
    assert {one["verdict"]["family"] for one in only.revisions} == {"search"}
    assert only.evaluations == []
    assert story.outcomes == []
    assert {one["trace_id"] for one in only.spans} == {f"{3:032x}"}
    assert story.spans == []

    published = {(row["began"], row["ordinal"], row["revision"]) for row in line.rows("revisions")}
    most = max(revision for _, _, revision in published)
    of_lives = "FROM revisions FINAL WHERE conversation = 'lives'"
    assert store.query(f"SELECT count(), uniqExact(began), max(revision) {of_lives}") == [(len(published), 2, most)]


def test_rule_48_what_is_sent_again_after_a_crash_is_of_the_same_life() -> None:
    line = Line().spans(*turn(1, T0, {**ORDER, "gen_ai.conversation.id": "c"})).until(T0 + DAY)
    for stage in (Stage.RESOLVE, Stage.JUDGE):
        for number in range(2):
            line.runner.crash(stage, number, CrashPoint.OUTPUTS_SENT)
    line.until(T0 + 2 * DAY).outcome("i", T0 + HOUR, "invalidate", session_id="c").until(T0 + 3 * DAY)
    assert {row["began"] for table in OF_ROWS for row in line.rows(table)} == {T0}
    rested = line.until(T0 + 20 * DAY).outcome("j", T0 + HOUR, "refusal", session_id="c").until(T0 + 21 * DAY)
    assert {row["began"] for row in rested.rows("revisions")} == {T0}
    assert max(row["revision"] for row in rested.rows("revisions")) > 1
