"""OTLP as it is really sent: ids, numbers, enums, arrays, bad bytes and cut text, from the record to the verdict.

The cases are listed in docs/design/CASES.md.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.timeline import HOUR, SECOND, TimeRules
from schemas.span import SpanFlag
from tests.builders import T0, span_id, trace_id
from tests.unit.core.ingest_support import json_span, pairs, proto_request
from tests.unit.core.line import AGENT, CHAT, Line, sent, tool, turn

END = T0 + 10 * SECOND
FAR = END + 3 * HOUR
ASK = {"trueup.task.family": "ask", "session.id": "c"}


def line(check: str = "state.x == 1", **options: Any) -> Line:
    text = f'family: ask\nversion: 1\ncriteria:\n  - {{id: k, check: "{check}"}}\n'
    return Line(book=load([("c.yaml", text)], TimeRules()), **options)


def judged(found: Line) -> tuple[str, str]:
    (criterion,) = found.until(FAR).only()["criteria"]
    return criterion["status"], criterion["reason"]


def posted(found: Line, body: Any) -> Line:
    """A record of plain JSON."""
    return found.record(json.dumps(body).encode(), END + SECOND)


def resource_spans(*spans: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"scopeSpans": [{"spans": list(spans)}]}]


# -- ids ---------------------------------------------------------------------------------------------------------------

Encode = Callable[[bytes], str]
SPELLINGS: dict[str, Encode] = {
    "upper case": lambda raw: raw.hex().upper(),
    "base64": lambda raw: b64encode(raw).decode(),
    "base64 of hex": lambda raw: b64encode(raw.hex().encode()).decode(),
}
TRACE = bytes.fromhex("5b8efff798038103d269b633813fc60c")


def in_ids(one: dict[str, Any], encode: Encode) -> dict[str, Any]:
    """The span of another path, with its ids spelled otherwise."""
    given = {name: bytes.fromhex(one[name]) for name in ("traceId", "spanId", "parentSpanId") if name in one}
    return {**one, **{name: encode(raw) for name, raw in given.items()}}


def two_paths(first: Encode, second: Encode) -> Line:
    agent, answer = turn(1, T0, {**ASK, "trueup.state.x": 1})
    spans = [{**one, "traceId": TRACE.hex()} for one in (agent, answer)]
    found = line()
    for encode in (first, second):
        found.spans(*(in_ids(one, encode) for one in spans), record_time=END + SECOND)
    return found.until(FAR)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_case_D01_a_trace_that_comes_by_two_paths_with_other_spellings_is_one(spelling: str) -> None:
    found = two_paths(bytes.hex, SPELLINGS[spelling])
    assert (found.only()["trace_ids"], found.only()["runs"]) == ([TRACE.hex()], 1)
    assert found.counted("dropped", "duplicate") == 2
    noted = {"upper case": "id_hex", "base64": "id_base64", "base64 of hex": "id_hex_text"}[spelling]
    assert (found.counted("noted", noted) > 0) is (spelling != "upper case")


def test_case_D02_hex_that_was_decoded_as_base64_is_turned_back() -> None:
    found = two_paths(bytes.hex, lambda raw: b64decode(raw.hex()).hex())
    assert found.only()["trace_ids"] == [TRACE.hex()]
    assert found.counted("noted", "id_hex_as_base64") == 5


def test_case_D02_what_nothing_explains_is_put_aside_and_never_used_as_it_is() -> None:
    odd = {**turn(1, T0, ASK)[0], "traceId": "ab" * 20}
    found = line().spans(odd).until(FAR)
    assert found.sessions() == []
    assert [one.reason for one in found.letters()] == ["bad_id"]


# -- numbers, enums, values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [str, int], ids=["as text", "as a number"])
def test_case_D03_int64_is_read_in_both_forms_and_exactly(form: Any) -> None:
    one = json_span(
        traceId=trace_id(1),
        spanId=span_id(1),
        startTimeUnixNano=form(T0 + 1),
        endTimeUnixNano=form(END),
        attributes=[*pairs({**AGENT, **ASK}), {"key": "trueup.state.x", "value": {"intValue": form(2**63 - 1)}}],
    )
    found = posted(line(f"state.x == {2**63 - 1}"), {"resourceSpans": resource_spans(one)})
    assert judged(found) == ("passed", "met")
    assert found.rows("agent_steps")[0]["start"] == T0 + 1


def test_case_D03_a_bad_number_costs_its_attribute_only() -> None:
    bad = {"key": "trueup.state.y", "value": {"intValue": "many"}}
    agent, answer = turn(1, T0, {**ASK, "trueup.state.x": 1})
    found = line().spans({**agent, "attributes": [*agent["attributes"], bad]}, answer)
    assert judged(found) == ("passed", "met")
    assert [one.reason for one in found.letters()] == ["bad_attribute"]


@pytest.mark.parametrize("kind", [2, "2", "SPAN_KIND_SERVER"])
def test_case_D04_enum_names_are_read_and_text_that_looks_like_one_is_text(kind: Any) -> None:
    agent, answer = turn(1, T0, {**ASK, "trueup.state.x": "STATUS_CODE_ERROR"})
    found = line("state.x == 'STATUS_CODE_ERROR'").spans({**agent, "kind": kind}, answer)
    assert judged(found) == ("passed", "met")


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize(("code", "ok"), [(0, 1), (1, 1), (2, 0)], ids=["unset", "ok", "error"])
def test_case_D05_no_ordinal_is_shifted(kind: int, code: int, ok: int) -> None:
    call = sent(1, 150, T0, T0 + SECOND, tool("look"), 100, kind=kind, status={"code": code})
    found = line().spans(*turn(1, T0, ASK), call).until(FAR)
    assert found.rate("tool_success") == (ok, 1)
    assert found.only()["errors"] == 1 - ok


def test_case_D07_of_two_values_in_one_a_fixed_one_holds_and_is_counted() -> None:
    value = {"intValue": "2", "stringValue": "one"}
    agent, answer = turn(1, T0, ASK)
    both = [*agent["attributes"], {"key": "trueup.state.x", "value": value}]
    found = line("state.x == 'one'").spans({**agent, "attributes": both}, answer)
    assert judged(found) == ("passed", "met")
    assert found.counted("noted", "several_values") == 1


@pytest.mark.parametrize("field", ["resourceSpans", "resource_spans", "batches"])
def test_case_D08_an_envelope_of_another_name_is_no_empty_success(field: str) -> None:
    found = posted(line(), {field: resource_spans(*turn(1, T0, {**ASK, "trueup.state.x": 1}))})
    assert judged(found) == ("passed", "met")
    unknown = posted(line(), {"spanSets": resource_spans(*turn(1, T0, ASK))}).until(FAR)
    assert unknown.sessions() == []
    assert len(unknown.letters()) == 1


@pytest.mark.parametrize("status", [None, {}, {"message": "fine"}])
def test_case_D09_without_a_status_it_is_unset(status: Any) -> None:
    call = {**sent(1, 150, T0, T0 + SECOND, tool("look"), 100), "status": status}
    found = line().spans(*turn(1, T0, ASK), {name: value for name, value in call.items() if value is not None})
    assert found.until(FAR).rate("tool_success") == (1, 1)


@pytest.mark.parametrize("resource", [None, {}, {"attributes": []}])
def test_case_D11_a_span_without_resource_is_in_its_session_all_the_same(resource: Any) -> None:
    agent, answer = turn(1, T0, {**ASK, "trueup.state.x": 1})
    forwarded = {"resource": resource, "scopeSpans": [{"spans": [answer]}]}
    found = line()
    found.spans(agent, resource={"service.name": "shop"})
    posted(found, {"resourceSpans": [{name: value for name, value in forwarded.items() if value is not None}]})
    assert judged(found) == ("passed", "met")
    assert (found.only()["tenant"], found.only()["trace_ids"]) == ("default", [trace_id(1)])


# -- bad bytes ---------------------------------------------------------------------------------------------------------


def garbled(spans: int) -> bytes:
    """Spans of one trace; the third holds text that was cut in the midst of a character."""
    said = [{**AGENT, **ASK, "trueup.state.x": 1} if not n else {**CHAT, "note": "good"} for n in range(spans)]
    said[2]["note"] = "PLACEHOLDER"
    request = proto_request(*said, start_time_unix_nano=T0, end_time_unix_nano=END)
    return bytes(request.SerializeToString()).replace(b"PLACEHOLDER", "你好你".encode()[:8] + b"abc")


def test_case_D12_text_that_is_no_utf8_flags_its_span_and_loses_none() -> None:
    found = line().record(garbled(50), END + SECOND)
    assert judged(found) == ("passed", "met")
    steps = found.rows("agent_steps")
    assert len(steps) == 50
    assert sum(bool(row["flags"] & SpanFlag.BAD_UTF8) for row in steps) == 1


def test_case_D13_it_is_told_once_and_never_tried_again() -> None:
    found = line().record(garbled(5), END + SECOND).until(FAR)
    assert [one.reason for one in found.letters()] == ["bad_utf8"]
    again = line().record(b"\xff\xfe\x00", END).until(FAR)
    assert len(again.letters()) == 1


# -- what is missing, arrays, huge and cut values ----------------------------------------------------------------------


@pytest.mark.parametrize("check", ["state.x == 0", "state.x == false", "!state.x", "state.x == ''", "state.x != 1"])
@pytest.mark.parametrize("said", [{}, {"trueup.state.x": None}], ids=["never sent", "left None"])
def test_case_D15_what_is_missing_is_neither_zero_nor_false(check: str, said: dict[str, Any]) -> None:
    found = line(check).spans(*turn(1, T0, {**ASK, **said}))
    assert judged(found) == ("failed", "not_reported")
    rows = [(row["criterion"], row["reason"]) for row in found.rows("criteria") if row["status"] == "failed"]
    assert set(rows) == {("k", "not_reported")}, "so that it can be counted how often a field is missing"


@pytest.mark.parametrize(
    ("value", "check"),
    [
        (["length"], "'length' in state.x"),
        (["a", "length"], "state.x.exists(one, one == 'length')"),
        ([1, "a", True], "state.x[1] == 'a'"),
        ({"effort": "medium", "b": [1]}, 'state.x.contains(\'\\"effort\\":\\"medium\\"\')'),
        ([], "size(state.x) == 0"),
    ],
    ids=["an array", "contains", "mixed", "a map is canonical JSON", "empty"],
)
def test_case_D16_arrays_and_maps_are_kept_and_can_be_asked(value: Any, check: str) -> None:
    found = line(check).spans(*turn(1, T0, {**ASK, "trueup.state.x": value}))
    assert judged(found) == ("passed", "met")


def test_case_D17_one_huge_number_costs_nothing_but_itself() -> None:
    huge = {"key": "trueup.state.huge", "value": {"intValue": "18446744073709551615"}}
    agent, answer = turn(1, T0, {**ASK, "trueup.state.x": 1})
    found = line().spans({**agent, "attributes": [*agent["attributes"], huge]}, answer, *turn(2, T0, ASK))
    assert judged(found) == ("passed", "met")
    assert [(one.reason, one.trace_id) for one in found.letters()] == [("bad_attribute", trace_id(1))]
    assert len(found.rows("agent_steps")) == 4


def test_case_D19_tokens_are_what_is_said_and_a_total_is_not_needed() -> None:
    usage = {"gen_ai.usage.input_tokens": 70, "gen_ai.usage.output_tokens": 7}
    agent, answer = turn(1, T0, ASK)
    answer["attributes"] += pairs(usage)
    found = line().spans(agent, answer, sent(1, 150, T0, END, CHAT, 100)).until(FAR)
    assert found.only()["tokens"] == [70, 7, 0]


def test_case_D20_numbers_of_64_bits_never_pass_through_a_double() -> None:
    exact = 2**53 + 1
    agent, answer = turn(1, T0 + 1, ASK)
    agent["attributes"].append({"key": "trueup.state.x", "value": {"intValue": exact}})
    body = json.dumps({"resourceSpans": resource_spans(agent, answer)})
    body = body.replace(f'"{T0 + 1}"', str(T0 + 1))  # as a bare number
    found = line(f"state.x == {exact}").record(body.encode(), END + SECOND)
    assert judged(found) == ("passed", "met")
    assert {row["start"] for row in found.rows("agent_steps")} == {T0 + 1}


@pytest.mark.parametrize("size", [20, 1028, 70_000])
def test_case_D21_json_that_was_cut_is_a_value_still_and_loses_no_span(size: int) -> None:
    whole = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "name": "look"}] * 2000}])
    cut = {"gen_ai.output.messages": whole[:size], "trueup.state.x": 1, "trueup.state.cut": whole[:size]}
    agent, answer = turn(1, T0, {**ASK})
    answer["attributes"] += pairs(cut)
    found = line(f"state.x == 1 && size(state.cut) == {size}").spans(agent, answer)
    assert judged(found) == ("passed", "met")
    assert found.letters() == []
    assert found.only()["terminal_reason"] == "completed", (
        "how many tools it asked for is not known, so it waits for none"
    )


def test_case_D21_a_name_beyond_its_limit_is_cut_and_marked() -> None:
    found = line().spans(*turn(1, T0, ASK), sent(1, 150, T0, END, tool("t" * 5000), 100)).until(FAR)
    (step,) = [row for row in found.rows("agent_steps") if row["tool"]]
    assert len(step["tool"]) == 1024
    assert step["flags"] & SpanFlag.CUT
