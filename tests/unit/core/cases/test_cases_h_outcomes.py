"""Outcomes that come late, twice, to nobody or to many, and scores that are missing, as they come in the field.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules, to_text
from schemas.segment import CountReading, MeanReading, RateReading
from schemas.topics import Stage
from tests.builders import T0, contracts, trace_id
from tests.unit.core.line import ORDER, Line, sent, tool, turn

ROOT = Path(__file__).parents[4]
END = T0 + 10 * SECOND
RULES = TimeRules()
KEY = "trueup.correlation.order"
OK, BAD = {"settled": True}, {"settled": False}


def ordered(trace: int, conversation: str, said: dict[str, Any] | None = None, start: int = T0) -> list[dict[str, Any]]:
    """A run that places an order, and states what is `said`."""
    root, answer = turn(trace, start, {**ORDER, "session.id": conversation, **(said or {})})
    call = sent(trace, trace * 100 + 2, start, start + SECOND, tool("place_order"), trace * 100)
    return [root, answer, call]


def several(n: int) -> Line:
    made = [span for number in range(1, n + 1) for span in ordered(number, f"c{number}")]
    return Line().spans(*made)


def readings(line: Line, watermark: int) -> list[RateReading]:
    steps = line.runner.steps(Stage.MEASURE).values()
    return [one for step in steps if isinstance(step, MeasureStep) for one in step.readings(watermark)]


def summaries(line: Line, watermark: int) -> tuple[list[MeanReading], list[CountReading]]:
    means: list[MeanReading] = []
    counts: list[CountReading] = []
    for step in line.runner.steps(Stage.MEASURE).values():
        assert isinstance(step, MeasureStep)
        found = step.summaries(watermark)
        means += found[0]
        counts += found[1]
    return means, counts


def told(line: Line, event_id: str = "e", hours: int = 1, kind: str = "evidence", **more: Any) -> Line:
    return line.outcome(event_id, END + hours * HOUR, kind, **more)


# -- scores, and who has them ------------------------------------------------------------------------------------------


def test_case_H01_a_score_is_in_the_bucket_of_its_session_and_says_when_it_was_given() -> None:
    line = several(1).until(END + 3 * DAY)
    line.outcome("e", END + 20 * DAY, "feedback", session_id="c1", data={"score": 0.5}).until(END + 21 * DAY)
    (row,) = line.rows("outcomes")
    assert row["event_time"] == END + 20 * DAY
    bucket = END // RULES.bucket * RULES.bucket
    newest = [one for one in line.rows("verdicts") if one["feedback"] is not None][-1]
    assert (newest["bucket"], newest["feedback"]) == (bucket, 0.5)
    (revision,) = [one for one in line.rows("revisions") if one["reason"].startswith("outcome: feedback")]
    assert revision["as_of"] >= END + 3 * DAY


def test_case_H02_an_outcome_before_or_without_its_session_waits_is_counted_and_attaches_or_expires() -> None:
    line = Line()
    told(line, "by conversation", kind="reopen", session_id="c1")
    told(line, "by trace", kind="reopen", trace_id=trace_id(1))
    told(line, "by key", data=OK, correlation={"order": "k"})
    told(line, "lost", kind="reopen", session_id="nobody")
    assert line.waiting() == 4
    found = line.spans(*ordered(1, "c1", {KEY: "k"})).until(END + 60 * HOUR).only()
    assert line.waiting() == 1
    assert (found["reopened"], found["completion"]) == (True, "complete")
    joined = {row["event_id"] for row in line.rows("outcomes") if row["conversation"] == "c1"}
    assert joined == {"by conversation", "by trace", "by key"}
    line.until(END + HOUR + RULES.retention + SECOND)
    (letter,) = line.letters()
    assert (letter.reason, "lost" in letter.detail, line.waiting()) == ("no_session", True, 0)


def test_case_H03_a_mean_of_scores_says_of_how_many_of_the_eligible_it_is() -> None:
    line = several(6)
    for number, score in ((1, 0.0), (2, 1.0)):
        told(line, f"e{number}", kind="feedback", session_id=f"c{number}", data={"score": score})
    means, counts = summaries(line.until(END + 9 * HOUR), END + 9 * HOUR)
    (mean,) = [one for one in means if (one.measure, one.cube, one.window) == ("feedback", "system", "24h")]
    assert (mean.mean, mean.count) == (0.5, 2)
    states = {one.name: one.count for one in counts if (one.what, one.cube, one.window) == ("state", "system", "24h")}
    assert (states["judged"], states["eligible"]) == (6, 6)


def test_case_H04_a_session_without_a_score_hides_neither_the_mean_nor_the_rate() -> None:
    line = told(several(3), kind="feedback", session_id="c1", data={"score": 1})
    line.until(END + 9 * HOUR)
    means, _ = summaries(line, END + 9 * HOUR)
    assert [(one.mean, one.count) for one in means if (one.measure, one.cube) == ("feedback", "system")][-1] == (1.0, 1)
    assert line.rate("claimed_completion") == (3, 3)


def test_case_H05_what_was_sent_is_joined_waits_was_superseded_or_is_in_a_letter() -> None:
    line = several(4)
    for number in range(1, 9):  # four of them are about sessions that there are
        told(line, f"e{number}", kind="feedback", session_id=f"c{number}", data={"score": 1})
    told(line, "e1", kind="feedback", session_id="c1", data={"score": 1})
    told(line, "e2", kind="feedback", session_id="c2", data={"score": 0}, event_version=2)
    told(line, "old", hours=-40 * 24, kind="reopen", session_id="c1")
    line.until(END + 9 * HOUR)
    received = line.counted("received", "outcome", Stage.INGEST)
    joined = {(row["conversation"], row["event_id"]) for row in line.rows("outcomes") if row["conversation"] < "c5"}
    dropped = sum(line.counted("dropped", why, Stage.CORRELATE) for why in ("duplicate", "superseded"))
    sealed = line.counted("dead_lettered", "sealed", Stage.CORRELATE)
    newer_versions = 1
    assert received == 11 == len(joined) + line.waiting() + dropped + sealed + newer_versions
    assert (len(joined), line.waiting(), dropped, sealed) == (4, 4, 1, 1)


SLOW_AND_FAST = """
family: order
version: 1
reopen_window: 48h
criteria:
  - {id: paid, check: "evidence.settled == true", deadline: 2h}
  - {id: shipped, check: "evidence.shipped == true", deadline: 14d}
"""


def test_case_H07_each_has_its_horizon_a_revision_comes_at_once_and_what_is_later_is_counted() -> None:
    line = Line(book=contracts(SLOW_AND_FAST)[0]).spans(*ordered(1, "c")).until(END + HOUR)
    told(line, "paid", data=OK, session_id="c")
    line.outcome("shipped", END + 14 * DAY, data={"shipped": True}, session_id="c")
    found = line.only()
    assert (found["completion"], found["completed_at"]) == ("complete", to_text(END + 14 * DAY))
    line.outcome("ticket", END + 20 * DAY, "escalation", data={"state": "accepted"}, session_id="c")
    found = line.until(END + 21 * DAY).only()
    assert (found["escalated"], line.counted("noted", "past_horizon"), line.letters()) == (False, 1, [])
    assert "ticket" in {row["event_id"] for row in line.rows("outcomes")}


def test_case_H08_evidence_reaches_each_session_once_and_another_kind_exactly_one() -> None:
    line = Line()
    for number, conversation in ((1, "a"), (2, "b")):
        line.spans(*ordered(number, conversation, {KEY: ["k", "l"]}))
    told(line, "paid", data=OK, correlation={"order": "k"})
    told(line, "again", kind="reopen", correlation={"order": "l"})
    line.outcome("both", END + HOUR, data={"shipped": 1}, correlation={"order": "k", KEY: "l"})
    first, second = line.until(END + 60 * HOUR).sessions()
    assert first["completion"] == second["completion"] == "complete"
    assert [one["reopened"] for one in (first, second)] == [False, True]
    assert line.rate("verified_completion") == (2, 2)
    assert line.rate("reopen") == (1, 2)


def test_case_H09_a_peak_is_judged_whole() -> None:
    line = several(600)
    for number in range(1, 601, 2):
        told(line, f"e{number}", data=OK, session_id=f"c{number}")
    line.until(END + 60 * HOUR)
    assert line.rate("completion") == (300, 600)
    assert line.rate("attribution") == (600, 600)


def test_case_H10_a_resolution_is_taken_back_days_later_and_its_first_value_stays() -> None:
    line = told(several(1), data=OK, session_id="c1").until(END + 20 * HOUR)
    assert line.rate("resolution") == (1, 1)
    line.spans(*ordered(9, "c1", start=END + 40 * HOUR)).until(END + 41 * HOUR)
    assert line.rate("resolution") == (0, 2)
    first, _ = line.sessions()
    assert (first["reopened"], first["resolved"], first["revision"] > 1) == (True, False, True)
    bucket = END // RULES.bucket * RULES.bucket
    rows = [
        row
        for row in line.rows("segment_metrics")
        if (row["cube"], row["rate"], row["bucket"]) == ("system", "resolution", bucket)
    ]
    newest = max(rows, key=lambda row: int(row["version"]))
    assert (newest["numerator"], newest["first_numerator"]) == (0, 1)
    assert "reopened" in [row["reason"] for row in line.rows("revisions") if row["conversation"] == "c1"][-2]


@pytest.mark.parametrize(
    "address",
    [{"session_id": "c"}, {"session_id": "c", "ordinal": 1}, {"trace_id": trace_id(1)}, {"correlation": {"order": 7}}],
    ids=["conversation", "session", "trace", "business key"],
)
@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [("feedback", {"score": 1}, "feedback"), ("evaluation", {"name": "Tone", "score": 1}, "evaluations")],
)
def test_case_H11_a_score_is_joined_by_conversation_session_trace_or_key(
    kind: str, data: dict[str, Any], field: str, address: dict[str, Any]
) -> None:
    line = Line().spans(*ordered(1, "c", {KEY: 7}))
    found = told(line, kind=kind, data=data, **address).until(END + 9 * HOUR).only()
    assert found["quality"].get(field)
    assert line.waiting() == 0


def test_case_H12_passed_failed_pending_error_abstained_and_missing_are_told_apart() -> None:
    contract = """
family: order
version: 1
criteria:
  - {id: passed, check: "tools['place_order'].ok == 1"}
  - {id: failed, check: "tools['place_order'].ok == 2"}
  - {id: error, check: "state.nothing > 'text' || tools['place_order'].ok > 'text'"}
  - {id: pending, check: "evidence.settled == true", deadline: 24h}
goal_achievement:
  tone: {max: 1, weight: 0.5}
  tact: {max: 1, weight: 0.5}
"""
    line = Line(book=contracts(contract)[0]).spans(*ordered(1, "c"))
    states = ("scored", "abstained", "error")
    for name, state in zip(("tone", "tact", "taste"), states, strict=True):
        score = {"score": 0} if state == "scored" else {}
        told(line, name, kind="evaluation", session_id="c", data={"name": name, "state": state, **score})
    found = line.until(END + 9 * HOUR).only()
    assert {one["id"]: one["status"] for one in found["criteria"]} == {
        name: name for name in ("passed", "failed", "error", "pending")
    }
    quality = found["quality"]
    assert {one["name"]: one["state"] for one in quality["evaluations"]} == dict(
        zip(("tone", "tact", "taste"), states, strict=True)
    )
    assert (quality["goal_state"], quality.get("goal_achievement")) == ("abstained", None)
    assert quality.get("coherence_state", "missing") == "missing"


HOURS = {"h": 1, "d": 24}


def test_case_H13_what_came_while_nobody_was_told_is_still_in_the_window_when_somebody_is() -> None:
    line = several(3)
    told(line, data=BAD, session_id="c1")
    line.until(END + 15 * HOUR)
    (now,) = [
        one
        for one in readings(line, END + 15 * HOUR)
        if (one.rate, one.cube, one.window) == ("completion", "family", "24h")
    ]
    assert now.denominator == 3
    routes = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())["route"]
    silences = [
        routes["repeat_interval"],
        *(one["repeat_interval"] for one in routes["routes"] if "repeat_interval" in one),
    ]
    longest = max(int(text[:-1]) * HOURS[text[-1]] for text in silences)
    rules = yaml.safe_load((ROOT / "grafana/alerts/trueup.rules.yml").read_text())["groups"]
    agents = [
        rule["expr"]
        for group in rules
        for rule in group["rules"]
        if rule.get("labels", {}).get("component") == "agents"
    ]
    windows = [int(n) * HOURS[unit] for expr in agents for n, unit in re.findall(r'window="(\d+)([hd])"', expr)]
    assert windows
    assert min(windows) > longest


@pytest.mark.parametrize("stated", [{"trueup.issue": "late parcel"}, {KEY: "k"}], ids=["an issue", "a business key"])
def test_case_H15_three_contacts_of_one_customer_are_not_three_resolutions(stated: dict[str, Any]) -> None:
    line = Line()
    said = {"trueup.subject": "ada", **stated}
    for number, conversation in enumerate(("chat", "mail", "phone"), 1):
        start = T0 + (number - 1) * 20 * MINUTE * 4
        line.spans(*ordered(number, conversation, said, start))
        line.outcome(f"paid {number}", start + MINUTE, data={**OK, "score": 3}, session_id=conversation)
    line.until(END + 60 * HOUR)
    assert [(one["conversation"], one["resolved"]) for one in line.sessions()] == [
        ("chat", False),
        ("mail", False),
        ("phone", True),
    ]
    assert (line.rate("resolution"), line.rate("verified_completion")) == ((1, 3), (3, 3))


def test_case_H16_a_number_says_as_of_when_it_is_and_how_mature() -> None:
    line = told(several(2), data=OK, session_id="c1")
    found: dict[int, RateReading] = {}
    for hours in (4, 60):
        line.until(END + hours * HOUR)
        for one in readings(line, END + hours * HOUR):
            if (one.rate, one.cube, one.window) == ("resolution", "family", "7d"):
                found[hours] = one
    assert [found[hours].as_of for hours in (4, 60)] == [END + 4 * HOUR, END + 60 * HOUR]
    maturity = [found[hours].maturity for hours in (4, 60)]
    assert maturity[0] is not None
    assert maturity[0] < 1.0
    assert maturity[1] == 1.0


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_case_H17_the_newest_version_wins_in_whatever_order_and_an_exact_repeat_is_nothing(
    order: tuple[int, ...],
) -> None:
    versions = [(1, {"settled": False}), (2, {"settled": True}), (3, {"settled": True, "note": "again"})]
    line = several(1).until(END + HOUR)
    for index in order:
        version, data = versions[index]
        told(line, data=data, session_id="c1", event_version=version)
    before = (line.only(), len(line.rows("revisions")))
    for version, data in versions:
        told(line, data=data, session_id="c1", event_version=version)
    assert (line.only(), len(line.rows("revisions"))) == before
    assert (line.only()["completion"], line.only()["evidence"]["note"]["value"]) == ("complete", "again")
    assert line.rate("verified_completion") == (1, 1)
