"""Every revision is kept, with its reason; versions only grow; what is past is restated aloud or refused."""

from __future__ import annotations

import json
from typing import Any

from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND
from pipeline.runners.local_runner import CrashPoint
from schemas.topics import Stage
from tests.builders import T0, trace_id
from tests.property.delivery import SETTLES
from tests.unit.core.line import ORDER, Line, sent, tool, turn

END = T0 + 10 * SECOND
ORDERED = {**ORDER, "session.id": "c"}
RETENTION = 35 * DAY
BUCKET = 5 * MINUTE


def placed(start: int = T0, trace: int = 1) -> list[dict[str, Any]]:
    """Ten seconds in which an order is placed."""
    return [
        *turn(trace, start, ORDERED),
        sent(trace, trace * 100 + 50, start, start + SECOND, tool("place_order"), 100),
    ]


def revisions(line: Line, ordinal: int = 1) -> list[dict[str, Any]]:
    """The stored revisions of `c#<ordinal>`: of each number the row that holds."""
    rows = sorted(line.rows("revisions"), key=lambda row: row["version"])
    return [row for _, row in sorted({row["revision"]: row for row in rows if row["ordinal"] == ordinal}.items())]


def completion(line: Line) -> dict[str, Any]:
    """The row of the completion rate that holds, of the bucket in which something counts."""
    rows = [row for row in line.rows("segment_metrics") if (row["cube"], row["rate"]) == ("system", "completion")]
    newest = {row["bucket"]: row for row in sorted(rows, key=lambda row: row["version"])}
    (found,) = [row for row in newest.values() if row["denominator"] or row["first_denominator"]]
    return found


def test_each_revision_is_kept_with_its_number_what_arrived_and_what_it_changed() -> None:
    line = Line().spans(*placed()).until(END + HOUR)
    line.outcome("pay", END + HOUR, session_id="c", data={"settled": False})
    line.outcome("pay", END + HOUR, session_id="c", data={"settled": True}, event_version=2)
    line.outcome("pay", END + HOUR, "retract", event_version=3)
    line.spans(*turn(2, END + 50 * MINUTE, {"session.id": "c"})).until(END + 3 * HOUR)
    found = revisions(line)
    assert [row["revision"] for row in found] == list(range(1, len(found) + 1))
    assert [row["reason"].split(":")[0] for row in found[:5]] == [
        "time passed",
        "outcome",
        "outcome corrected",
        "outcome withdrawn",
        f"spans of trace {trace_id(2)}",
    ]
    assert all("crm pay" in row["reason"] for row in found[1:4])
    assert "completion pending -> incomplete" in json.loads(found[1]["changed"])
    assert "completion incomplete -> complete" in json.loads(found[2]["changed"])
    assert all(json.loads(row["verdict"])["revision"] == row["revision"] for row in found)


def test_what_changes_nothing_makes_no_revision() -> None:
    line = Line().spans(*placed()).outcome("pay", END + MINUTE, session_id="c", data={"settled": True})
    before = len(revisions(line.until(END + 2 * HOUR)))
    line.spans(*placed()).outcome("pay", END + MINUTE, session_id="c", data={"settled": True}).until(END + 3 * HOUR)
    assert len(revisions(line)) == before


def test_an_ordinal_that_was_withdrawn_and_comes_back_goes_on_counting() -> None:
    line = Line().spans(*placed()).spans(*placed(END + 90 * MINUTE, 2)).until(END + 3 * HOUR)
    line.spans(sent(1, 199, T0, END + 45 * MINUTE, tool("lookup"), 100)).until(END + 4 * HOUR)
    assert [one["ordinal"] for one in line.sessions()] == [1]
    line.spans(sent(1, 198, END, END, {"trueup.task.outcome": "completed"}, 100)).until(END + 5 * HOUR)
    assert [one["ordinal"] for one in line.sessions()] == [1, 2]
    numbers = [row["revision"] for row in revisions(line, 2)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 3


def test_versions_grow_over_crashes_and_after_the_conversation_was_forgotten() -> None:
    line = Line().spans(*placed()).until(END + HOUR)
    for point in CrashPoint:
        for number in range(2):
            line.runner.crash(Stage.JUDGE, number, point)
    line.until(END + RETENTION + DAY)
    before = max(json.loads(value or b"{}")["version"] for _, value in line.runner.verdicts())
    later = END + RETENTION + 2 * DAY
    line.spans(*placed(later, 2)).until(later + HOUR)
    assert line.only()["trace_ids"] == [trace_id(2)]
    assert line.only()["version"] > before


def test_rule_48_an_outcome_within_retention_restates_a_settled_bucket_and_says_so() -> None:
    line = Line().spans(*placed()).until(T0 + BUCKET + SETTLES + 1)
    first = completion(line)
    assert (first["numerator"], first["first_numerator"], first["first_denominator"]) == (0, 0, 1)
    line.outcome("pay", END + HOUR, session_id="c", data={"settled": True}).until(T0 + BUCKET + SETTLES + HOUR)
    now = completion(line)
    assert (now["numerator"], now["denominator"]) == (1, 1)
    assert (now["first_numerator"], now["first_denominator"]) == (0, 1)
    assert line.counted("noted", "restated") == 1
    newest = max(line.rows("verdicts"), key=lambda row: row["version"])
    assert newest["settled"] == 1


def test_rule_48_what_comes_for_a_sealed_bucket_is_refused_counted_and_changes_no_number() -> None:
    line = Line().spans(*placed()).until(END + RETENTION + DAY)
    before, told = completion(line), len(line.rows("revisions"))
    line.outcome("pay", END + HOUR, session_id="c", data={"settled": True})
    line.spans(sent(1, 197, T0, END, tool("lookup"), 100)).until(END + RETENTION + 2 * DAY)
    assert line.counted("dead_lettered", "sealed") == 2
    assert sorted(letter.reason for letter in line.letters()) == ["sealed", "sealed"]
    assert (completion(line), len(line.rows("revisions"))) == (before, told)
