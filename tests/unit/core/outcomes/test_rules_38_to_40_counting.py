"""Until when an outcome counts, the customer's answer, evaluations, and who may say what (RULES.md 38 to 40a)."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND, TimeRules
from schemas.outcome import OutcomeKind
from schemas.topics import Stage
from schemas.verdict import Verdict
from tests.builders import T0, contracts, outcome, trace, trace_id
from tests.oracle.model import OOutcome, OSpan
from tests.unit.core.ingest_support import pairs
from tests.unit.core.judged import arrived, judged, run
from tests.unit.core.line import CHAT, ORDER, Line, sent, turn

END = T0 + 10 * SECOND
RETENTION = TimeRules().retention
WINDOW = 48 * HOUR  # of `order`, whose longest deadline is a day
PLACED = {**ORDER, "session.id": "c"}


def order(number: int = 1, start: int = T0, conversation: str = "c", **more: Any) -> list[OSpan]:
    return trace(number, start, conversation, tool="place_order", family=("order",), **more)


def one(*events: OOutcome, watermark: int = 0, **more: Any) -> Verdict:
    (session,) = judged(order(**more), events, watermark)
    return session


def answer(event_id: str, time: int, confirmed: Any, **more: Any) -> OOutcome:
    return outcome(event_id, time, "resolution", data={"confirmed": confirmed}, **more)


# -- 38: until when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "counts"), [(0, True), (1, False)], ids=["at the horizon", "past it"])
@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("escalation", {"state": "accepted"}, "escalated"),
        ("escalation", {"state": "attempted"}, "handoff_attempted"),
        ("escalation", {"state": "failed"}, "handoff_attempted"),
        ("reopen", {}, "reopened"),
        ("resolution", {"confirmed": True}, "confirmed"),
    ],
)
def test_rule_38_up_to_the_horizon_and_no_longer(
    kind: str, data: dict[str, Any], field: str, late: int, counts: bool
) -> None:
    pipeline = run(order(), [outcome("e", END + WINDOW + late, kind, data=data)])
    (session,) = pipeline.verdicts().values()
    assert bool(getattr(session, field)) is counts
    assert pipeline.count(Stage.JUDGE, "noted", "past_horizon") == (not counts)
    assert [row["kind"] for row in pipeline.rows("outcomes", "event_id")] == [kind]  # shown in any case


def test_rule_38_the_horizon_is_that_of_the_sessions_own_contract_version() -> None:
    start = T0 + 4 * HOUR  # when the next version is in force, whose window is a day
    for late, counts in ((0, True), (1, False)):
        end = start + 10 * SECOND
        assert one(outcome("e", end + 24 * HOUR + late, "reopen"), start=start).reopened is counts


def test_rule_38_without_a_contract_it_is_the_reopen_window_of_the_settings() -> None:
    for late, counts in ((0, True), (1, False)):
        told = outcome("e", END + 72 * HOUR + late, "escalation", data={"state": "accepted"})
        (session,) = judged(trace(1, T0), [told])
        assert session.escalated is counts


SLOW = """
family: order
version: 1
reopen_window: 1h
criteria:
  - {id: settled, check: "evidence.settled == true", deadline: 24h}
"""


@pytest.mark.parametrize("late", [0, SECOND])
def test_rule_38_with_a_deadline_past_the_window_only_reopens_have_the_window(late: int) -> None:
    line = Line(book=contracts(SLOW)[0]).spans(*turn(1, T0, PLACED))
    line.outcome("r", END + HOUR + late, "reopen", session_id="c")
    line.outcome("e", END + 24 * HOUR + late, "escalation", session_id="c", data={"state": "accepted"})
    line.outcome("a", END + 24 * HOUR + late, "resolution", session_id="c", data={"confirmed": False})
    found = line.until(END + 80 * HOUR).only()
    assert (found["reopened"], found["escalated"], found["confirmed"]) == (
        (True, True, False) if not late else (False, False, None)
    )
    assert line.counted("noted", "past_horizon") == (3 if late else 0)


@pytest.mark.parametrize(("late", "counts"), [(0, True), (1, False)], ids=["at retention", "past it"])
@pytest.mark.parametrize(("kind", "field"), [("invalidate", "invalid"), ("refusal", "refused")])
def test_rule_38_refusals_and_invalidations_count_as_long_as_outcomes_are_taken(
    kind: str, field: str, late: int, counts: bool
) -> None:
    time = END + RETENTION + late
    session = one(outcome("e", time, kind), watermark=time)
    assert getattr(session, field) is counts
    assert session.eligible is not counts


def test_rule_38_the_horizon_moves_with_the_end_of_the_session() -> None:
    told = outcome("e", END + WINDOW + HOUR, "reopen", session_id="c")
    assert not one(told).reopened
    continued = order(2, END + HOUR - 10 * SECOND)
    (session,) = judged([*order(), *continued], [told])
    assert session.reopened


def test_rule_38_later_evidence_is_shown_and_counted_and_judges_nothing() -> None:
    pipeline = run(order(), [outcome("e", END + 24 * HOUR + 1, data={"settled": True})])
    (session,) = pipeline.verdicts().values()
    assert (session.completion.value, session.evidence) == ("incomplete", {"settled": (True, END + 24 * HOUR + 1)})
    assert pipeline.count(Stage.JUDGE, "noted", "past_horizon") == 1


# -- 39: the customer's answer -----------------------------------------------------------------------------------------

PAID = outcome("paid", END + MINUTE, data={"settled": True})


@pytest.mark.parametrize(
    ("answers", "confirmed"),
    [
        pytest.param([(1, "a", True)], True, id="yes"),
        pytest.param([(1, "a", False)], False, id="no"),
        pytest.param([(1, "a", False), (2, "b", True)], True, id="the latest holds"),
        pytest.param([(1, "b", False), (1, "a", True)], False, id="at one time the greater event id"),
        pytest.param([(1, "a", True), (49, "b", False)], True, id="what comes past the horizon does not"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_rule_39_the_latest_answer_within_the_horizon_holds(
    answers: list[tuple[int, str, bool]], confirmed: bool, turned: bool
) -> None:
    events = [answer(name, END + hours * HOUR, said) for hours, name, said in answers]
    (session,) = arrived(*order(), PAID, *(reversed(events) if turned else events)).verdicts().values()
    assert session.confirmed is confirmed
    assert session.resolved is confirmed
    counted = run(order(), [PAID, *events]).rates()["order", "confirmed_resolution"]
    assert counted == (int(confirmed), 1)


def test_rule_39_feedback_and_what_is_neither_yes_nor_no_are_no_answer() -> None:
    session = one(PAID, outcome("f", END + HOUR, "feedback", data={"score": 0}), answer("a", END + HOUR, "no"))
    assert (session.confirmed, session.resolved) == (None, True)
    assert ("order", "confirmed_resolution") not in run(order(), [PAID]).rates()


def test_rule_39_an_answer_that_is_withdrawn_leaves_the_one_before_it() -> None:
    no, back = answer("b", END + 2 * HOUR, False), outcome("b", END + 2 * HOUR, "retract", event_version=2)
    assert one(PAID, answer("a", END + HOUR, True), no).confirmed is False
    assert one(PAID, answer("a", END + HOUR, True), no, back).confirmed is True
    assert one(PAID, no, back).confirmed is None


def test_rule_39_a_denial_is_a_failure_since_it_was_said() -> None:
    assert one(PAID, answer("a", END + 3 * HOUR, False)).resolution_failed_at == END + 3 * HOUR


# -- 40: evaluations ---------------------------------------------------------------------------------------------------


def evaluation(name: str, score: float | None = None) -> dict[str, Any]:
    said = {"gen_ai.evaluation.name": name} | ({} if score is None else {"gen_ai.evaluation.score.value": score})
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": str(END), "attributes": pairs(said)}


def evaluated(line: Line, *events: dict[str, Any], conversation: str | None = "c") -> Line:
    """A session whose model's span carries evaluations."""
    root = {**ORDER, "session.id": conversation} if conversation else ORDER
    above = sent(1, 100, T0, END, root)
    return line.spans(above, sent(1, 101, T0, END, CHAT, 100, events=list(events)))


def scores(line: Line) -> dict[str, tuple[str, float | None]]:
    return {one["name"]: (one["state"], one.get("score")) for one in line.only()["quality"].get("evaluations", ())}


def test_rule_40_an_evaluation_on_a_span_is_an_outcome_of_its_trace_named_by_its_place() -> None:
    line = evaluated(Line(), evaluation("Tone", 0.25), evaluation("Tact", 0.5)).until(END + 3 * HOUR)
    place = f"{trace_id(1)}/{101:016x}"
    rows = {(row["event_id"], row["via"], row["kind"], row["from_agent"]) for row in line.rows("outcomes")}
    via = f"trace:{trace_id(1)}"
    assert rows == {(f"{place}/0", via, "evaluation", 1), (f"{place}/1", via, "evaluation", 1)}
    assert scores(line) == {"Tone": ("scored", 0.25), "Tact": ("scored", 0.5)}
    assert (line.waiting(), line.only()["eligible"], line.only()["resolved"]) == (0, True, False)


def test_rule_40_it_goes_where_its_trace_goes() -> None:
    line = evaluated(Line(), evaluation("Tone", 0.25), conversation=None).until(END + HOUR)
    assert line.only()["conversation"] == f"trace:{trace_id(1)}"
    line.spans(sent(1, 150, T0, END, {"session.id": "d"}, 100)).until(END + 3 * HOUR)
    assert line.only()["conversation"] == "d"
    assert scores(line) == {"Tone": ("scored", 0.25)}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([("a", 1, "scored", 0.25), ("b", 2, "scored", 0.75)], ("scored", 0.75), id="the latest"),
        pytest.param([("b", 1, "scored", 0.25), ("a", 1, "scored", 0.75)], ("scored", 0.25), id="the greater id"),
        pytest.param([("a", 1, "scored", 0.25), ("b", 2, "error", None)], ("scored", 0.25), id="an error says nothing"),
        pytest.param([("a", 1, "abstained", None), ("b", 2, "error", None)], ("error", None), id="none was scored"),
        pytest.param([("a", 1, "abstained", None)], ("abstained", None), id="an abstention is no zero"),
    ],
)
def test_rule_40_of_a_name_the_latest_that_was_scored_holds(
    told: list[tuple[str, int, str, float | None]], expected: tuple[str, float | None], turned: bool
) -> None:
    line = Line().spans(*turn(1, T0, PLACED))
    for event_id, hours, state, score in reversed(told) if turned else told:
        data = {"name": "Tone", "state": state} | ({} if score is None else {"score": score})
        line.outcome(event_id, END + hours * HOUR, "evaluation", session_id="c", data=data)
    assert scores(line.until(END + 9 * HOUR)) == {"Tone": expected}


@pytest.mark.parametrize(("late", "counts"), [(0, True), (1000, False)], ids=["at retention", "a microsecond past it"])
def test_rule_40_it_counts_as_long_as_outcomes_are_taken(late: int, counts: bool) -> None:
    line = Line().spans(*turn(1, T0, PLACED))
    line.outcome("e", END + RETENTION + late, "evaluation", session_id="c", data={"name": "Tone", "score": 1})
    assert ("Tone" in scores(line)) is counts


def test_rule_40_an_evaluation_moves_no_rate() -> None:
    told = [outcome(f"e{n}", END + HOUR, "evaluation", data={"name": "Tone", "score": n}) for n in (0, 1)]
    assert run(order(), [PAID, *told]).rates() == run(order(), [PAID]).rates()


# -- 40a: who may say it -----------------------------------------------------------------------------------------------

EVERY_KIND: dict[str, dict[str, Any]] = {
    "evidence": {"settled": True},
    "escalation": {"state": "accepted"},
    "reopen": {},
    "resolution": {"confirmed": True},
    "feedback": {"score": 1},
    "invalidate": {},
    "refusal": {},
}


def told_by(options: dict[str, Any], source: str, kind: str, data: dict[str, Any]) -> tuple[Line, dict[str, Any]]:
    line = Line(**options).spans(*turn(1, T0, PLACED))
    line.outcome("e", END + MINUTE, kind, source=source, session_id="c", data=data)
    return line, line.until(END + 60 * HOUR).only()


def judged_parts(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in found if name not in ("version", "revision", "reason", "as_of")}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_rule_40a_what_an_agents_own_source_says_is_shown_and_moves_nothing(kind: str) -> None:
    nothing = judged_parts(Line().spans(*turn(1, T0, PLACED)).until(END + 60 * HOUR).only())
    line, found = told_by({"agent_sources": frozenset({"bot"})}, "bot", kind, EVERY_KIND[kind])
    assert judged_parts(found) == nothing
    assert [(row["kind"], row["from_agent"]) for row in line.rows("outcomes")] == [(kind, 1)]
    assert line.waiting() == 0
    _, heard = told_by({"agent_sources": frozenset({"bot"})}, "crm", kind, EVERY_KIND[kind])
    assert judged_parts(heard) != nothing


def test_rule_40a_an_agents_own_evaluation_counts_as_an_evaluation() -> None:
    line, _ = told_by({"agent_sources": frozenset({"bot"})}, "bot", "evaluation", {"name": "Tone", "score": 1})
    assert scores(line) == {"Tone": ("scored", 1.0)}


@pytest.mark.parametrize(("source", "counts"), [("billing", True), ("crm", False)])
@pytest.mark.parametrize("kind", ["evidence", "evaluation"])
def test_rule_40a_a_kind_may_be_taken_from_named_sources_alone(kind: str, source: str, counts: bool) -> None:
    data = {"settled": True} if kind == "evidence" else {"name": "Tone", "score": 1}
    options = {"outcome_sources": {OutcomeKind(kind): frozenset({"billing"})}}
    line, found = told_by(options, source, kind, data)
    assert bool(found["evidence"] if kind == "evidence" else scores(line)) is counts
    assert [row["from_agent"] for row in line.rows("outcomes")] == [int(not counts)]


def test_rule_40a_other_kinds_stay_open_to_all() -> None:
    options = {"outcome_sources": {OutcomeKind.EVIDENCE: frozenset({"billing"})}}
    assert told_by(options, "crm", "reopen", {})[1]["reopened"] is True


def test_rule_40a_an_agent_cannot_withdraw_what_another_source_said() -> None:
    line = Line(agent_sources=frozenset({"bot"})).spans(*turn(1, T0, PLACED))
    line.outcome("e", END + MINUTE, "reopen", session_id="c")
    line.outcome("e", END + MINUTE, "retract", source="bot", event_version=9)
    assert line.until(END + 60 * HOUR).only()["reopened"] is True


def test_rule_40a_a_span_that_carries_a_score_of_itself_verifies_nothing() -> None:
    line = evaluated(Line(), evaluation("settled", 1.0)).until(END + 60 * HOUR)
    found = line.only()
    assert (found["completion"], found["verified"], found["evidence"]) == ("incomplete", False, {})


def test_rule_40a_of_two_traces_each_has_its_own_evaluations() -> None:
    line = evaluated(Line(), evaluation("Tone", 0.25))
    line.spans(sent(2, 200, T0 + 9 * HOUR, T0 + 9 * HOUR + SECOND, PLACED, events=[evaluation("Tact", 0.5)]))
    first, second = line.until(END + 60 * HOUR).sessions()
    assert [one["name"] for one in first["quality"]["evaluations"]] == ["Tone"]
    assert [one["name"] for one in second["quality"]["evaluations"]] == ["Tact"]


def test_rule_40_a_trace_without_work_leads_its_evaluation_to_nobody() -> None:
    line = Line().spans(sent(1, 100, T0, END, {"session.id": "c"}, events=[evaluation("Tone", 0.25)]))
    assert (line.until(END + HOUR).sessions(), line.waiting()) == ([], 1)
