from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.errors import BrokerUnreachable
from schemas.outcome import OutcomeEvent
from tests.unit.gateway.conftest import FakeBroker, Gateway

EVENT: dict[str, Any] = {
    "event_id": "stripe:evt_1",
    "event_time": "2026-04-02T10:00:00Z",
    "source": "billing",
    "kind": "evidence",
    "correlation": {"order_id": "A-100"},
    "data": {"payment_status": "settled"},
}


def send(gateway: Gateway, body: Any, kind: str = "application/json") -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, answer, _ = gateway.post("/v1/outcomes", raw, content_type=kind)
    return status, json.loads(answer)


def test_one_event_or_a_list_goes_to_the_topic(gateway: Gateway, broker: FakeBroker) -> None:
    assert send(gateway, EVENT) == (200, {"accepted": 1})
    assert send(gateway, [EVENT, EVENT | {"event_id": "2"}]) == (200, {"accepted": 2})
    assert send(gateway, []) == (200, {"accepted": 0})

    written = [OutcomeEvent.model_validate_json(value) for value in broker.values("trueup.outcomes")]
    assert [event.event_id for event in written] == ["stripe:evt_1", "stripe:evt_1", "2"]
    assert {key for _, _, key in broker.taken} == {None}


def test_ids_are_written_as_they_were_sent(gateway: Gateway, broker: FakeBroker) -> None:
    number = 12345678901234567890123
    body = json.dumps(EVENT | {"correlation": {"order_id": number}, "data": {"x": 0.1}}).encode()

    assert send(gateway, body)[0] == 200

    assert json.loads(broker.values("trueup.outcomes")[0])["correlation"] == {"order_id": number}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no zone": ({"event_time": "2026-04-02T10:00:00"}, "event_time"),
    "another kind": ({"kind": "rumour"}, "kind"),
    "an unknown field": ({"order": 1}, "order"),
    "a long id": ({"event_id": "x" * 2000}, "event_id"),
    "a bad trace": ({"correlation": None, "trace_id": "xyz"}, "trace_id"),
    "two addresses": ({"session_id": "s"}, ""),
    "an ordinal beyond 64 bits": ({"correlation": None, "session_id": "s", "ordinal": 10**20}, "ordinal"),
    "half of a surrogate pair": ({"data": {"x": [{"y": "\ud800"}]}}, "data.x.y"),
    "a boolean session": ({"correlation": None, "session_id": True}, "session_id"),
    "a boolean key": ({"correlation": {"order_id": False}}, "correlation.order_id"),
    "a boolean ordinal": ({"correlation": None, "session_id": "s", "ordinal": True}, "ordinal"),
    "a zero character": ({"source": "a\0b"}, "source"),
    "too many keys": ({"correlation": {f"k{n}": n for n in range(33)}}, "correlation"),
    "an endless number": ({"data": {"x": 10**2000}}, "data.x"),
}


@pytest.mark.parametrize(("change", "field"), BAD.values(), ids=list(BAD))
def test_one_bad_event_names_item_and_field_and_nothing_is_written(
    gateway: Gateway, broker: FakeBroker, change: dict[str, Any], field: str
) -> None:
    status, answer = send(gateway, [EVENT, EVENT | change, EVENT])

    assert (status, broker.taken) == (400, [])
    assert [(p["item"], p["field"]) for p in answer["problems"]] == [(1, field)]
    assert all(p["message"] for p in answer["problems"])


def test_a_problem_is_told_in_our_words(gateway: Gateway) -> None:
    _, answer = send(gateway, [EVENT | {"session_id": "s"}])

    [problem] = answer["problems"]
    assert (
        problem["message"]
        == "exactly one of session_id, trace_id, correlation is needed, not session_id and correlation"
    )


def test_every_problem_is_named(gateway: Gateway) -> None:
    _, answer = send(gateway, [{}, EVENT, 5])

    missing = ["event_id", "event_time", "source", "kind"]
    assert [(p["item"], p["field"]) for p in answer["problems"]] == [*((0, f) for f in missing), (2, "")]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"event_id": NaN}', b"[" * 100_000],
    ids=["nothing", "half an object", "bad UTF-8", "no number", "a hundred thousand lists"],
)
def test_what_is_not_json_is_refused(gateway: Gateway, broker: FakeBroker, body: bytes) -> None:
    status, answer = send(gateway, body)

    assert (status, broker.taken) == (400, [])
    assert "JSON" in answer["error"]


def test_another_content_type_is_refused(gateway: Gateway) -> None:
    assert send(gateway, EVENT, "text/csv")[0] == 415


def test_a_broker_that_fails_half_way_means_send_all_again(gateway: Gateway, broker: FakeBroker) -> None:
    broker.fails, broker.fails_from = BrokerUnreachable("away"), 1

    status, answer, headers = gateway.post(
        "/v1/outcomes", json.dumps([EVENT, EVENT]).encode(), content_type="application/json"
    )

    assert (status, "again" in json.loads(answer)["error"], int(headers["retry-after"]) > 0) == (503, True, True)
