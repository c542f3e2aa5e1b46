"""The same span again, the same but fuller, and spans that cannot be known again, as they come in the field.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

import pytest

from pipeline.core.timeline import HOUR, SECOND, to_text
from tests.builders import T0
from tests.unit.core.line import ORDER, Line, sent, tool, turn

END = T0 + 10 * SECOND
LATER = END + 6 * HOUR
ID = {"session.id": "c"}
ORDERED = {**ORDER, **ID}
CALL = sent(1, 150, T0, END, tool("lookup"), 100)


def test_case_F01_the_nth_copy_changes_nothing() -> None:
    once = Line().spans(*turn(1, T0, ORDERED), CALL).until(LATER)
    line = Line()
    for _ in range(3):
        line.spans(*turn(1, T0, ORDERED), CALL)
    line.until(LATER).spans(CALL).until(LATER)
    told, first = line.only(), once.only()
    assert {name: told[name] for name in told if name != "version"} == {n: first[n] for n in first if n != "version"}
    assert line.counted("dropped", "duplicate") == 7


def test_case_F02_of_a_client_and_a_server_span_of_one_id_one_holds_and_it_is_counted() -> None:
    client = sent(1, 150, T0, END, {**tool("lookup"), "more": 1}, 100, kind=3)
    server = sent(1, 150, T0, END, {"http.route": "/x"}, 100, kind=2)
    for spans in ((client, server), (server, client)):
        line = Line().spans(*turn(1, T0, ORDERED), spans[0]).spans(spans[1]).until(LATER)
        assert (line.only()["tool_calls"], line.counted("noted", "unequal_copy")) == (1, 1)


def test_case_F03_a_trace_that_is_sent_again_long_after_is_taken_and_changes_nothing() -> None:
    line = Line().spans(*turn(1, T0, ORDERED)).until(LATER)
    before = line.rate("completion"), len(line.rows("revisions"))
    line.spans(*turn(1, T0, ORDERED)).until(LATER)
    assert (line.rate("completion"), len(line.rows("revisions"))) == before
    assert line.letters() == []


@pytest.mark.parametrize("turned", [False, True], ids=["the partial one first", "the partial one last"])
def test_case_F04_the_version_that_ended_wins(turned: bool) -> None:
    partial, final = (sent(1, 150, T0, end, tool("lookup"), 100) for end in (0, END + SECOND))
    line = Line().spans(*turn(1, T0, ORDERED))
    for one in (final, partial) if turned else (partial, final):
        line.spans(one, record_time=END)
    found = line.until(LATER).only()
    assert (found["end"], found["tool_calls"], found["flags"]) == (to_text(END + SECOND), 1, [])


def test_case_F05_spans_without_ids_get_none_and_count_nowhere_however_often_they_come() -> None:
    line = Line()
    for _ in range(2):
        line.spans(*(sent(1, 1, T0, END, ORDERED, spanId="") for _ in range(50)), *turn(2, T0, ID))
    line.until(LATER)
    assert line.only()["runs"] == 1
    assert (line.counted("dead_lettered", "bad_id"), line.rate("attribution")) == (100, (1, 1))


@pytest.mark.parametrize("first", [0, 1])
def test_case_F06_two_writers_of_one_span_come_to_one(first: int) -> None:
    line = Line(sources=2).spans(*turn(1, T0, ORDERED))
    writers = [sent(1, 150, T0, END, tool("lookup"), 100), sent(1, 150, T0, END + 1, tool("lookup"), 100)]
    line.spans(writers[first], partition=0).spans(writers[1 - first], partition=1).until(LATER)
    assert (line.only()["tool_calls"], line.only()["end"]) == (1, to_text(END + 1))
