"""The outcome webhook of `examples/`: what it takes from whom, how it insists, and what becomes of it in trueup."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from examples.outcome_webhook.webhook import SIGNATURE, SIGNATURE_AGE_SECONDS, Trueup, receive
from pipeline.embedded.ports import free_port
from schemas.outcome import OutcomeEvent
from tests.live.test_live import PATIENCE_SECONDS
from tests.services.examples.conftest import ROOT, Start, bare
from tests.services.examples.conftest import Trueup as Running

SECRET = "whsec_of_a_test"
NOW = 1_770_000_000
EVENT = {"id": "evt_1", "type": "payment.settled", "created": NOW - 60, "data": {"metadata": {"order_id": "A-1"}}}


class Gateway:
    """Stands where trueup does: answers what it is told to, the last answer for ever, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = [(200, {})]
        self.heard: list[tuple[float, dict[str, Any], str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.heard.append((time.monotonic(), body, self.headers.get("Authorization", "")))
                status, headers = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """A test speaks by failing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        return [body for _, body, _ in self.heard]


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def signed(body: bytes, secret: str = SECRET, at: int = NOW) -> dict[str, str]:
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {SIGNATURE: f"t={at},v1={digest}"}


def deliver(
    gateway: Gateway, event: object = EVENT, headers: dict[str, str] | None = None, patience_seconds: float = 8.0
) -> int:
    """The status that the provider hears."""
    body = json.dumps(event).encode()
    trueup = Trueup(gateway.url, "a-token", patience_seconds)
    return receive(signed(body) if headers is None else headers, body, SECRET, trueup, lambda: NOW)[0]


def test_a_signed_event_becomes_an_outcome_that_trueup_takes(gateway: Gateway) -> None:
    status = deliver(gateway)

    assert status == 200
    [outcome] = gateway.outcomes
    event = OutcomeEvent.model_validate_json(json.dumps(outcome))
    assert (event.event_id, event.source, event.kind) == ("payments:evt_1", "billing", "evidence")
    assert event.event_time == datetime.fromisoformat("2026-02-02T02:39:00+00:00")
    assert (outcome["correlation"], outcome["data"]) == ({"order_id": "A-1"}, {"payment_status": "settled"})
    assert gateway.heard[0][2] == "Bearer a-token"


BODY = json.dumps(EVENT).encode()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no signature"),
        pytest.param(signed(BODY, secret="another"), id="by another secret"),
        pytest.param(signed(BODY.replace(b"A-1", b"A-2")), id="of another body"),
        pytest.param(signed(BODY, at=NOW - SIGNATURE_AGE_SECONDS - 1), id="too old"),
        pytest.param({SIGNATURE: signed(BODY)[SIGNATURE].replace(f"t={NOW}", f"t={NOW + 1}")}, id="with another time"),
        pytest.param({SIGNATURE: "t=,v1=ü"}, id="garbled"),
    ],
)
def test_what_the_provider_did_not_sign_changes_nothing(gateway: Gateway, headers: dict[str, str]) -> None:
    assert deliver(gateway, headers=headers) == 401
    assert gateway.heard == []


def test_during_a_change_of_secrets_one_of_two_signatures_is_enough(gateway: Gateway) -> None:
    old = signed(BODY, secret="the old one")[SIGNATURE]
    headers = {SIGNATURE: f"{old},{signed(BODY)[SIGNATURE].split(',')[1]}"}

    assert deliver(gateway, headers=headers) == 200


def test_an_event_that_no_contract_reads_is_taken_and_not_posted(gateway: Gateway) -> None:
    assert deliver(gateway, EVENT | {"type": "customer.created"}) == 200
    assert gateway.heard == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param([], id="a list"),
        pytest.param({"id": "evt_1"}, id="no type"),
        pytest.param(EVENT | {"data": {}}, id="no order"),
        pytest.param(EVENT | {"created": "yesterday"}, id="no time"),
    ],
)
def test_what_is_no_event_is_told_to_be_none(gateway: Gateway, event: object) -> None:
    assert deliver(gateway, event) == 400
    assert gateway.heard == []


@pytest.mark.parametrize("busy", [429, 503])
def test_a_gateway_that_is_busy_is_asked_again_when_it_says(gateway: Gateway, busy: int) -> None:
    gateway.answers = [(busy, {"Retry-After": "1"}), (200, {})]

    assert deliver(gateway) == 200
    first, second = gateway.heard
    assert second[0] - first[0] >= 1.0
    assert first[1] == second[1]


def test_a_provider_is_asked_to_come_again_while_trueup_cannot_take_it(gateway: Gateway) -> None:
    gateway.answers = [(503, {"Retry-After": "60"})]

    began = time.monotonic()
    assert deliver(gateway) == 503
    assert time.monotonic() - began < 5.0  # there is no sense in waiting for what cannot come in time


def test_so_it_is_while_nobody_answers(gateway: Gateway) -> None:
    gateway.url = f"http://127.0.0.1:{free_port()}"

    assert deliver(gateway, patience_seconds=1.0) == 503


def test_an_outcome_that_trueup_refuses_is_no_success_and_is_posted_once(gateway: Gateway) -> None:
    gateway.answers = [(400, {})]

    assert deliver(gateway) == 500
    assert len(gateway.heard) == 1


def test_a_payment_and_its_redelivery_revise_a_session_once(live: Running, start: Start) -> None:
    port = free_port()
    environment = {"PAYMENT_WEBHOOK_SECRET": SECRET, "TRUEUP_URL": live.gateway, "PORT": str(port)}
    start([sys.executable, "examples/outcome_webhook/webhook.py"], environment, port)
    live.serve_a_customer("paid-1", "A-paid-1")
    live.revision("paid-1", 1)

    def send(kind: str, event_id: str, created: float) -> str:
        event = [kind, "A-paid-1", event_id, f"{created:.0f}"]
        done = subprocess.run(
            [sys.executable, "examples/outcome_webhook/send_payment_event.py", *event],
            cwd=ROOT,
            env={**bare(), **environment, "WEBHOOK_URL": f"http://127.0.0.1:{port}/webhooks/payments"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    settled = time.time()
    answers = [send("payment.settled", "evt_7", settled), send("payment.settled", "evt_7", settled)]
    live.revision("paid-1", 2)
    send("payment.charged_back", "evt_8", settled + 1)
    third = live.revision("paid-1", 3)

    assert answers == ["200 posted payments:evt_7\n"] * 2
    assert [one["revision"] for one in third["revisions"]] == [1, 2, 3]
    assert "payments:evt_7" in third["revisions"][1]["reason"]
    assert "payments:evt_8" in third["revisions"][2]["reason"]
    assert third["verdict"]["completion"] == "incomplete"
