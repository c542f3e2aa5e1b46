"""Evaluations that spans carry: what is kept of them, and that they become an agent's own outcomes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.outcome import Outcome, OutcomeKind
from schemas.span import Evaluation, Scope
from tests.unit.core.ingest_support import SPAN, TRACE, Read, T, json_request, json_span, pairs, proto_request, read

ANNOTATED = Path(__file__).parents[2] / "golden" / "openinference-annotations"
RELEVANCE = {
    "gen_ai.evaluation.name": "Relevance",
    "gen_ai.evaluation.score.value": 0.9,
    "gen_ai.evaluation.score.label": "relevant",
    "gen_ai.evaluation.explanation": "the secret of the customer",
}


def event(attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    held = RELEVANCE if attributes is None else attributes
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": str(T + 3), "attributes": pairs(held), **fields}


def with_events(*events: dict[str, Any], **attributes: Any) -> Read:
    return read(json_request(json_span({"gen_ai.operation.name": "chat", **attributes}, events=list(events))))


def told(found: Read) -> list[Evaluation]:
    said = found.span.said
    return list(said.evaluations) if said is not None else []


def test_an_event_is_an_evaluation_of_its_span():
    found = with_events({"name": "another"}, event())
    assert told(found) == [Evaluation("Relevance", 0.9, "relevant", "", Scope.SPAN, T + 3)]
    assert b"secret" not in found.arrivals[0].body


def test_it_becomes_an_outcome_of_the_agents_own_addressed_to_its_trace():
    outcome = with_events(event()).outcome
    assert outcome.event_id == f"{TRACE.hex()}/{SPAN.hex()}/0"
    assert (outcome.kind, outcome.trace_id, outcome.session_id) == (OutcomeKind.EVALUATION, TRACE, "")
    assert outcome.from_agent
    assert outcome.data == {
        "name": "Relevance", "score": 0.9, "label": "relevant", "scope": "span", "state": "scored",
    }  # fmt: skip
    assert outcome.event_time == (T + 3) // 1000 * 1000


def test_several_have_several_identities_and_are_counted():
    found = with_events(event(), event(), event({"gen_ai.evaluation.name": "Tone"}))
    assert [one.event_id[-2:] for one in found.outcomes] == ["/0", "/1", "/2"]
    assert found.counts["received", "outcome"] == found.counts["used", "outcome"] == 3
    assert "state" not in found.outcomes[2].data


@pytest.mark.parametrize(
    "given",
    [
        event(name="gen_ai.evaluation"),
        event({"gen_ai.evaluation.score.value": 1.0}),
        event({"gen_ai.evaluation.name": " "}),
    ],
)
def test_what_names_no_evaluation_is_none(given: dict[str, Any]):
    found = with_events(given)
    assert not told(found)
    assert not found.outcomes


@pytest.mark.parametrize(("score", "kept"), [("0.5", None), (True, None), (1, 1.0), (None, None)])
def test_a_score_is_a_number(score: Any, kept: float | None):
    found = with_events(event({"gen_ai.evaluation.name": "x", "gen_ai.evaluation.score.value": score}))
    assert [one.score for one in told(found)] == [kept]


def test_an_event_without_a_time_has_the_spans_end_and_protobuf_says_the_same():
    for time in (None, "0", str(2**63), str(2**64 - 1)):
        assert [one.time for one in told(with_events(event(timeUnixNano=time)))] == [T + 5]
    request = proto_request({"gen_ai.operation.name": "chat"})
    made = request.resource_spans[0].scope_spans[0].spans[0].events.add(name="gen_ai.evaluation.result")
    made.attributes.add(key="gen_ai.evaluation.name").value.string_value = "Relevance"
    assert [(one.name, one.time) for one in told(read(request.SerializeToString()))] == [("Relevance", T + 5)]


def test_a_session_is_annotated_by_its_conversation_if_the_span_knows_it():
    name = "session.annotations.0.annotation.name"
    kind = {"openinference.span.kind": "EVALUATOR", name: "resolved"}
    known = read(json_request(json_span({**kind, "session.id": "c-1"}))).outcome
    unknown = read(json_request(json_span(kind))).outcome
    assert (known.session_id, known.trace_id) == ("c-1", b"")
    assert (unknown.session_id, unknown.trace_id) == ("", TRACE)


@pytest.mark.parametrize("form", ["pb", "json"])
def test_what_openinferences_helpers_set_is_read(form: str):
    known = json.loads((ANNOTATED / "expected.json").read_text())["expected_feedback_from_spans"]
    expected = Counter(
        {
            (one["scope"], one["name"], one["score"], one["label"], one["annotator"].lower()): one.get("count", 1)
            for one in known
        }
    )
    assert Counter(map(_as_told, read((ANNOTATED / f"traces.otlp.{form}").read_bytes()).outcomes)) == expected


def _as_told(outcome: Outcome) -> tuple[Any, ...]:
    return tuple(outcome.data.get(name) for name in ("scope", "name", "score", "label", "annotator"))
