"""Why a revision was made: the inputs that changed that session, and in words what they changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pipeline.core.contracts.parse import read
from pipeline.core.judging.changes import changes
from pipeline.core.timeline import DAY, HOUR, SECOND, TimeRules, to_datetime, to_text
from pipeline.topology import Setup, contracts_changed
from schemas.topics import Stage, Topic
from schemas.verdict import Completion, CriterionVerdict, Quality, Reason, Status, Verdict
from tests.builders import T0, contracts, trace_id
from tests.property.contracts import ORDER
from tests.unit.core.line import Line, sent, tool, turn

SAID = {"gen_ai.conversation.id": "c", "trueup.task.family": "order"}
CRITERION = CriterionVerdict("a", Status.PASSED, Reason.MET, True, False, 1.0)
BEFORE = Verdict("default", "c", 1, terminal=True, terminal_reason="completed", family_source="stated")


def two(after: int = 8 * HOUR) -> Line:
    """Two sessions of a conversation; the second reopens the first."""
    return Line().spans(*turn(1, T0, SAID)).spans(*turn(2, T0 + 5 * HOUR, SAID)).until(T0 + after)


def at_once(line: Line, *events: dict[str, Any]) -> Line:
    """Outcomes that come in one message."""
    told = {"source": "crm", "kind": "evidence", "event_time": to_datetime(T0 + 7 * HOUR).isoformat()}
    line.runner.feed(Topic.OUTCOMES, msgspec.json.encode([{**told, **one} for one in events]), T0 + 8 * HOUR)
    line.runner.drain()
    return line


def reasons(line: Line) -> dict[tuple[int, int], str]:
    """By ordinal and revision."""
    return {(row["ordinal"], row["revision"]): row["reason"] for row in line.rows("revisions")}


def test_each_session_names_the_outcomes_that_are_its_own() -> None:
    events = [{"event_id": f"e{n}", "session_id": "c", "ordinal": n, "data": {"settled": True}} for n in (1, 2)]
    found = reasons(at_once(two(), *events).until(T0 + 9 * HOUR))
    assert found[1, 2].startswith("outcome: evidence crm e1: settled: pending -> passed")
    assert found[2, 2].startswith("outcome: evidence crm e2: settled")


def test_who_is_judged_since_time_passed_says_so_whatever_came_for_others() -> None:
    found = reasons(Line().spans(*turn(1, T0, SAID)).spans(*turn(2, T0 + 5 * HOUR, SAID)).until(T0 + 8 * HOUR))
    assert found[1, 1].startswith("time passed: first judged: completed")


def test_a_neighbour_is_named_where_it_changed_the_session() -> None:
    line = Line().spans(*turn(1, T0, SAID)).until(T0 + 4 * HOUR)
    line.spans(*turn(2, T0 + 5 * HOUR, SAID)).until(T0 + 8 * HOUR)
    assert reasons(line)[1, 2] == f"spans of trace {trace_id(2)}: reopened"


def test_both_are_named_where_both_changed_it() -> None:
    claim = sent(1, 150, T0 + SECOND, T0 + 2 * SECOND, {**tool("x"), "trueup.task.outcome": "failed"}, 100)
    line = two().spans(claim, record_time=T0 + 8 * HOUR).until(T0 + 9 * HOUR)
    named = f"spans of trace {trace_id(1)}: "
    found = reasons(line)
    assert found[1, 2].startswith(named + "ended: completed -> claimed_failed; no longer reopened")
    assert found[2, 2] == named + "reopens #1 no more; a follow-up"


def test_a_withdrawn_or_moved_outcome_is_named_where_it_was_and_where_it_went() -> None:
    line = at_once(two(), {"event_id": "i", "kind": "invalidate", "session_id": "c", "ordinal": 1})
    moved = {"event_id": "i", "kind": "invalidate", "session_id": "c", "ordinal": 2, "event_version": 2}
    shown = {"event_id": "s", "session_id": "c", "ordinal": 2, "data": {"note": 1}}
    found = reasons(at_once(line, moved, shown).until(T0 + 9 * HOUR))
    corrected = "outcome corrected: invalidate crm i"
    assert found[1, 3].startswith(f"{corrected}: ended: invalid -> completed")
    assert corrected in found[2, 2]
    assert "outcome: evidence crm s" in found[2, 2]
    assert "evidence" not in found[1, 3]
    line.outcome("i", T0 + 7 * HOUR, "retract", event_version=3).until(T0 + 10 * HOUR)
    assert reasons(line)[2, 3].startswith("outcome withdrawn: crm i: ended: invalid -> ended")


@pytest.mark.parametrize(
    ("kind", "data", "changed"),
    [
        ("evaluation", {"name": "accuracy", "score": 2}, "accuracy evaluated: 2"),
        ("evaluation", {"name": "tone", "label": "poor"}, "tone evaluated: poor"),
        ("evaluation", {"name": "tone", "state": "error"}, "tone evaluated: error"),
        ("feedback", {"score": 1}, "feedback none -> 1"),
        ("escalation", {"state": "attempted"}, "a hand-off to a person was attempted"),
    ],
)
def test_what_an_outcome_changed_is_said(kind: str, data: dict[str, Any], changed: str) -> None:
    line = Line().spans(*turn(1, T0, SAID)).until(T0 + 5 * HOUR)
    line.outcome("o", T0 + 4 * HOUR, kind, session_id="c", data=data).until(T0 + 6 * HOUR)
    assert reasons(line)[1, 2] == f"outcome: {kind} crm o: {changed}"


def test_a_contract_that_comes_later_is_named_and_no_word_is_empty() -> None:
    book, _ = contracts("family: other\nversion: 1\ncriteria: [{id: a, check: 'state.a'}]")
    line = Line(book=book).spans(*turn(1, T0, SAID)).until(T0 + 5 * HOUR)
    book.add(read("order", ORDER + f"effective_from: {to_text(T0 - DAY)}\n", TimeRules()).contract)
    for number, step in line.runner.steps(Stage.JUDGE).items():
        contracts_changed(Setup(book, TimeRules(), 2), step)
        line.runner.turn(Stage.JUDGE, number, cut=True)
    found = reasons(line)[1, 2]
    assert found.startswith("contract order@1: completion not judged, for want of a contract -> incomplete")


OF_ONE_SENDING = ("version", "revision", "reason", "as_of", "deleted")


@pytest.mark.parametrize("name", [name for name in Verdict.__struct_fields__ if name not in OF_ONE_SENDING])
def test_there_is_no_field_of_which_nothing_is_said(name: str) -> None:
    after = msgspec.structs.replace(BEFORE, **{name: other(getattr(BEFORE, name))})
    (changed, *_) = changes(BEFORE, after)
    assert "  " not in changed
    assert changed.strip() == changed != "changed"


def other(value: Any) -> Any:
    """Another value of the kind of a field."""
    if isinstance(value, Completion):
        return Completion.COMPLETE
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {"a": (1, 2)}
    if isinstance(value, Quality):
        return msgspec.structs.replace(value, feedback=0.5)
    return (CRITERION,) if isinstance(value, tuple) else True
