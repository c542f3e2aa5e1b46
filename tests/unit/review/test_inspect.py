"""What is said of a file beside its sessions: what is lost, and why; calls that wait or were never made."""

from __future__ import annotations

import json
from typing import Any

from pipeline.core.judging.views import RunView, runs_of
from pipeline.core.timeline import MINUTE
from pipeline.review.grouping import conversations
from pipeline.review.inspect import FileSeen, inspect
from pipeline.review.sessions import CallSeen
from tests.unit.core.ingest_support import T, json_request, json_span, pairs, read

AGENTS_SDK = "opentelemetry.instrumentation.genai.openai_agents"


def seen(*spans: dict[str, Any], scope: str = "", **options: Any) -> FileSeen:
    (found,) = inspect([("file", request_of(*spans, scope=scope))], **options).files
    return found


def request_of(*spans: dict[str, Any], scope: str) -> bytes:
    return json_request(*spans).replace(b'{"spans":', b'{"scope": {"name": "%s"}, "spans":' % scope.encode())


def span(number: int, operation: str, /, parent: int = 0, trace: int = 1, **attributes: Any) -> dict[str, Any]:
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    failed = held.pop("status", None)
    return json_span(
        {"gen_ai.operation.name": operation, **held},
        traceId=f"{trace:032x}",
        spanId=f"{number:016x}",
        parentSpanId=f"{parent:016x}" if parent else None,
        startTimeUnixNano=str(T + 10 * number),
        endTimeUnixNano=str(T + 10 * number + 5),
        status=failed,
    )


def tool(number: int, name: str = "refund", **attributes: Any) -> dict[str, Any]:
    return span(number, "execute_tool", gen_ai__tool__name=name, session__id="c", **attributes)


def interrupted(number: int, **attributes: Any) -> dict[str, Any]:
    status = {"code": 2, "message": "(Interrupt(value"}
    return tool(number, status=status, **attributes)


def calls(*spans: dict[str, Any], scope: str = "") -> list[CallSeen]:
    (session,) = seen(*spans, scope=scope).sessions
    return session.tool_calls


def runs(*spans: dict[str, Any], scope: str) -> list[RunView]:
    (conversation,) = conversations(read(request_of(*spans, scope=scope)).spans, 100)
    return runs_of(conversation.traces, MINUTE)


def why(found: FileSeen) -> dict[str, tuple[int, str]]:
    return {one.reason: (one.count, one.why) for one in found.lost}


def test_an_interrupted_call_waits_until_it_runs():
    assert calls(interrupted(1)) == [CallSeen("refund", "waiting")]
    assert calls(interrupted(1), tool(2)) == [CallSeen("refund", "ok")]
    assert calls(tool(1), interrupted(2)) == [CallSeen("refund", "ok"), CallSeen("refund", "waiting")]
    same = {"gen_ai__tool__call__id": "1"}
    assert calls(interrupted(1, **same), tool(2, **same)) == [CallSeen("refund", "ok", "1")]


def test_a_request_has_no_result_until_the_call_is_made():
    request = tool(1, gen_ai__tool__call__arguments="{}")
    made = tool(2, gen_ai__tool__call__arguments="{}", gen_ai__tool__call__result="done")
    assert calls(request, scope=AGENTS_SDK) == [CallSeen("refund", "no_result")]
    assert calls(request, made, scope=AGENTS_SDK) == [CallSeen("refund", "ok")]
    assert calls(request, scope="app") == [CallSeen("refund", "ok")]


def test_a_request_that_is_not_answered_keeps_its_run_waiting():
    """The model asked for one call, and none was made (RULES.md 17)."""
    asked = span(1, "chat", session__id="c", gen_ai__output__messages='[{"parts":[{"type":"tool_call"}]}]')
    for result, waits in (({}, True), ({"gen_ai__tool__call__result": "done"}, False)):
        request = tool(2, gen_ai__tool__call__arguments="{}", **result)
        (run,) = runs(asked, request, scope=AGENTS_SDK)
        assert run.waits is waits


def test_runs_that_an_interrupt_stopped_are_counted():
    (session,) = seen(interrupted(1), tool(2)).sessions
    assert (session.runs, session.waits_for_human) == (1, 1)


def test_a_run_without_an_id_is_its_own_session_and_said_to_be_one():
    found = seen(span(1, "chat"), span(2, "chat", trace=2))
    assert [session.session_id for session in found.sessions] == [None, None]
    assert why(found)["no_conversation_id"][0] == 2


def test_a_key_that_may_hold_the_missing_id_is_named():
    found = seen(span(1, "chat", acme__sessionId="7"))
    count, text = why(found)["looks_like_session_id"]
    assert count == 1
    assert "acme.sessionId" in text
    assert why(seen(span(1, "chat", acme__sessionId="7"), span(2, "chat", session__id="c"))) == {}
    configured = seen(span(1, "chat", acme__sessionId="7"), conversation_keys=("acme.sessionId",))
    assert [session.session_id for session in configured.sessions] == ["7"]
    assert configured.lost == []


def test_a_key_that_may_hold_the_id_that_an_evaluation_is_missing_is_named():
    attributes = pairs({"gen_ai.evaluation.name": "relevance", "acme.sessionId": "7"})
    record = {"timeUnixNano": str(T), "eventName": "gen_ai.evaluation.result", "attributes": attributes}
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    (found,) = inspect([("logs", logs)]).files
    assert {reason: count for reason, (count, _) in why(found).items()} == {"looks_like_session_id": 1, "no_address": 1}
    assert "acme.sessionId" in why(found)["looks_like_session_id"][1]
    (heeded,) = inspect([("logs", logs)], aliases={"conversation": ("acme.sessionId",)}).files
    assert list(why(heeded)) == ["no_session"]


def test_a_session_costs_what_its_model_calls_cost_if_all_say_it():
    used: dict[str, Any] = {"session__id": "c", "gen_ai__usage__input_tokens": 7}
    priced = span(1, "chat", operation__cost=0.25, gen_ai__response__id="r", **used)
    again = span(2, "chat", operation__cost=0.25, gen_ai__response__id="r", **used)
    other = span(3, "chat", operation__cost=0.5, **used)
    assert [one.cost_usd for one in seen(priced, again, other).sessions] == [0.75]
    assert [one.cost_usd for one in seen(priced, span(3, "chat", **used)).sessions] == [None]


def test_aliases_are_heeded():
    found = seen(span(1, "invoke_agent", acme__agent="triage", session__id="c"), aliases={"agent": ("acme.agent",)})
    assert found.sessions[0].agents == ["triage"]


def test_traces_without_work_are_counted_as_lost():
    found = seen(span(1, "create_agent"), span(2, "chat", trace=2, session__id="c"))
    assert len(found.sessions) == 1
    assert why(found) == {"no_work": (1, "traces without model, tool, agent or hand-off spans open no session")}


def test_what_cannot_be_read_is_lost_with_its_reason():
    (found,) = inspect([("notes.txt", b"hello")]).files
    assert (found.spans, found.sessions) == (0, [])
    assert list(why(found)) == ["not_otlp"]
    bad = span(1, "chat")
    bad["traceId"] = "zz"
    assert why(seen(bad, tool(2)))["bad_id"][0] == 1


def test_each_file_stands_alone():
    content = json_request(tool(1))
    report = inspect([("a", content), ("b", content)])
    assert [(one.file, one.spans, len(one.sessions)) for one in report.files] == [("a", 1, 1), ("b", 1, 1)]


def test_agents_without_spans_of_their_own_are_those_that_model_spans_work_for():
    found = seen(span(1, "chat", langsmith__metadata__lc_agent_name="triage", session__id="c"), span(2, "chain"))
    assert (found.sessions[0].agents, found.sessions[0].agent_trail) == (["triage"], [])


def test_case_A15_one_id_for_several_users_is_named_with_what_to_do() -> None:
    found = seen(*(span(n, "chat", trace=n, session__id="flow", user__id=f"user {n}") for n in (1, 2)))

    assert why(found)["several_subjects"][0] == 1
    assert "name another conversation key" in why(found)["several_subjects"][1]
    assert "several_subjects" not in why(seen(span(1, "chat", session__id="flow", user__id="user 1")))


def test_case_A08_spans_whose_parents_are_not_in_the_file_are_named() -> None:
    assert why(seen(span(2, "chat", parent=1, session__id="c")))["missing_parents"][0] == 1
