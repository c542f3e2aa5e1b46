"""Rules 1 to 8, each by hand: copies, times, ids, chains, work, runs, limits."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import pytest

from tests.oracle.model import OSettings, OSpan
from tests.oracle.spans import normalised_conversation, normalised_times, spans_that_count, tenant_of
from tests.unit.oracle.small_world import MIN, at, cut, judge, only, span, trace_id, turn


def winner(*copies: OSpan) -> OSpan:
    (kept,) = spans_that_count(copies, OSettings(), Counter())
    return kept


def test_rule_1_copies_that_differ_in_the_record_time_alone_are_one_with_the_earliest():
    copy = span(1, "1", 0, 5, record_time=at(90))

    assert winner(copy, replace(copy, record_time=at(60))).record_time == at(60)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param({"id": "c"}, {"end": 99}, id="with a conversation id"),
        pytest.param({"record_time": at(0)}, {"record_time": at(-3600), "attribute_count": 9}, id="times of its own"),
        pytest.param({"end": 7}, {"end": 6, "attribute_count": 9}, id="the later end"),
        pytest.param({"attribute_count": 3}, {"attribute_count": 2}, id="more attributes"),
    ],
)
def test_rule_1_of_unequal_copies_one_wins_in_any_order(better, worse):
    first, second = (
        span(1, "1", 0, fields.get("end", 5), **{k: v for k, v in fields.items() if k != "end"})
        for fields in (better, worse)
    )

    assert winner(first, second) == winner(second, first)
    assert winner(first, second).attribute_count == first.attribute_count
    assert winner(first, second).end == first.end


def test_rule_1_duplicates_are_counted():
    assert judge(turn(1, 0) * 3).dropped == {"duplicate": 4}


def test_rule_2_tenant_order():
    assert tenant_of("token", "stated", "configured") == "token"
    assert tenant_of(None, "stated", "configured") == "stated"
    assert tenant_of(None, None, "configured") == "configured"
    assert tenant_of(None, None, None) == "default"


def test_rule_2_tenants_do_not_share_a_conversation():
    here = turn(1, 0)
    there = [replace(s, tenant="other") for s in turn(2, 20)]

    assert [(s.tenant, s.runs) for s in judge(here + there).sessions] == [("default", 1), ("other", 1)]


@pytest.mark.parametrize(
    ("start", "end", "record", "expected"),
    [
        pytest.param(10, 5, 100, (10, 10), id="end before start"),
        pytest.param(10, 400, 100, (10, 400), id="exactly the skew ahead"),
        pytest.param(10, 401, 100, (10, 100), id="past the skew"),
        pytest.param(401, 402, 100, (100, 100), id="wholly past the skew"),
        pytest.param(10, 401, None, (10, 401), id="a file without record time"),
    ],
)
def test_rule_3_times(start, end, record, expected):
    raw = span(1, "1", start, end, record_time=None if record is None else at(record))
    times = normalised_times(raw, OSettings())

    assert times is not None
    assert (times.start, times.end) == (at(expected[0]), at(expected[1]))


def test_rule_3_zero_times():
    live = normalised_times(OSpan("t", "1", 0, at(9), record_time=at(5)), OSettings())
    filed = normalised_times(OSpan("t", "1", 0, at(9)), OSettings())

    assert live is not None
    assert (live.start, live.end) == (at(5), at(9))
    assert filed is not None
    assert (filed.start, filed.end) == (at(9), at(9))
    assert normalised_times(OSpan("t", "1", 0, 0), OSettings()) is None


def test_rule_3_a_clamped_span_does_not_make_its_trace_end_later():
    clamped = span(1, "3", 5, 9000, "tool", parent="1", tool="x", record_time=at(600))
    session = only(judge([*turn(1, 0), clamped]))

    assert session.end == at(10)
    assert "clamped" in session.flags


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (" a ", "a"),
        ("A", "A"),
        (123, "123"),
        (123.0, "123"),
        ("123", "123"),
        (1.5, "1.5"),
        (None, None),
        ("  ", None),
        ("null", None),
        ("None", None),
        ("undefined", None),
        ("trace:" + "a" * 32, None),
        ("trace:abc", "trace:abc"),
        ("x" * 256, "x" * 256),
        ("x" * 257, "x" * 200 + "~" + hashlib.sha256(b"x" * 257).hexdigest()[:16]),
        ("é" * 150, "é" * 100 + "~" + hashlib.sha256("é".encode() * 150).hexdigest()[:16]),
        ("x" + "é" * 150, "x" + "é" * 99 + "~" + hashlib.sha256(("x" + "é" * 150).encode()).hexdigest()[:16]),
    ],
)
def test_rule_4_an_id_is_normalised(raw, expected):
    assert normalised_conversation(raw) == expected


def test_rule_4_the_id_nearest_the_root_wins_and_others_are_conflicts():
    spans = [
        span(1, "1", 0, 10),
        span(1, "2", 1, 9, parent="1", id="near"),
        span(1, "3", 0, 8, parent="2", id="far"),
        span(1, "4", 0, 8, parent="2", id="far"),
    ]
    world = judge(spans)

    assert only(world).conversation == "near"
    assert world.counted["conflict"] == 1


def test_rule_4_an_orphan_is_depth_0_after_true_roots_and_before_their_children():
    root, child = span(1, "1", 5, 10, id="root"), span(1, "2", 0, 9, parent="1", id="child")
    orphan = span(1, "3", 0, 9, parent="lost", id="orphan")

    assert only(judge([root, child, orphan])).conversation == "root"
    assert only(judge([replace(root, conversation_ids=()), child, orphan])).conversation == "orphan"


def test_rule_4_on_one_span_the_keys_go_in_their_order():
    both = span(1, "1", 0, 10, conversation_ids=((2, "second"), (1, "first"), (0, "null")))

    assert only(judge([both])).conversation == "first"


def test_rule_5_links_are_followed_to_the_end_of_the_chain():
    spans = [*turn(1, 0), *turn(2, 20, None, links=[1]), *turn(3, 40, None, links=[2])]
    session = only(judge(spans))

    assert (session.conversation, session.attributed, session.runs) == ("c", True, 1)
    assert cut(judge(spans)) == [[1, 2, 3]]


def test_rule_5_without_an_id_anywhere_the_chain_ends_in_a_pseudo_conversation():
    session = only(judge([*turn(1, 0, None), *turn(2, 20, None, links=[1])]))

    assert (session.conversation, session.attributed) == (f"trace:{trace_id(1)}", False)


def test_rule_5_a_linked_trace_with_an_id_comes_before_an_earlier_one_without():
    spans = [*turn(1, 0, None), *turn(2, 5), *turn(3, 20, None, links=[1, 2, 99])]

    assert cut(judge(spans)) == [[2, 3]]


def test_rule_5_a_trace_with_an_id_pulls_in_nobody():
    spans = [*turn(1, 0, None), *turn(2, 5, links=[1])]

    assert {s.conversation for s in judge(spans).sessions} == {"c", f"trace:{trace_id(1)}"}


def test_rule_5_shared_response_ids_lead_to_the_earliest_trace_with_an_id():
    spans = [*turn(1, 0, None, response_id="r"), *turn(2, 5, response_id="r"), *turn(3, 20, None, response_id="r")]

    assert cut(judge(spans)) == [[1, 2, 3]]


def test_rule_5_a_cycle_ends_at_its_earliest_trace():
    spans = [*turn(1, 20, None, links=[2]), *turn(2, 10, None, links=[1]), *turn(3, 0, None, links=[1])]

    assert only(judge(spans)).conversation == f"trace:{trace_id(2)}"


def test_rule_5_a_chain_that_is_too_long_ends_at_its_earliest_trace():
    spans = [*turn(1, 100), *turn(2, 20, None, links=[1]), *turn(3, 40, None, links=[2])]
    world = judge(spans, settings=OSettings(longest_chain=2))

    assert cut(world) == [[1, 2]]
    assert cut(world, f"trace:{trace_id(2)}") == [[3]]


def test_rule_6_a_trace_without_work_opens_no_session_and_is_counted():
    world = judge([span(1, "1", 0, 10, "step", id="c"), span(1, "2", 0, 10, "guardrail", id="c")])

    assert world.sessions == []
    assert world.dropped == {"no_work": 2}


def test_rule_6_other_spans_give_ids_and_state_but_no_time():
    session = only(judge([span(1, "0", 0, 100, "step", id="c", issues=("i",)), span(1, "1", 20, 30, parent="0")]))

    assert (session.conversation, session.start, session.end) == ("c", at(20), at(30))
    assert session.issues == {"i"}


def test_rule_7_what_leads_to_a_trace_is_one_run_unless_the_gap_is_exceeded():
    within = [*turn(1, 0), *turn(2, 10 + 30 * MIN, None, links=[1])]
    beyond = [*turn(1, 0), *turn(2, 11 + 30 * MIN, None, links=[1])]

    assert only(judge(within)).runs == 1
    assert only(judge(beyond)).runs == 2


def test_rule_7_a_trace_without_work_goes_with_the_run_begun_last_before_it():
    idle = span(3, "1", 5000, 5001, "step", links=[1], family=("late",))
    spans = [*turn(1, 0), *turn(2, 4000, None, links=[1]), idle]
    world = judge(spans)

    assert cut(world) == [[1, 2, 3]]
    assert only(world).family == "late"


def test_rule_8_only_the_first_spans_of_a_trace_count():
    world = judge([*turn(1, 0), span(1, "3", 2, 90, "tool", tool="x")], settings=OSettings(max_spans_per_trace=2))

    assert world.dropped == {"truncated": 1}
    assert only(world).end == at(10)
    assert "truncated" in only(world).flags
