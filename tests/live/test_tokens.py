"""Tokens, live: what a token's holder sends is its tenant's, what agents say of themselves is a claim, and reading asks
for a token of its own.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.embedded.ports import free_port
from tests.started import Start

PATIENCE = 60.0
AGENT, BILLING, READER = "the-agents-own-token", "billing-systems-token", "readers-of-acme-token"
TOKENS = f"""
[[token]]
token = "{AGENT}"
scopes = ["spans", "outcomes"]
tenant = "acme"
sources = ["agent"]

[[token]]
token = "{BILLING}"
scopes = ["outcomes"]
tenant = "acme"
sources = ["billing"]

[[token]]
token = "{READER}"
scopes = ["read"]
tenant = "acme"
"""


def ask(url: str, token: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def spans() -> dict[str, Any]:
    """Of a session that says it is another tenant's."""
    now = time.time_ns()
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.conversation.id": "c1"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    span = {"traceId": "d" * 32, "spanId": "d" * 16, "startTimeUnixNano": now - 10**9, "endTimeUnixNano": now}
    resource = {"attributes": [{"key": "trueup.tenant", "value": {"stringValue": "rival"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span | {"attributes": attributes}]}]}]}


def outcome(source: str) -> dict[str, Any]:
    event = {"event_id": source, "event_time": datetime.now(UTC).isoformat(), "source": source, "tenant": "rival"}
    return event | {"kind": "evidence", "session_id": "c1", "data": {"payment_status": "settled"}}


def test_a_token_decides_whose_it_is_and_what_it_is_worth(trueup: Start, tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(TOKENS)
    chosen = {"TRUEUP_WORKER_PORT": str(free_port()), "TRUEUP_GATEWAY_PORT": str(free_port())}
    process = trueup("up", TRUEUP_TOKENS=str(file), **chosen)
    assert process.stdout is not None
    assert any(line.startswith("brokers") for line in process.stdout)
    worker, gateway = (f"http://127.0.0.1:{port}" for port in chosen.values())

    assert ask(f"{gateway}/v1/traces", "", spans())[0] == 401
    assert ask(f"{gateway}/v1/traces", BILLING, spans())[0] == 403
    assert ask(f"{gateway}/v1/outcomes", AGENT, outcome("billing"))[0] == 403
    assert ask(f"{gateway}/v1/traces", AGENT, spans())[0] == 200
    assert ask(f"{gateway}/v1/outcomes", AGENT, outcome("agent"))[0] == 200
    assert ask(f"{gateway}/v1/outcomes", BILLING, outcome("billing"))[0] == 200

    story = f"{worker}/api/sessions/acme/c1"
    deadline = time.monotonic() + PATIENCE
    while len((found := ask(story, READER))[1].get("outcomes", ())) < 2:
        assert time.monotonic() < deadline, found
        time.sleep(0.3)

    assert {one["source"]: bool(one["from_agent"]) for one in found[1]["outcomes"]} == {"agent": True, "billing": False}
    assert ask(story, "")[0] == 401
    assert ask(story, AGENT)[0] == 403
    assert ask(f"{worker}/api/sessions/rival/c1", READER)[0] == 403
    assert ask(f"{worker}/api/sessions?tenant=acme", READER)[0] == 200
    assert ask(f"{worker}/api/rates", READER)[0] == 200
    with urllib.request.urlopen(f"{worker}/metrics", timeout=20) as answer:
        assert answer.status == 200
