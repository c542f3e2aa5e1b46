"""`trueup up` and a program that knows nothing of it: from its spans to a revised verdict, a rate and a gauge, live."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from pipeline.embedded.ports import free_port
from tests.started import Start

AGENT = Path(__file__).with_name("stock_agent.py")
SEEN_WITHIN_SECONDS = 5.0
PATIENCE_SECONDS = 60.0  # for what waits for event time, on a machine that has other work
SHORT = {
    "TRUEUP_SESSION_GAP": "2s",
    "TRUEUP_CLOSING_GRACE": "1s",
    "TRUEUP_RESUME_WINDOW": "2s",
    "TRUEUP_IDLE_AFTER": "1s",
    "TRUEUP_BUCKET": "1s",
}
"""Event time that a test can wait for: a session is judged a second after its claim, and counted some seconds later."""

Answer = TypeVar("Answer")


class Live:
    """A running `trueup up`, seen from outside."""

    def __init__(self, worker_port: int, gateway_port: int) -> None:
        self.worker, self.gateway = f"http://127.0.0.1:{worker_port}", f"http://127.0.0.1:{gateway_port}"

    def until(self, what: Callable[[], Answer | None], wanted: str) -> Answer:
        """The first answer that is not None; if there is none, how far every stage has come is told."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            answer = what()
            if answer is not None:
                return answer
            time.sleep(0.1)
        health = requests.get(f"{self.worker}/api/health", timeout=PATIENCE_SECONDS).text
        pytest.fail(f"after {PATIENCE_SECONDS:.0f} s still not: {wanted}; {health}")

    def serve_a_customer(self, conversation: str, order: str) -> float:
        """Runs the agent; returns when it began to export its closing span, Unix time."""
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRUEUP_"))}
        done = subprocess.run(
            [sys.executable, str(AGENT), conversation, order],
            env={**bare, "OTEL_EXPORTER_OTLP_ENDPOINT": self.gateway},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return float(done.stdout)

    def report(self, **outcome: Any) -> None:
        answer = requests.post(f"{self.gateway}/v1/outcomes", json=outcome, timeout=PATIENCE_SECONDS)
        assert answer.status_code < 300, answer.text

    def log(self, event: str, **attributes: Any) -> None:
        """A log record of now, as OTLP's JSON."""
        pairs = [
            {
                "key": key.replace("__", "."),
                "value": {"doubleValue" if isinstance(value, float) else "stringValue": value},
            }
            for key, value in attributes.items()
        ]
        record = {"timeUnixNano": str(time.time_ns()), "eventName": event, "attributes": pairs}
        document: Any = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
        answer = requests.post(f"{self.gateway}/v1/logs", json=document, timeout=PATIENCE_SECONDS)
        assert (answer.status_code, answer.json()) == (200, {})

    def heard_by_log(self, conversation: str) -> list[dict[str, Any]] | None:
        answer = requests.get(f"{self.worker}/api/sessions/default/{conversation}", timeout=PATIENCE_SECONDS)
        return [one for one in answer.json()["outcomes"] if one["source"] == "logs"] or None

    def session(self, conversation: str) -> dict[str, Any] | None:
        answer = requests.get(f"{self.worker}/api/sessions/default/{conversation}", timeout=PATIENCE_SECONDS)
        if answer.status_code == 404:
            return None
        [session] = answer.json()["sessions"]
        found: dict[str, Any] = session
        return found

    def revision(self, conversation: str, number: int) -> dict[str, Any]:
        """The session, once it has come to this revision."""

        def there() -> dict[str, Any] | None:
            session = self.session(conversation)
            return session if session is not None and session["verdict"]["revision"] >= number else None

        return self.until(there, f"revision {number} of {conversation}")

    def rate(self, rate: str) -> tuple[int, int]:
        """Numerator and denominator, of the whole system over an hour."""
        query = {"cube": "system", "window": "1h", "rate": rate}
        found = requests.get(f"{self.worker}/api/rates", params=query, timeout=PATIENCE_SECONDS).json()["rates"]
        return (found[0]["numerator"], found[0]["denominator"]) if found else (0, 0)

    def listed(self, rate: str, outcome: str | None = None) -> int:
        """How many sessions stand behind it."""
        query = {"rate": rate, "window": "1h", **({"outcome": outcome} if outcome else {})}
        answer = requests.get(f"{self.worker}/api/sessions", params=query, timeout=PATIENCE_SECONDS)
        return int(answer.json()["total"])

    def gauge(self, rate: str) -> tuple[int, int]:
        """The same, as Prometheus would scrape it."""
        text = requests.get(f"{self.worker}/metrics", timeout=PATIENCE_SECONDS).text
        found = {
            sample.name: int(sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if (sample.labels.get("rate"), sample.labels.get("window"), sample.labels.get("cube"))
            == (rate, "1h", "system")
        }
        return (
            found.get("trueup_rate_numerator_sessions", 0),
            found.get("trueup_rate_denominator_sessions", 0),
        )


@pytest.fixture
def live(trueup: Start) -> Live:
    worker, gateway = free_port(), free_port()
    process = trueup("up", TRUEUP_WORKER_PORT=str(worker), TRUEUP_GATEWAY_PORT=str(gateway), **SHORT)
    assert process.stdout is not None
    said = next((line for line in process.stdout if line.startswith("brokers")), None)
    if said is None:
        pytest.fail(f"it did not come up: {process.communicate()[1]}")
    return Live(worker, gateway)


def test_the_stock_sdk_and_an_endpoint_are_enough(live: Live) -> None:
    exported = live.serve_a_customer("chat-1", "A-100")
    live.until(lambda: live.session("chat-1"), "the session of chat-1")
    seen_after = time.time() - exported
    first = live.revision("chat-1", 1)
    counted = live.until(lambda: found if (found := live.rate("completion"))[1] else None, "a session that is counted")
    live.report(
        event_id="settled-1",
        source="billing",
        kind="evidence",
        event_time=datetime.now(UTC).isoformat(),
        correlation={"order_id": "A-100"},
        data={"payment_status": "settled"},
    )
    second = live.revision("chat-1", 2)
    risen = live.until(lambda: found if (found := live.rate("completion")) != counted else None, "a rate that rises")
    live.log(
        "gen_ai.evaluation.result",
        gen_ai__evaluation__name="Relevance",
        gen_ai__evaluation__score__value=0.9,
        gen_ai__conversation__id="chat-1",
    )
    [heard] = live.until(lambda: live.heard_by_log("chat-1"), "the evaluation that a log record tells")
    gauge = live.gauge("completion")
    listed = live.listed("completion", "good"), live.listed("completion")

    assert seen_after < SEEN_WITHIN_SECONDS
    assert (first["verdict"]["family"], first["verdict"]["family_source"]) == ("order_placement", "derived")
    assert (heard["kind"], heard["data"]["name"], heard["data"]["score"]) == ("evaluation", "Relevance", 0.9)
    assert (first["verdict"]["completion"], first["verdict"]["claimed"]) == ("pending", "explicit")
    assert second["verdict"]["completion"] == "complete"
    assert [one["revision"] for one in second["revisions"]] == [1, 2]
    assert "payment_confirmed: pending -> passed" in second["revisions"][1]["reason"]
    assert (counted, risen, gauge, listed) == ((0, 1), (1, 1), (1, 1), (1, 1))
