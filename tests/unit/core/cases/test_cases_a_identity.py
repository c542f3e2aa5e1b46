"""Which session a span belongs to, as it goes wrong in the field: ids that are missing, late, many or the same for all.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from pipeline.core.dialects.otel_genai import CONVERSATION_KEYS
from pipeline.core.timeline import HOUR, MINUTE, SECOND
from tests.builders import T0, trace_id
from tests.unit.core.line import AGENT, CHAT, ORDER, Line, sent, tool, turn

END = T0 + 10 * SECOND
LATER = END + 6 * HOUR
ID = {"session.id": "c"}
MODEL = {**CHAT, "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}


def test_case_A01_an_id_on_a_root_that_comes_last_takes_all_spans_of_its_trace_along_once() -> None:
    line = Line().spans(sent(1, 2, T0, END, MODEL, 1)).spans(sent(1, 3, T0, END, MODEL, 1))
    line.spans(sent(1, 1, T0, END + HOUR, {**ORDER, **ID})).until(LATER)
    assert line.only()["conversation"] == "c"
    assert line.only()["tokens"] == [14, 6, 0]


def test_case_A02_spans_without_an_id_inherit_their_traces_and_what_has_none_is_a_rate_of_its_own() -> None:
    line = Line().spans(*turn(1, T0, ID)).spans(sent(1, 150, T0, END, MODEL, 100), *turn(2, T0))
    line.until(LATER)
    assert [(one["attributed"], one["tokens"][0]) for one in line.sessions()] == [(True, 7), (False, 0)]
    assert line.rate("attribution") == (1, 2)


def test_case_A03_a_continuation_that_lost_its_ids_joins_by_its_trace_or_its_link() -> None:
    line = Line().spans(*turn(1, T0, ID))
    line.spans(sent(1, 150, END + MINUTE, END + 2 * MINUTE, AGENT, 100))
    line.spans(
        sent(2, 200, END + MINUTE, END + 2 * MINUTE, AGENT, links=[{"traceId": trace_id(1), "spanId": "a" * 16}])
    )
    line.until(LATER)
    assert line.only()["trace_ids"] == [trace_id(1), trace_id(2)]


def test_case_A05_a_run_that_fails_before_its_id_is_known_counts_as_a_failure() -> None:
    line = Line().spans(sent(1, 1, T0, END, ORDER, status={"code": 2, "message": "boom"})).until(END + 50 * HOUR)
    found = line.only()
    assert (found["conversation"], found["attributed"]) == (f"trace:{trace_id(1)}", False)
    assert (found["terminal_reason"], line.rate("completion")) == ("failed", (0, 1))


def test_case_A06_of_two_keys_the_first_configured_holds_and_the_conflict_is_counted() -> None:
    both = {"gen_ai.conversation.id": "other", "session.id": "c"}
    line = Line().spans(*turn(1, T0, both)).until(LATER)
    assert (line.only()["conversation"], line.only()["flags"]) == ("c", ["conflicting_ids"])
    assert line.counted("noted", "conflicting_ids") == 1
    turned = Line(conversation_keys=tuple(reversed(CONVERSATION_KEYS))).spans(*turn(1, T0, both)).until(LATER)
    assert turned.only()["conversation"] == "other"


def test_case_A07_an_unknown_spelling_is_named_and_can_be_configured() -> None:
    said = {"langfuse.session_id": "c", "langfuse.user_id": "u"}
    line = Line().spans(*turn(1, T0, said)).until(LATER)
    assert not line.only()["attributed"]
    assert "langfuse.session_id" in line.ingest.session_like
    assert Line(conversation_keys=("langfuse.session_id",)).spans(*turn(1, T0, said)).until(LATER).only()["attributed"]


def test_case_A08_spans_whose_root_never_comes_are_a_session_with_a_verdict() -> None:
    line = Line().spans(sent(1, 2, T0, END, {**ORDER, **ID}, 1), sent(1, 3, T0, END, CHAT, 1)).until(LATER)
    found = line.only()
    assert (found["terminal_reason"], found["family"]) == ("completed", "order")
    assert found["flags"] == ["missing_parents"]


def test_case_A09_an_id_is_taken_from_any_span() -> None:
    line = Line().spans(*turn(1, T0)).spans(sent(1, 150, T0, END, {**MODEL, **ID}, 101)).until(LATER)
    assert line.only()["conversation"] == "c"


def test_case_A10_a_span_that_moves_a_session_to_another_bucket_takes_it_out_of_the_old_one() -> None:
    line = Line().spans(sent(1, 2, T0, END, {**ORDER, **ID}, 1)).until(END + HOUR)
    line.spans(sent(1, 3, T0, END + 45 * MINUTE, CHAT, 1)).until(LATER)
    rows = [row for row in line.rows("segment_metrics") if (row["cube"], row["rate"]) == ("system", "attribution")]
    newest = {row["bucket"]: row["denominator"] for row in sorted(rows, key=lambda row: row["version"])}
    assert sorted(newest.values()) == [0, 1]
    assert max(newest, key=lambda bucket: newest[bucket]) == max(newest)


def test_case_A11_spans_of_several_processes_give_the_same_whatever_came_first() -> None:
    spans = [sent(1, n, T0 + n, END + n, {**AGENT, "gen_ai.agent.name": f"a{n}"}, 9) for n in (1, 2)]
    spans += [sent(1, 3, T0 + 3, END, {**ORDER, **ID})]
    found = set()
    for order in permutations(spans):
        line = Line()
        for one in order:
            line.spans(one)
        document = line.until(LATER).only()
        found.add(str({name: document[name] for name in document if name not in ("version", "revision", "reason")}))
    assert len(found) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_case_A12_a_second_id_on_a_trace_moves_it_by_rule_not_by_arrival(turned: bool) -> None:
    first = [sent(1, 2, T0, END, {**AGENT, "session.id": "harness"}, 1)]
    second = [sent(1, 1, T0, END, {**AGENT, "session.id": "production"})]
    line = Line()
    for spans in (second, first) if turned else (first, second):
        line.spans(*spans).until(END + HOUR)
    assert [one["conversation"] for one in line.until(LATER).sessions()] == ["production"]
    assert line.rate("attribution") == (1, 1)


def test_case_A13_another_key_stitches_where_the_id_is_new_for_every_trace() -> None:
    spans = [turn(n, T0 + n * MINUTE, {"session.id": f"uuid-{n}", "ticket": "t"}) for n in range(1, 5)]
    by_uuid, by_ticket = Line(), Line(conversation_keys=("ticket", *CONVERSATION_KEYS))
    for one in spans:
        by_uuid.spans(*one)
        by_ticket.spans(*one)
    assert [one["turns"] for one in by_uuid.until(LATER).sessions()] == [1] * 4
    assert [one["turns"] for one in by_ticket.until(LATER).sessions()] == [4]


def test_case_A14_of_several_roots_in_one_trace_none_overwrites_another() -> None:
    line = Line()
    for n in range(3):
        root, start = 1000 + n, T0 + n * MINUTE
        line.spans(sent(1, root, start, start + SECOND, {**AGENT, **ID, "gen_ai.agent.name": f"a{n}"}))
        line.spans(sent(1, 2000 + n, start, start + SECOND, tool("lookup"), root))
    found = line.until(LATER).only()
    assert (found["agents"], found["tool_calls"]) == (["a0", "a1", "a2"], 3)


def test_case_A15_one_id_for_all_users_is_flagged_and_counted() -> None:
    line = Line()
    for number, user in enumerate(("ann", "bob", "ann"), start=1):
        line.spans(*turn(number, T0 + number * MINUTE, {"session.id": "flow-1", "user.id": user}))
    found = line.until(LATER).only()
    assert (found["flags"], found["subjects"]) == (["several_subjects"], ["ann", "bob"])
    assert line.counted("noted", "session_several_subjects") == 1


def test_case_A26_a_nested_run_without_the_thread_counts_with_it() -> None:
    line = Line().spans(*turn(1, T0, {"langsmith.metadata.thread_id": "t"}))
    line.spans(sent(1, 150, T0, END, MODEL, 101)).until(LATER)
    assert (line.only()["conversation"], line.only()["tokens"]) == ("t", [7, 3, 0])


def test_case_A31_a_session_that_is_but_a_trace_is_marked() -> None:
    line = Line().spans(*turn(1, T0)).spans(*turn(2, T0, ID)).until(LATER)
    assert {one["conversation"]: one["attributed"] for one in line.sessions()} == {
        "c": True,
        f"trace:{trace_id(1)}": False,
    }
    rows = {row["conversation"]: row["attributed"] for row in line.rows("verdicts")}
    assert rows == {"c": 1, f"trace:{trace_id(1)}": 0}


@pytest.mark.parametrize("missing", ["", "  ", "null", "None", "undefined", None])
def test_case_A34_an_id_that_says_nothing_is_missing_and_counted(missing: Any) -> None:
    line = Line().spans(*turn(1, T0, {"session.id": missing})).until(LATER)
    assert not line.only()["attributed"]
    assert line.counted("noted", "missing_id") == 1


def test_case_A34_numbers_and_untrimmed_text_are_one_session() -> None:
    line = Line()
    for number, given in enumerate((123, "123", " 123 "), start=1):
        line.spans(*turn(number, T0 + number * MINUTE, {"session.id": given}))
    assert (line.until(LATER).only()["conversation"], line.only()["runs"]) == ("123", 3)
