"""One evaluation, told in every way there is, finds the session of its trace.

The rule this file keeps: what an outcome comes by changes who is believed, and nothing else (RULES.md 40, 40a).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND, to_datetime
from schemas.topics import Topic
from tests.builders import T0, span_id, trace_id
from tests.unit.core.ingest_support import pairs
from tests.unit.core.line import CHAT, ORDER, Line, sent

END = T0 + 10 * SECOND
PLACED = {**ORDER, "session.id": "c"}
SAID = {"gen_ai.evaluation.name": "Tone", "gen_ai.evaluation.score.value": 0.25}
RESULT = "gen_ai.evaluation.result"
Way = Callable[[Line, dict[str, Any]], Line]


def run(line: Line, root: dict[str, Any], **model: Any) -> Line:
    """A session; `root` says whose it is."""
    more = model.pop("attributes", {})
    return line.spans(sent(1, 100, T0, END, root), sent(1, 101, T0, END, {**CHAT, **more}, 100, **model))


def by_topic(line: Line, root: dict[str, Any]) -> Line:
    data = {"name": "Tone", "score": 0.25}
    return run(line, root).outcome("e", END, "evaluation", trace_id=trace_id(1), data=data)


def by_span_event(line: Line, root: dict[str, Any]) -> Line:
    return run(line, root, events=[{"name": RESULT, "timeUnixNano": str(END), "attributes": pairs(SAID)}])


def by_log_record(line: Line, root: dict[str, Any]) -> Line:
    record = {"timeUnixNano": str(END), "eventName": RESULT, "attributes": pairs(SAID)}
    record |= {"traceId": trace_id(1), "spanId": span_id(101)}
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    run(line, root)
    line.runner.feed(Topic.OTLP_LOGS, json.dumps(request).encode(), END + SECOND)
    line.runner.drain()
    return line


def by_annotation(line: Line, root: dict[str, Any]) -> Line:
    stem = "trace.evaluations.0.evaluation"
    return run(line, {**root, f"{stem}.name": "Tone", f"{stem}.score": 0.25})


WAYS: list[Any] = [
    pytest.param(by_topic, 0, id="outcome topic"),
    pytest.param(by_span_event, 1, id="event of a span"),
    pytest.param(by_log_record, 1, id="log record"),
    pytest.param(by_annotation, 1, id="annotation"),
]


def tone(found: dict[str, Any]) -> list[tuple[str, float]]:
    return [(one["name"], one["score"]) for one in found["quality"].get("evaluations", ())]


@pytest.mark.parametrize(("way", "from_agent"), WAYS)
def test_an_evaluation_finds_the_session_of_its_trace(way: Way, from_agent: int) -> None:
    line = way(Line(), PLACED).until(END + 3 * HOUR)
    assert tone(line.only()) == [("Tone", 0.25)]
    assert [(row["via"], row["from_agent"]) for row in line.rows("outcomes")] == [(f"trace:{trace_id(1)}", from_agent)]
    assert (line.waiting(), line.letters()) == (0, [])


@pytest.mark.parametrize(("way", "from_agent"), WAYS)
def test_it_follows_its_trace_when_an_id_comes_later(way: Way, from_agent: int) -> None:
    line = way(Line(), ORDER).until(END + 20 * MINUTE)
    assert line.only()["conversation"] == f"trace:{trace_id(1)}"
    line.spans(sent(1, 150, T0, END, {"session.id": "d"}, 100)).until(END + 3 * HOUR)
    assert (line.only()["conversation"], tone(line.only())) == ("d", [("Tone", 0.25)])
    (there,) = [row for row in line.rows("outcomes") if row["conversation"] == "d"]
    assert there["from_agent"] == from_agent


@pytest.mark.parametrize("listed", [False, True], ids=["one event", "a list of events"])
def test_events_on_the_topic_come_alone_or_in_a_list(listed: bool) -> None:
    event = {
        "event_id": "e",
        "event_time": to_datetime(END).isoformat(),
        "source": "crm",
        "kind": "reopen",
        "session_id": "c",
    }
    line = run(Line(), PLACED)
    line.runner.feed(Topic.OUTCOMES, json.dumps([event] if listed else event).encode(), END + SECOND)
    assert line.until(END + 3 * HOUR).only()["reopened"] is True
