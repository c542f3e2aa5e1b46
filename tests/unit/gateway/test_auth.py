"""Tokens at the gateway: who is refused, and what the token of a tenant makes of what is sent."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipeline.gateway.request import bearer
from pipeline.tokens import BadTokens, load
from tests.unit.gateway.conftest import FakeBroker, Gateway

SPANS, OUTCOMES, ANY = "spans-of-the-shop-0001", "outcomes-of-billing-01", "collector-of-everyone"
BODY = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}'
JSON, PROTOBUF = "application/json", "application/x-protobuf"
EVENT: dict[str, Any] = {
    "event_id": "1",
    "event_time": "2026-04-02T10:00:00Z",
    "source": "billing",
    "kind": "evidence",
    "session_id": "s",
}
FILE = f"""
[[token]]
name = "shop"
token = "{SPANS}"
scopes = ["spans", "outcomes"]
tenant = "acme"
sources = ["shop-agent"]

[[token]]
sha256 = "{sha256(OUTCOMES.encode()).hexdigest()}"
scopes = ["outcomes", "read"]
tenant = "acme"
sources = ["billing", "stripe"]

[[token]]
name = "collector"
token = "{ANY}"
scopes = ["spans"]
tenant = "*"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.toml"
    file.write_text(FILE)
    return file


@pytest.fixture
def guarded(file: Path, broker: FakeBroker) -> Gateway:
    return Gateway(broker, authorize=bearer(load(file)))


def spans(gateway: Gateway, header: str, body: bytes = BODY, kind: str = JSON) -> tuple[int, bytes, dict[str, str]]:
    return gateway.post("/v1/traces", body, content_type=kind, authorization=header)


def outcomes(gateway: Gateway, token: str, *events: dict[str, Any]) -> tuple[int, Any]:
    body = json.dumps(events).encode()
    status, answer, _ = gateway.post("/v1/outcomes", body, content_type=JSON, authorization=f"Bearer {token}")
    return status, json.loads(answer)


@pytest.mark.parametrize("header", [f"Bearer {SPANS}", f"bearer   {SPANS} ", f"Bearer {ANY}"])
def test_a_token_with_the_scope_is_admitted(guarded: Gateway, header: str) -> None:
    assert spans(guarded, header)[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {SPANS}",
        f"Bearer {SPANS}x",
        f"Bearer {SPANS[:-1]}",
        "Bearer ÿ",
        f"Bearer {sha256(OUTCOMES.encode()).hexdigest()}",
    ],
)
def test_any_other_is_not_and_nothing_is_written(guarded: Gateway, broker: FakeBroker, header: str) -> None:
    for path in ("/v1/traces", "/v1/logs", "/v1/outcomes"):
        status, body, headers = guarded.post(path, BODY, content_type=JSON, authorization=header)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert SPANS.encode() not in body
    assert broker.taken == []


def test_a_token_without_the_scope_is_told_which_it_lacks(guarded: Gateway, broker: FakeBroker) -> None:
    status, answer, _ = spans(guarded, f"Bearer {OUTCOMES}")

    assert (status, json.loads(answer)) == (403, {"code": 7, "message": "the token 'token 2' has not the scope spans"})
    assert outcomes(guarded, ANY, EVENT)[0] == 403
    assert broker.taken == []


def stated(value: Any) -> dict[str, Any]:
    return {"key": "trueup.tenant", "value": value}


@pytest.mark.parametrize(
    "resource",
    [
        None,
        {},
        {"attributes": None},
        {"attributes": [stated({"stringValue": "rival"}), stated({"intValue": 7})]},
        {"attributes": "none"},
    ],
    ids=["no resource", "no attributes", "null", "two of its own", "no list"],
)
def test_the_tenant_of_the_token_is_written_over_that_of_json(
    guarded: Gateway, broker: FakeBroker, resource: Any
) -> None:
    kept = {"key": "service.name", "value": {"stringValue": "shop"}}
    if resource and isinstance(resource["attributes"], list):
        resource["attributes"].insert(1, kept)
    item = {"resource": resource, "scopeSpans": [{"spans": [{"name": "x"}]}]}
    body = json.dumps({"resourceSpans": [item, item], "resource_spans": [{"resource": {}}]}).encode()

    assert spans(guarded, f"Bearer {SPANS}", body)[0] == 200

    (written,) = broker.values("otlp_spans")
    document = json.loads(written)
    assert list(document) == ["resourceSpans"]
    for one in document["resourceSpans"]:
        tenants = [pair for pair in one["resource"]["attributes"] if pair["key"] == "trueup.tenant"]
        assert tenants == [stated({"stringValue": "acme"})]
        assert (kept in one["resource"]["attributes"]) == (len(one["resource"]["attributes"]) > 1)
        assert one["scopeSpans"] == item["scopeSpans"]


def test_no_other_name_of_the_list_gets_past_it(guarded: Gateway, broker: FakeBroker) -> None:
    body = json.dumps({"resourceSpans": None, "batches": [{"resource": {"attributes": []}}]}).encode()

    assert (spans(guarded, f"Bearer {SPANS}", body)[0], broker.taken) == (200, [])


def test_the_tenant_of_the_token_is_written_over_that_of_protobuf(guarded: Gateway, broker: FakeBroker) -> None:
    request = ExportTraceServiceRequest()
    for tenants in ((), ("rival",), ("acme", "rival")):
        one = request.resource_spans.add()
        one.resource.attributes.add(key="service.name").value.string_value = "shop"
        for tenant in tenants:
            one.resource.attributes.add(key="trueup.tenant").value.string_value = tenant
        one.scope_spans.add().spans.add(name="x")

    assert spans(guarded, f"Bearer {SPANS}", request.SerializeToString(), PROTOBUF)[0] == 200

    written = ExportTraceServiceRequest.FromString(broker.values("otlp_spans")[0])
    for one in written.resource_spans:
        found = [(pair.key, pair.value.string_value) for pair in one.resource.attributes]
        assert found == [("service.name", "shop"), ("trueup.tenant", "acme")]
        assert [span.name for scope in one.scope_spans for span in scope.spans] == ["x"]


def test_a_token_of_any_tenant_changes_nothing(guarded: Gateway, broker: FakeBroker) -> None:
    body = json.dumps({"resourceSpans": [{"resource": {"attributes": [stated({"stringValue": "rival"})]}}]}).encode()

    assert spans(guarded, f"Bearer {ANY}", body)[0] == 200
    assert broker.values("otlp_spans") == [body]


def test_the_token_decides_an_outcomes_tenant_and_sources(guarded: Gateway, broker: FakeBroker) -> None:
    stripe = EVENT | {"source": "stripe", "tenant": "rival"}

    assert outcomes(guarded, OUTCOMES, EVENT, stripe) == (200, {"accepted": 2})
    assert [json.loads(value)["tenant"] for value in broker.values("trueup.outcomes")] == ["acme", "acme"]

    status, answer = outcomes(guarded, OUTCOMES, EVENT, EVENT | {"source": "shop-agent"})
    message = "the token 'token 2' may not speak for the source 'shop-agent'"
    assert (status, answer["problems"]) == (403, [{"item": 1, "field": "source", "message": message}])
    assert outcomes(guarded, OUTCOMES, EVENT, EVENT | {"source": "x"}, EVENT | {"kind": "rumour"})[0] == 400
    assert len(broker.taken) == 2


def test_sources_whose_token_may_send_spans_are_the_agents_own(file: Path) -> None:
    assert load(file).agent_sources == {("acme", "shop-agent")}


GOOD = f'token = "{SPANS}"\nscopes = ["read"]\ntenant = "acme"\n'
BAD = {
    "nothing": ("", "token"),
    "no TOML": ("one-token-a-line-as-before", "is no TOML"),
    "short": ('[[token]]\ntoken = "123456789012345"\nscopes = ["read"]\ntenant = "a"', "token 1: token"),
    "both": (f'[[token]]\n{GOOD}\nsha256 = "{"a" * 64}"', "token 1: exactly one of token and sha256"),
    "neither": ('[[token]]\nscopes = ["read"]\ntenant = "a"', "exactly one of"),
    "a bad digest": ('[[token]]\nsha256 = "abc"\nscopes = ["read"]\ntenant = "a"', "token 1: sha256"),
    "no scope": (f'[[token]]\ntoken = "{SPANS}"\nscopes = []\ntenant = "a"', "token 1: scopes"),
    "an unknown scope": (f'[[token]]\ntoken = "{SPANS}"\nscopes = ["write"]\ntenant = "a"', "token 1: scopes"),
    "no tenant": (f'[[token]]\ntoken = "{SPANS}"\nscopes = ["read"]', "token 1: tenant"),
    "a tenant that is missing": (f'[[token]]\ntoken = "{SPANS}"\nscopes = ["read"]\ntenant = "null"', "is no tenant"),
    "outcomes of nobody": (f'[[token]]\ntoken = "{SPANS}"\nscopes = ["outcomes"]\ntenant = "a"', "go together"),
    "an unknown field": (f"[[token]]\n{GOOD}color = 1", "token 1: color"),
    "twice": (f"[[token]]\n{GOOD}[[token]]\n{GOOD}", "token 2 is there twice"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=list(BAD))
def test_a_file_that_is_wrong_is_refused_and_shows_no_token(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)

    with pytest.raises(BadTokens) as refused:
        load(file)

    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)
    assert SPANS not in str(refused.value)
    assert "one-token" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="none-here"):
        load(tmp_path / "none-here")
