"""Outcome events on their way to their identity."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
import rfc8785

from pipeline.core.timeline import MINUTE
from schemas.outcome import MOST_KEYS, OutcomeKind
from schemas.topics import Topic
from tests.unit.core.ingest_support import TRACE, Read, T, ingest, read

EVENT: dict[str, Any] = {
    "event_id": "e1",
    "event_time": "2025-10-09T08:53:20Z",  # T
    "source": "billing",
    "kind": "evidence",
    "correlation": {"order_id": "A-100"},
    "data": {"payment_status": "settled"},
}


def outcome(record_time: int = T, options: dict[str, Any] | None = None, **fields: Any) -> Read:
    event = {name: value for name, value in {**EVENT, **fields}.items() if value is not ...}
    return read(json.dumps(event).encode(), record_time, Topic.OUTCOMES, **(options or {}))


def addressed(**fields: Any) -> Read:
    return outcome(correlation=..., **fields)


def test_an_event_becomes_an_outcome():
    found = outcome(tenant=" acme ", event_version=3).outcome
    assert (found.tenant, found.source, found.event_id, found.event_version) == ("acme", "billing", "e1", 3)
    assert (found.kind, found.event_time, found.clock_ahead) == (OutcomeKind.EVIDENCE, T, False)
    assert (found.keys, found.session_id, found.trace_id) == ((("order_id", "A-100"),), "", b"")
    assert found.data == {"payment_status": "settled"}


def test_the_digest_is_of_the_canonical_event_with_defaults_and_tenant():
    whole = {
        **EVENT,
        "event_version": 1,
        "tenant": "default",
        "session_id": None,
        "ordinal": None,
        "trace_id": None,
    }
    expected = sha256(rfc8785.dumps(whole)).digest()
    assert outcome().outcome.digest == expected
    assert outcome(event_version=1, tenant="default", session_id=None).outcome.digest == expected
    assert outcome(event_time="2025-10-09T10:53:20+02:00").outcome.digest == expected
    assert outcome(data={"payment_status": "declined"}).outcome.digest != expected


def test_numbers_that_canonical_json_does_not_know_still_make_different_digests():
    one, other = outcome(data={"n": 2**60}).outcome, outcome(data={"n": 2**60 + 1}).outcome
    assert (one.data, other.data) == ({"n": 2**60}, {"n": 2**60 + 1})
    assert one.digest != other.digest


def test_a_list_is_read_event_by_event_and_a_bad_one_is_buried_alone():
    events = [EVENT, {**EVENT, "kind": "rumour"}, 5, {**EVENT, "event_id": "e2"}]
    result = read(json.dumps(events).encode(), T, Topic.OUTCOMES)
    assert [found.event_id for found in result.outcomes] == ["e1", "e2"] or len(result.outcomes) == 2
    assert result.reasons == ["bad_outcome", "bad_outcome"]
    assert result.letters[0].detail.startswith("kind: ")
    assert result.counts == {
        ("received", "outcome"): 4,
        ("used", "outcome"): 2,
        ("dead_lettered", "bad_outcome"): 2,
    }


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"event_id": ...}, "event_id: ", id="no id"),
        pytest.param({"event_time": "2026-04-02T10:00:00"}, "event_time: ", id="no time zone"),
        pytest.param({"event_time": "1969-04-02T10:00:00Z"}, "event_time: ", id="before 1970"),
        pytest.param({"event_time": "yesterday"}, "event_time: ", id="no time"),
        pytest.param({"correlation": ...}, "exactly one of", id="no address"),
        pytest.param({"session_id": "c"}, "exactly one of", id="two addresses"),
        pytest.param({"correlation": {"order_id": " null "}}, "correlation: no key", id="keys without values"),
        pytest.param({"kind": "reopen", "correlation": {"a": 1, "b": 2}}, "only evidence", id="too many keys"),
        pytest.param({"correlation": ..., "session_id": "  "}, "session_id: ", id="a blank session"),
        pytest.param({"correlation": ..., "trace_id": "0" * 32}, "trace_id: ", id="a zero trace"),
        pytest.param({"correlation": ..., "trace_id": "xyz"}, "trace_id: ", id="no trace id"),
        pytest.param(
            {"correlation": ..., "session_id": "trace:" + "0a" * 16, "ordinal": 1}, "ordinal: ", id="ordinal of a trace"
        ),
        pytest.param({"ordinal": 1}, "ordinal goes with", id="ordinal without a session"),
        pytest.param({"colour": "red"}, "colour: ", id="an unknown field"),
        pytest.param({"event_version": -1}, "event_version: ", id="a negative version"),
        pytest.param({"event_version": 2**63}, "event_version: ", id="a version beyond 64 bits"),
        pytest.param({"data": {"x": [float("nan")]}}, "data.x: ", id="NaN"),
        pytest.param(
            {"correlation": ..., "session_id": "c", "ordinal": 10**20},
            f"ordinal: Input should be less than or equal to {2**63 - 1}",
            id="an ordinal beyond 64 bits",
        ),
        pytest.param({"correlation": ..., "session_id": 10**2000}, "session_id: is a whole number", id="an endless id"),
        pytest.param({"data": {"x": {"y": [-(10**2000)]}}}, "data.x.y: is a whole number", id="an endless number"),
        pytest.param({"data": {"x": {"y": float("inf")}}}, "data.x.y: ", id="infinity"),
    ],
)
def test_a_bad_event_says_which_field_and_why(fields: dict[str, Any], words: str):
    result = outcome(**fields)
    assert result.outcomes == []
    assert result.reasons == ["bad_outcome"]
    assert words in result.letters[0].detail


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize(
    "fields",
    [
        lambda said: {"correlation": ..., "session_id": said},
        lambda said: {"correlation": ..., "session_id": "c", "ordinal": said},
        lambda said: {"correlation": ..., "trace_id": said},
        lambda said: {"correlation": {"order_id": said}},
        lambda said: {"correlation": {"order_id": "A-100", "other": said}},
        lambda said: {"event_version": said},
        lambda said: {"event_time": said},
    ],
    ids=["session_id", "ordinal", "trace_id", "a key", "one key of two", "event_version", "event_time"],
)
def test_a_boolean_is_no_id_and_no_number(fields: Any, said: bool):
    result = outcome(**fields(said))
    assert (result.outcomes, result.reasons) == ([], ["bad_outcome"])
    assert "true and false are no ids" in result.letters[0].detail


ZERO = "a\0b"


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("tenant", {"tenant": ZERO}),
        ("source", {"source": ZERO}),
        ("correlation", {"correlation": {ZERO: "7"}}),
        ("session_id", {"correlation": ..., "session_id": " \0erased"}),
    ],
)
def test_a_zero_character_is_refused_where_it_would_make_one_id_of_two(place: str, fields: dict[str, Any]):
    result = outcome(**fields)
    assert (result.outcomes, result.reasons) == ([], ["bad_outcome"])
    assert result.letters[0].detail.startswith(place)
    assert "zero character" in result.letters[0].detail


def test_a_zero_character_in_the_last_part_of_an_id_is_a_character():
    found = addressed(event_id=ZERO, session_id=ZERO).outcome
    assert (found.event_id, found.session_id) == (ZERO, ZERO)


@pytest.mark.parametrize("kind", ["evidence", "retract"])
def test_an_event_has_so_many_keys_and_no_more(kind: str):
    keys = {f"k{n}": n for n in range(MOST_KEYS)}
    assert len(outcome(kind=kind, correlation=keys).outcome.keys) == MOST_KEYS
    result = outcome(kind=kind, correlation={**keys, "more": 1})
    assert (result.outcomes, result.reasons) == ([], ["bad_outcome"])
    assert f"at most {MOST_KEYS} keys, not {MOST_KEYS + 1}" in result.letters[0].detail


HALF = "a\ud800"
HALVES: dict[str, dict[str, Any]] = {
    "tenant": {"tenant": HALF},
    "source": {"source": HALF},
    "event_id": {"event_id": HALF},
    "session_id": {"correlation": ..., "session_id": HALF},
    "trace_id": {"correlation": ..., "trace_id": HALF},
    "correlation.order_id": {"correlation": {"order_id": HALF}},
    "correlation.a?": {"correlation": {HALF: "7"}},
    "data.payment": {"data": {"payment": HALF}},
    "data.items.deep": {"data": {"items": [{"deep": ["x", HALF]}]}},
    "data.items.a?": {"data": {"items": [{HALF: 1}]}},
    "data.name": {"kind": "evaluation", "data": {"name": HALF, "score": 1}},
    "a?": {HALF: 1},
}


@pytest.mark.parametrize(("place", "fields"), HALVES.items(), ids=list(HALVES))
def test_half_of_a_surrogate_pair_is_refused_wherever_it_is(place: str, fields: dict[str, Any]):
    result = outcome(**fields)
    assert (result.outcomes, result.reasons) == ([], ["bad_outcome"])
    assert result.letters[0].detail.startswith(f"{place}: ")
    assert "half of a surrogate pair" in result.letters[0].detail


ENDLESS = "1" * 5000


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (f'"session_id": {ENDLESS}', "session_id"),
        (f'"session_id": "c", "ordinal": {ENDLESS}', "ordinal"),
        (f'"session_id": "c", "data": {{"x": {{"y": [-{ENDLESS}]}}}}', "data.x.y"),
        (f'"session_id": "c", "event_version": {ENDLESS}', "event_version"),
        (f'"session_id": "c", "data": {{"x": {"[" * 300}1{"]" * 300}}}', "data.x"),
    ],
)
def test_an_endless_number_and_an_endless_nest_cost_no_neighbour(said: str, place: str):
    good = json.dumps({**EVENT, "event_id": "e2"})
    bad = f'{{"event_id": "e1", "event_time": "2025-10-09T08:53:20Z", "source": "s", "kind": "reopen", {said}}}'
    result = read(f"[{bad}, {good}]".encode(), T, Topic.OUTCOMES)
    assert (result.outcome.event_id, result.reasons) == ("e2", ["bad_outcome"])
    assert result.letters[0].detail.startswith(place)


def test_bytes_that_are_no_utf_8_are_refused_and_their_neighbour_counts():
    value = json.dumps([EVENT, {**EVENT, "event_id": "e2", "data": {"x": "PLACE"}}]).encode()
    result = read(value.replace(b"PLACE", b"\xff\xfe"), T, Topic.OUTCOMES)
    assert (result.outcome.event_id, result.reasons) == ("e1", ["bad_outcome"])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param(2**63 - 1, 2**63 - 1, id="64 bits"),
        pytest.param(2**63, str(2**63), id="one more"),
        pytest.param(-(10**25), "-1" + "0" * 25, id="far below"),
        pytest.param([10**20], '["1' + "0" * 20 + '"]', id="in a list"),
        pytest.param({"a": 10**20}, '{"a":"1' + "0" * 20 + '"}', id="deeper"),
    ],
)
def test_a_whole_number_that_64_bits_do_not_hold_is_kept_as_text(value: Any, kept: Any):
    assert outcome(data={"x": value}).outcome.data == {"x": kept}


@pytest.mark.parametrize("value", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"hello"])
def test_garbage_is_buried_with_what_it_looks_like(value: bytes):
    result = read(value, T, Topic.OUTCOMES)
    assert result.outcomes == []
    assert result.reasons == (["bad_outcome"] if value else [])


@pytest.mark.parametrize(("given", "session"), [("c1", "c1"), (" c1 ", "c1"), (123, "123"), (123.0, "123")])
def test_a_session_id_is_normalised_as_on_spans(given: object, session: str):
    assert addressed(session_id=given).outcome.session_id == session


def test_a_key_that_is_a_number_is_the_same_as_its_text():
    found = outcome(correlation={"order": 7, "b": "7", "a": 7.0, "none": None, "blank": " "}).outcome
    assert found.keys == (("a", "7"), ("b", "7"), ("order", "7"))


@pytest.mark.parametrize("form", [str.lower, str.upper])
def test_a_session_named_after_a_trace_is_that_trace(form: Any):
    found = addressed(session_id=f"trace:{form(TRACE.hex())}").outcome
    assert (found.session_id, found.trace_id) == ("", TRACE)
    assert addressed(trace_id=form(TRACE.hex())).outcome.trace_id == TRACE


def test_what_looks_like_our_notation_for_a_session_is_never_parsed():
    found = addressed(session_id="c1#2", ordinal=3).outcome
    assert (found.session_id, found.ordinal) == ("c1#2", 3)


@pytest.mark.parametrize(
    ("record_time", "event_time", "ahead"),
    [
        pytest.param(T - 5 * MINUTE, T, False, id="ahead by all that is allowed"),
        pytest.param(T - 5 * MINUTE - 1, T - 5 * MINUTE - 1, True, id="further ahead"),
        pytest.param(0, T, False, id="without a record time"),
    ],
)
def test_an_event_from_the_future_takes_its_records_time(record_time: int, event_time: int, ahead: bool):
    result = outcome(record_time)
    assert (result.outcome.event_time, result.outcome.clock_ahead) == (event_time, ahead)
    assert result.counts["noted", "clock_ahead"] == int(ahead)


def test_a_retraction_needs_no_address():
    found = outcome(kind="retract", correlation=..., event_version=2).outcome
    assert (found.kind, found.keys, found.session_id) == (OutcomeKind.RETRACT, (), "")


def test_an_agents_own_source_is_marked():
    options = {"agent_sources": frozenset({"bot"})}
    assert outcome(source="bot", options=options).outcome.from_agent
    assert not outcome(options=options).outcome.from_agent


def test_nested_data_is_kept_as_canonical_json():
    data = {"tags": ["a", 1], "nested": {"b": 1, "a": [None]}, "n": 1.5, "none": None, "yes": True}
    found = outcome(data=data).outcome.data
    assert found == {**data, "nested": '{"a":[null],"b":1}'}
    assert found["yes"] is True


def test_a_duplicate_is_sent_on_as_it_is():
    result = read(json.dumps([EVENT, EVENT]).encode(), T, Topic.OUTCOMES)
    assert len(result.outcomes) == 2
    assert result.outcomes[0] == result.outcomes[1]


def test_the_watermark_of_outcomes_is_the_records_time():
    step = ingest()
    step.on_record(Topic.OUTCOMES, 3, 0, T + 1, None, json.dumps(EVENT).encode())
    step.on_record(Topic.OUTCOMES, 3, 1, T, None, b"garbage")
    assert step.watermark(Topic.OUTCOMES, 3) == T + 1
