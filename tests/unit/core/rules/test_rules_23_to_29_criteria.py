"""What criteria read and come to (RULES.md 23 to 29), at each limit and one nanosecond beyond."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from tests.builders import T0
from tests.unit.core.ingest_support import pairs
from tests.unit.core.line import CHAT, Line, sent, tool, turn

END = T0 + 10 * SECOND
FAR = END + 10 * DAY
LATE = END + 6 * HOUR


def contract(check: str, more: str = "", rest: str = "") -> str:
    return f'family: ask\nversion: 1\ncriteria:\n  - {{id: k, check: "{check}"{more and ", " + more}}}\n{rest}'


def line_of(check: str, more: str = "", rest: str = "", **options: Any) -> Line:
    return Line(book=load([("c.yaml", contract(check, more, rest))], TimeRules()), **options)


def asked(line: Line, **state: Any) -> Line:
    """A session of ten seconds that reports this state."""
    said = {"trueup.task.family": "ask", "gen_ai.conversation.id": "c"}
    return line.spans(*turn(1, T0, said | {f"trueup.state.{name}": value for name, value in state.items()}))


def told(line: Line, event_id: str, time: int, **data: Any) -> Line:
    return line.outcome(event_id, time, session_id="c", data=data)


def criterion(line: Line, watermark: int = FAR, name: str = "k") -> dict[str, Any]:
    found = line.until(watermark).only()
    return next(one for one in found["criteria"] if one["id"] == name)


def verdict_of(line: Line, watermark: int = FAR) -> tuple[str, str]:
    found = criterion(line, watermark)
    return found["status"], found["reason"]


# -- 23, 24: variables -------------------------------------------------------------------------------------------------

FAILED = {"code": 2}
WORK = [
    sent(1, 100, T0, END, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper",
                           "trueup.task.family": "ask", "gen_ai.conversation.id": "c"}),
    sent(1, 101, T0, T0 + SECOND, tool("wrap") | {"gen_ai.tool.call.id": "1"}, 100, status=FAILED),
    sent(1, 102, T0 + SECOND, T0 + 2 * SECOND, tool("wrap") | {"gen_ai.tool.call.id": "1"}, 100),
    sent(1, 103, T0 + 2 * SECOND, T0 + 3 * SECOND, tool("wrap") | {"gen_ai.tool.call.id": "2"}, 100, status=FAILED),
    sent(1, 104, T0 + 3 * SECOND, END, CHAT | {"gen_ai.response.model": "big", "gen_ai.request.model": "auto"}, 100),
]  # fmt: skip


@pytest.mark.parametrize(
    "check",
    [
        "tools['wrap'].calls == 2 && tools['wrap'].ok == 1 && tools['wrap'].failed == 1",
        "tools['never'].calls == 0 && tools['never'].ok == 0 && tools['never'].failed == 0",
        "session.agents == ['helper'] && session.tools == ['wrap'] && session.models == ['big']",
        "session.turns == 1 && session.runs == 1 && session.handoffs == 0 && session.retries == 1",
        "session.errors == 2",
        "session.guardrails.checks == 0 && session.guardrails.tripped == 0",
        "session.duration_s == 10.0",
        "session.claimed",
        "resource['deployment.environment.name'] == 'live' && !has(resource.nothing)",
    ],
)
def test_rule_23_variables_are_what_the_spans_say(check: str) -> None:
    line = line_of(check).spans(*WORK, resource={"deployment.environment.name": "live"})
    assert verdict_of(line) == ("passed", "met")


def test_rule_23_a_resource_attribute_is_that_of_the_earliest_span_and_any_resource_makes_invalid() -> None:
    rest = "invalid_when: \"resource['trueup.test'] == 'yes'\"\n"
    line = line_of("resource['trueup.test'] == 'no'", rest=rest)
    for start, value, trace in ((T0 + MINUTE, "yes", 2), (T0, "no", 1)):
        said = {"trueup.task.family": "ask", "gen_ai.conversation.id": "c"}
        line.spans(*turn(trace, start, said), resource={"trueup.test": value})
    found = line.until(FAR).only()
    assert found["criteria"][0]["status"] == "passed"
    assert found["invalid"]


@pytest.mark.parametrize(
    ("spans", "value"),
    [
        ([(T0, END, "a"), (T0, END - 1, "b")], "a"),
        ([(T0, END, "a"), (T0 + 1, END, "b")], "b"),
        ([(T0, END, "a"), (T0, END, "b")], "b"),
        ([(T0, END, "a"), (T0 + 1, END + 1, None)], "a"),
    ],
    ids=["ended last", "then started last", "then the greater id", "null says nothing"],
)
def test_rule_24_state_is_what_the_span_that_ended_last_says(spans: list[tuple[int, int, Any]], value: str) -> None:
    line = line_of(f"state.x == '{value}'")
    asked(line)
    more = [
        sent(1, 190 + index, start, end, CHAT | {"trueup.state.x": said}, 100)
        for index, (start, end, said) in enumerate(spans)
    ]
    line.spans(*reversed(more))
    assert verdict_of(line) == ("passed", "met")


# -- 25: unknown -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "state", "found"),
    [
        ("state.x == 1", {}, ("failed", "not_reported")),
        ("state.x == 1", {"x": 2}, ("failed", "false")),
        ("state.x == 1 || state.y == 2", {"y": 2}, ("passed", "met")),
        ("state.x == 1 && state.y == 2", {"y": 3}, ("failed", "false")),
        ("state.x == 1 || state.y == 2", {"y": 3}, ("failed", "not_reported")),
        ("!has(state.x)", {}, ("passed", "met")),
        ("resource['x'] == 1", {}, ("failed", "unverified")),
        ("state.x > 'a'", {"x": 1}, ("error", "error")),
    ],
)
def test_rule_25_what_is_missing_is_unknown_and_unknown_in_the_end_is_false(
    check: str, state: dict[str, Any], found: tuple[str, str]
) -> None:
    line = asked(line_of(check), **state)
    assert verdict_of(line) == found


def test_rule_25_missing_evidence_is_unverified_and_missing_state_beside_it_not_reported() -> None:
    more = "deadline: 24h"
    assert verdict_of(asked(line_of("evidence.x == 1", more))) == ("failed", "unverified")
    assert verdict_of(asked(line_of("evidence.x == 1 && state.y == 1", more))) == ("failed", "not_reported")
    assert verdict_of(told(asked(line_of("evidence.x == 1", more)), "e", END, x=None)) == ("failed", "unverified")


def test_rule_25_an_expression_that_raises_is_counted_and_judged_infrastructure() -> None:
    line = asked(line_of("state.x > 'a'"), x=1).until(FAR)
    found = line.only()
    assert (found["completion"], found["failure"]["stage"]) == ("incomplete", "infrastructure")
    assert line.counted("noted", "expression_raised") > 0
    refused = asked(line_of("state.x == 1", rest="refused_when: \"resource['trueup.test'] > 3\"\n"), x=1)
    refused.spans(
        *turn(2, T0 + MINUTE, {"gen_ai.conversation.id": "c"}),
        resource={"trueup.test": "yes"},
    )
    assert not refused.until(FAR).only()["refused"]
    assert refused.counted("noted", "expression_raised") > 0


# -- 26: who may say it ------------------------------------------------------------------------------------------------

PAID = 'trust: independent, deadline: 24h, fails_when: "evidence.paid == false"'


@pytest.mark.parametrize(
    "carried",
    [
        {"trueup.state.paid": True},
        {"trueup.state.evidence.paid": True, "trueup.evidence.paid": True, "evidence.paid": True},
        {"trueup.task.outcome": "completed"},
    ],
    ids=["state", "look-alikes", "a claim"],
)
def test_rule_26_nothing_that_a_span_carries_satisfies_an_independent_criterion(carried: dict[str, Any]) -> None:
    line = line_of("evidence.paid == true", PAID)
    line.spans(*turn(1, T0, {"trueup.task.family": "ask", "gen_ai.conversation.id": "c", **carried}))
    assert verdict_of(line) == ("failed", "unverified")


def test_rule_26_nor_an_evaluation_on_a_span_nor_an_outcome_of_the_agents_own_source() -> None:
    line = line_of("evidence.paid == true", PAID, agent_sources=frozenset({"crm"}))
    attributes = pairs({"gen_ai.evaluation.name": "paid", "gen_ai.evaluation.score.value": 1.0})
    event = {"name": "gen_ai.evaluation.result", "timeUnixNano": str(END), "attributes": attributes}
    root, answer = turn(1, T0, {"trueup.task.family": "ask", "gen_ai.conversation.id": "c"})
    told(line.spans({**root, "events": [event]}, answer), "e", END + 1, paid=True)
    found = line.until(FAR).only()
    assert (found["criteria"][0]["reason"], found["verified"]) == ("unverified", False)
    assert [one["name"] for one in found["quality"]["evaluations"]] == ["paid"], "it is shown"


def test_rule_26_an_agents_own_outcome_cannot_fail_it_either() -> None:
    line = line_of("evidence.paid == true", PAID, agent_sources=frozenset({"crm"}))
    told(asked(line), "e", END + 1, paid=False)
    assert verdict_of(line, END + HOUR) == ("pending", "waiting")


@pytest.mark.parametrize("rule", ["applies_when", "claimed_when", "refused_when", "invalid_when"])
@pytest.mark.parametrize(
    ("value", "raised"), [(None, 0), ("text", 1), (5, 0)], ids=["it is missing", "it raises", "it is false"]
)
def test_rule_26_a_rule_that_is_unknown_or_raises_is_false_and_raising_is_counted(
    rule: str, value: Any, raised: int
) -> None:
    field = "state.y" if rule in ("applies_when", "claimed_when") else "resource['trueup.test']"
    line = line_of("state.x == 1", rest=f'{rule}: "{field} > 5"\nassume_claim: false\n')
    said = {"gen_ai.conversation.id": "c", "trueup.state.x": 1, "trueup.state.y": value}
    said |= {} if rule == "applies_when" else {"trueup.task.family": "ask"}
    given = {name: one for name, one in said.items() if one is not None}
    line.spans(*turn(1, T0, given), resource={"trueup.test": value} if value is not None else {})
    found = line.until(FAR).only()
    assert (found["claimed"] == "explicit", found["refused"], found["invalid"]) == (False, False, False)
    assert found["family"] == ("" if rule == "applies_when" else "ask")
    assert (line.counted("noted", "expression_raised") > 0) is bool(raised)


# -- 27: applies -------------------------------------------------------------------------------------------------------


def test_rule_27_what_does_not_apply_counts_neither_way_and_in_no_weight() -> None:
    rest = '  - {id: b, check: "state.b", weight: 3, required: false}\n'
    line = asked(line_of("state.a", 'applies: "state.gate == true", weight: 2', rest), gate=False, a=False, b=True)
    found = line.until(FAR).only()
    assert [one["status"] for one in found["criteria"]] == ["not_applicable", "passed"]
    assert (found["completion"], found["score"]) == ("complete", 1.0)


@pytest.mark.parametrize(
    ("state", "status", "score"),
    [
        ({"gate": True, "a": False, "b": True}, "failed", 0.6),
        ({"a": True, "b": False}, "passed", 0.4),
        ({"gate": "raises", "a": True, "b": False}, "passed", 0.4),
    ],
    ids=["it applies", "unknown does not take it away", "nor does raising"],
)
def test_rule_27_only_false_makes_it_not_applicable(state: dict[str, Any], status: str, score: float) -> None:
    rest = '  - {id: b, check: "state.b", weight: 3, required: false}\n'
    line = asked(line_of("state.a", 'applies: "state.gate > 0 || state.gate == true", weight: 2', rest), **state)
    found = line.until(FAR).only()
    assert found["criteria"][0]["status"] == status
    assert found["score"] == pytest.approx(score)


def test_rule_27_where_nothing_applies_there_is_no_score() -> None:
    line = asked(line_of("state.a", 'applies: "state.gate == true"'), gate=False)
    assert (line.until(FAR).only()["score"], line.only()["completion"]) == (None, "complete")


# -- 28, 29: evidence, deadlines, fails_when ---------------------------------------------------------------------------

DEADLINE = END + 24 * HOUR


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([("e", DEADLINE, 1)], ("passed", "met")),
        ([("e", DEADLINE + 1000, 1)], ("failed", "unverified")),
        ([("e", T0 - DAY, 1)], ("failed", "unverified")),
        ([("e", T0 - MINUTE, 1)], ("passed", "met")),
        ([("a", LATE, 1), ("b", LATE, 2)], ("failed", "false")),
        ([("b", LATE, 1), ("a", LATE, 2)], ("passed", "met")),
        ([("a", LATE + 1000, 1), ("b", LATE, 2)], ("passed", "met")),
        ([("a", LATE, 1), ("b", LATE + 1000, None)], ("passed", "met")),
        ([("a", LATE, 1), ("b", DEADLINE + 1000, 2)], ("passed", "met")),
    ],
    ids=[
        "at the deadline", "after it", "before any session", "before its session, within the skew",
        "the greater event id", "the other way round", "the later time", "null says nothing", "what is later is shown",
    ],
)  # fmt: skip
def test_rule_28_evidence_is_the_latest_up_to_the_deadline(
    events: list[tuple[str, int, Any]], found: tuple[str, str]
) -> None:
    line = asked(line_of("evidence.x == 1", "trust: independent, deadline: 24h"))
    for event_id, time, value in reversed(events):
        told(line, event_id, time, x=value)
    assert verdict_of(line) == found


def test_rule_28_evidence_that_arrives_long_after_counts_by_when_it_happened() -> None:
    line = asked(line_of("evidence.x == 1", "trust: independent, deadline: 24h"))
    assert verdict_of(line, END + 3 * DAY) == ("failed", "unverified")
    told(line, "e", DEADLINE, x=1)
    assert verdict_of(line, END + 4 * DAY) == ("passed", "met")


@pytest.mark.parametrize(
    ("watermark", "found"),
    [
        (END + 30 * MINUTE, ("pending", "waiting")),
        (END + 30 * MINUTE + 1, ("failed", "false")),
    ],
    ids=["while it is open", "once it is terminal"],
)
def test_rule_29_without_a_deadline_a_check_is_decided_when_the_session_is_terminal(
    watermark: int, found: tuple[str, str]
) -> None:
    line = asked(line_of("state.x == 1"), x=2)
    assert verdict_of(line, watermark) == found


@pytest.mark.parametrize("deadline", ["0h", "24h"])
def test_rule_29_with_a_deadline_it_is_pending_up_to_it_and_decided_past_it(deadline: str) -> None:
    limit = END if deadline == "0h" else DEADLINE
    line = asked(line_of("evidence.x == 1", f"deadline: {deadline}"))
    assert verdict_of(line, limit) == ("pending", "waiting")
    assert verdict_of(line, limit + 1) == ("failed", "unverified")


def test_rule_29_the_deadline_moves_with_the_end_of_the_session() -> None:
    line = asked(line_of("evidence.x == 1", "deadline: 24h"))
    line.spans(*turn(2, T0 + HOUR, {"gen_ai.conversation.id": "c"}))
    assert verdict_of(line, DEADLINE + 1) == ("pending", "waiting")
    assert verdict_of(line, DEADLINE + HOUR + 1) == ("failed", "unverified")


FAILS = 'trust: independent, deadline: 24h, fails_when: "evidence.x == 2"'


def test_rule_29_what_refutes_it_fails_it_at_once_and_says_since_when() -> None:
    line = told(asked(line_of("evidence.x == 1", FAILS)), "e", LATE, x=2)
    found = criterion(line, LATE + MINUTE)
    assert (found["status"], found["reason"]) == ("failed", "fails_when")
    assert found["failed_at"] == line.only()["failure"]["at"]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([(LATE, 2), (LATE + HOUR, 1)], ("passed", "met")),
        ([(LATE, 1), (LATE + HOUR, 2)], ("failed", "fails_when")),
        ([(DEADLINE, 2)], ("failed", "fails_when")),
        ([(DEADLINE + 1000, 2)], ("failed", "unverified")),
    ],
    ids=["it is taken back", "it is refuted later", "at the deadline", "after the deadline"],
)
def test_rule_29_the_last_word_within_the_deadline_decides(
    events: list[tuple[int, int]], found: tuple[str, str]
) -> None:
    line = asked(line_of("evidence.x == 1", FAILS))
    for index, (time, value) in enumerate(events):
        told(line, f"e{index}", time, x=value)
    assert verdict_of(line) == found


def test_rule_29_without_a_deadline_what_refutes_it_waits_for_the_end_too() -> None:
    line = asked(line_of("state.x == 1", 'fails_when: "state.x == 2"'), x=2)
    assert verdict_of(line, END + 30 * MINUTE) == ("pending", "waiting")
    assert verdict_of(line, END + 30 * MINUTE + 1) == ("failed", "fails_when")


def test_rule_29_a_check_that_raises_is_pending_until_it_is_decided() -> None:
    line = told(asked(line_of("evidence.x > 1", "deadline: 24h")), "e", END, x="much")
    assert verdict_of(line, DEADLINE) == ("pending", "waiting")
    assert line.counted("noted", "expression_raised") > 0, "at once"
    assert line.only()["criteria"][0]["raises"]
    assert verdict_of(line, DEADLINE + 1) == ("error", "error")


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ([(LATE, 1)], LATE),
        ([(T0 - MINUTE, 1)], END),
        ([(LATE, 1), (LATE + HOUR, 1)], LATE),
        ([(LATE, 1), (LATE + HOUR, 2), (LATE + 2 * HOUR, 1)], LATE + 2 * HOUR),
    ],
    ids=["when it was said", "at least the end", "said twice", "since it last began to hold"],
)
def test_rule_29_it_has_passed_since_it_holds_without_a_break(events: list[tuple[int, int]], since: int) -> None:
    line = asked(line_of("evidence.x == 1", "trust: independent, deadline: 24h"))
    for index, (time, value) in enumerate(events):
        told(line, f"e{index}", time, x=value)
    line.until(FAR)
    row = max(line.rows("criteria"), key=lambda one: one["version"])
    assert row["passed_at"] == since
