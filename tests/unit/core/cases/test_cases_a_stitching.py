"""When a session ends, what comes late, what is partial and what is too big, as it goes wrong in the field.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

from pipeline.core.judging.step import JudgeStep
from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import HOUR, MINUTE, SECOND, to_text
from schemas.topics import Stage, Topic
from tests.builders import T0, trace_id
from tests.unit.core.ingest_support import T, proto
from tests.unit.core.line import AGENT, CHAT, ORDER, Line, sent, tool, turn

END = T0 + 10 * SECOND
LATER = END + 6 * HOUR
FAR = END + 60 * HOUR
ID = {"session.id": "c"}
ORDERED = {**ORDER, **ID}


def open_sessions(line: Line) -> int:
    return sum(one.open_sessions() for one in line.runner.steps(Stage.JUDGE).values() if isinstance(one, JudgeStep))


def unresolved(line: Line) -> int:
    return sum(one.unresolved() for one in line.runner.steps(Stage.RESOLVE).values() if isinstance(one, ResolveStep))


def test_case_A17_a_session_ends_by_its_claim_else_by_silence_and_activity_opens_it_again() -> None:
    claimed = Line().spans(*turn(1, T0, {**ORDERED, "trueup.task.outcome": "completed"}))
    assert claimed.until(END + 10 * MINUTE + 1).only()["terminal_reason"] == "completed"
    silent = Line().spans(*turn(1, T0, ORDERED)).until(END + 30 * MINUTE)
    assert not silent.only()["terminal"]
    assert silent.until(END + 30 * MINUTE + 1).only()["terminal"]
    assert not silent.spans(*turn(2, END + 50 * MINUTE, ID)).only()["terminal"]


def test_case_A18_an_answer_after_lunch_revises_the_session_and_is_no_new_one() -> None:
    line = Line().spans(*turn(1, T0, ORDERED)).until(END + 40 * MINUTE)
    first = line.only()
    line.spans(*turn(2, END + 50 * MINUTE, ID)).until(FAR)
    found = line.only()
    assert (first["revision"], found["ordinal"], found["runs"]) == (1, 1, 2)
    assert found["revision"] > first["revision"]


def test_case_A18_spans_that_arrive_late_revise_the_session_too() -> None:
    line = Line().spans(*turn(1, T0, ORDERED)).until(LATER)
    line.spans(sent(1, 150, T0, END, tool("place_order"), 100)).until(FAR)
    assert (line.only()["revision"], line.only()["tool_calls"]) == (3, 1)  # judged, joined, past its deadline


def test_case_A19_a_judge_that_is_earlier_than_its_trace_waits_and_one_that_fails_is_a_state() -> None:
    line = Line().outcome("e", END, trace_id=trace_id(1), data={"score": "no number"})
    line.spans(sent(1, 150, T0, END, tool("lookup"), 100), *turn(1, T0, {**ID, "trueup.state.told": False})).until(FAR)
    (kept,) = [one for one in line.only()["criteria"] if one["id"] == "kept"]
    assert (kept["status"], kept["reason"]) == ("error", "error")


def test_case_A21_a_root_that_lasts_longer_than_the_wait_still_gets_all_its_spans() -> None:
    line = Line().spans(sent(1, 2, T0, END, {**CHAT, "gen_ai.usage.input_tokens": 7}, 1)).until(END + 20 * MINUTE)
    partial = line.only()
    assert (partial["conversation"], partial["flags"]) == (f"trace:{trace_id(1)}", ["missing_parents"])
    line.spans(sent(1, 1, T0, END + 40 * MINUTE, ORDERED)).until(LATER)
    whole = line.only()
    assert (whole["conversation"], whole["flags"], whole["tokens"][0]) == ("c", [], 7)


def test_case_A22_a_session_is_shown_at_once_and_revised() -> None:
    line = Line().spans(*turn(1, T0, ORDERED))
    assert (line.only()["terminal"], line.only()["revision"]) == (False, 0)
    assert (line.until(LATER).only()["terminal"], line.only()["revision"]) == (True, 1)


def test_case_A23_a_session_of_thousands_of_traces_is_judged_like_any_other() -> None:
    line, traces = Line(), 2_000
    for start in range(0, traces, 500):
        spans = [sent(n + 1, n + 1, T0 + n * SECOND, T0 + n * SECOND, ORDERED) for n in range(start, start + 500)]
        line.spans(*spans)
    found = line.until(T0 + traces * SECOND + HOUR).only()
    assert (found["runs"], found["terminal"], len(found["trace_ids"])) == (traces, True, traces)
    assert max(len(one.value or b"") for one in line.runner.messages(Topic.ROWS)) < 1_000_000


def test_case_A25_a_session_that_began_before_a_range_counts_whole_where_it_ended() -> None:
    line = Line().spans(*turn(1, T0 - 3 * HOUR, ORDERED, seconds=3 * 3600 + 10)).until(FAR)
    rows = {
        row["bucket"] for row in line.rows("segment_metrics") if row["rate"] == "attribution" and row["denominator"]
    }
    assert rows == {row["bucket"] for row in line.rows("verdicts") if not row["is_deleted"]}
    assert [to_text(bucket) for bucket in rows] == [to_text(T0)]


def test_case_A27_each_step_says_which_service_in_which_version_sent_it() -> None:
    line = Line().spans(*turn(1, T0, ID), resource={"service.name": "voice", "service.version": "1.3"})
    assert {row["service"] for row in line.spans(*turn(2, T0, ID)).rows("agent_steps")} == {"voice 1.3", ""}


def test_case_A30_what_may_still_grow_is_told_as_open() -> None:
    line = Line().spans(*turn(1, T0, ID)).spans(sent(2, 1, T0, END, CHAT, 9))
    assert (open_sessions(line), unresolved(line)) == (1, 1)
    line.until(FAR)
    assert (open_sessions(line), unresolved(line)) == (0, 0)


def test_case_A33_a_session_of_which_spans_are_missing_says_so() -> None:
    line = Line().spans(sent(1, 2, T0, END, {**AGENT, **ID}, 1), sent(1, 3, T0, END, CHAT, 2)).until(LATER)
    assert (line.only()["terminal_reason"], line.only()["flags"]) == ("completed", ["missing_parents"])
    assert line.counted("noted", "session_missing_parents") == 1


def test_case_A33_a_session_of_traces_that_were_sampled_says_so() -> None:
    spans = [{**one, "traceState": "ot=th:8"} for one in turn(1, T0, ID)]
    assert Line().spans(*spans).until(LATER).only()["flags"] == ["sampled"]
    line = Line().record(proto({**AGENT, **ID}, trace_state="ot=p:3"), T).until(T + HOUR)
    assert line.only()["flags"] == ["sampled"]
