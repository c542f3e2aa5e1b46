"""`trueup forget` on a running line: a conversation and a subject are found nowhere afterwards, no total has changed,
and neither a worker that starts anew nor the same spans and outcomes sent again bring anything back.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pipeline.cli.common import EMBEDDED_PARTITIONS
from pipeline.embedded.machine import Machine
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.snapshots import read_back
from pipeline.sinks.clickhouse import Store
from pipeline.topology import STAGES
from schemas.rows import TABLES
from tests.started import ROOT
from tests.unit.core.ingest_support import json_request, json_span

PATIENCE = 120.0
STILL_SECONDS = 3.0
SHORT = {"SESSION_GAP": "2s", "CLOSING_GRACE": "1s", "RESUME_WINDOW": "2s", "IDLE_AFTER": "1s", "BUCKET": "1s"}
SECRET = "Zx9forgetme"
"""In the conversation's id, in whatever it states of itself, in what is told of it, and in the subject of another."""
KEPT = "Yk3keptVu8"
SHARED = "order-of-both"
"""A business key that the conversation to be erased shares with one that stays."""
BY_SUBJECT = f"chat-of-subject-{SECRET}"
FIRST = f"chat-{SECRET}"
SNAPSHOTS = ("trueup.resolve-snap", "trueup.correlate-snap", "trueup.judge-snap")

Answer = TypeVar("Answer")


def ask(url: str, body: bytes | None = None) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Line:
    """A running line, seen from outside."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @property
    def worker(self) -> str:
        return f"http://127.0.0.1:{self.machine.worker_ports[0]}"

    def send(self, path: str, body: bytes) -> None:
        status, answer = ask(f"http://127.0.0.1:{self.machine.gateway_port}{path}", body)
        assert status == 200, answer

    def told(self, path: str) -> Any:
        status, answer = ask(self.worker + path)
        assert status == 200, answer
        return json.loads(answer)

    def totals(self) -> Any:
        """Every rate, by the state and by the store, and how many sessions stand behind each."""
        found: dict[str, Any] = {}
        for cube in ("system", "family"):
            for source in ("state", "store"):
                rates = self.told(f"/api/rates?cube={cube}&window=7d&source={source}")["rates"]
                found[f"{cube} {source}"] = [
                    (one["dimensions"], one["rate"], one["numerator"], one["denominator"]) for one in rates
                ]
        for rate in ("completion", "claimed_completion", "resolution", "attribution"):
            for outcome in ("", "&outcome=good"):
                listed = self.told(f"/api/sessions?rate={rate}&window=7d{outcome}")
                found[f"list of {rate}{outcome}"] = listed["total"]
        return found

    def still(self) -> Any:
        """The totals, once they no longer change."""
        last, since, deadline = None, time.monotonic(), time.monotonic() + PATIENCE
        while time.monotonic() - since < STILL_SECONDS:
            assert time.monotonic() < deadline
            now = self.totals()
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.3)
        return last

    def until(self, what: Callable[[], Answer | None], wanted: str) -> Answer:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if (answer := what()) is not None:
                return answer
            time.sleep(0.2)
        pytest.fail(f"still not: {wanted}")

    def revision(self, conversation: str, number: int) -> bool | None:
        status, answer = ask(f"{self.worker}/api/sessions/default/{conversation}")
        sessions = json.loads(answer).get("sessions", []) if status == 200 else []
        return True if any(one["verdict"]["revision"] >= number for one in sessions) else None

    def forget(self, *arguments: str) -> dict[str, Any]:
        """What the command reports."""
        command = [sys.executable, "-m", "pipeline", "forget", *arguments, "--url", self.worker, "--format", "json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, ""), done
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def snapshots(self) -> dict[str, bytes]:
        """The newest state of every stage, as a new worker would read it, by stage and kind of key."""

        async def read() -> dict[str, bytes]:
            log = KafkaLog(self.machine.brokers, dev_broker=True)
            await log.start()
            parts: dict[str, bytes] = {}
            try:
                for spec in STAGES:
                    for number in range(EMBEDDED_PARTITIONS):
                        end = await log.end(spec.snap, number)
                        replay = await read_back(log, spec.snap, number, end)
                        for key, state in replay.states.items():
                            name = f"{spec.snap} {key[:1]!r}"
                            parts[name] = parts.get(name, b"") + key + state
            finally:
                await log.stop()
            return parts

        return asyncio.run(read())

    def visible(self) -> dict[str, bytes]:
        """All that can be read of it from outside while it runs."""
        found = {path: ask(self.worker + path)[1] for path in ("/metrics", "/api/sessions?limit=500", "/api/health")}
        for one in json.loads(found["/api/sessions?limit=500"])["sessions"]:
            path = f"/api/sessions/default/{one['conversation']}"
            found[path] = ask(self.worker + path)[1]
        return found | self.snapshots()

    def restart(self) -> None:
        """The worker is killed, and another starts where it was."""
        child = self.machine.workers[0]
        child.kill()
        child.start()
        child.wait_ready(PATIENCE)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    for name, value in SHORT.items():
        monkeypatch.setenv(f"TRUEUP_{name}", value)
    with Machine(tmp_path / "data") as machine:
        machine.start()
        yield Line(machine)


def spans_of(conversation: str, trace: int, secret: str, began: int, **said: Any) -> bytes:
    """A run in which an order is placed; the second span's trace has no id and follows the first by a link."""
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "order_agent",
        "gen_ai.conversation.id": conversation,
        "trueup.state.order_id": secret,
        "trueup.state.items_verified": True,
        "trueup.state.address_confirmed": True,
        "trueup.correlation.order_id": SHARED,
        "trueup.correlation.ticket": f"ticket-{secret}",
        "trueup.issue": f"issue-{secret}",
        "trueup.task.outcome": "completed",
        **said,
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "create_order", "gen_ai.tool.call.id": secret}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.id": f"response-{secret}"}
    times = {"startTimeUnixNano": str(began), "endTimeUnixNano": str(began + 10**8)}
    first, other = f"{trace:032x}", f"{trace + 1:032x}"
    return json_request(
        json_span(agent, traceId=first, spanId=f"{trace:016x}", **times),
        json_span(tool, traceId=first, spanId=f"{trace + 1:016x}", parentSpanId=f"{trace:016x}", **times),
        json_span(
            chat, traceId=other, spanId=f"{trace + 2:016x}", links=[{"traceId": first, "spanId": "1" * 16}], **times
        ),
    )


def outcome(event_id: str, kind: str, at: str, data: dict[str, Any], **address: Any) -> bytes:
    event = {"event_id": event_id, "source": "billing", "kind": kind, "event_time": at, "data": data}
    return json.dumps({**event, **address}).encode()


def everything(line: Line) -> list[tuple[str, bytes]]:
    """All that is sent, twice: spans of three conversations, and outcomes that reach them by every way there is."""
    began = time.time_ns() - 2 * 10**9
    now = datetime.now(UTC).isoformat()
    settled, note = {"payment_status": "settled"}, {"note": f"note-{SECRET}"}
    return [
        ("/v1/traces", spans_of(FIRST, 0x1000, SECRET, began, **{"trueup.subject": "subject-of-first"})),
        ("/v1/traces", spans_of(BY_SUBJECT, 0x2000, SECRET, began, **{"trueup.subject": f"customer-{SECRET}"})),
        ("/v1/traces", spans_of(f"chat-{KEPT}", 0x3000, KEPT, began, **{"trueup.subject": f"customer-{KEPT}"})),
        ("/v1/outcomes", outcome(f"evt-{SECRET}-1", "evidence", now, note, session_id=FIRST)),
        ("/v1/outcomes", outcome(f"evt-{SECRET}-2", "feedback", now, note, trace_id=f"{0x1000:032x}")),
        ("/v1/outcomes", outcome(f"evt-{SECRET}-3", "evidence", now, note, correlation={"ticket": f"ticket-{SECRET}"})),
        ("/v1/outcomes", outcome("evt-of-all", "evidence", now, settled, correlation={"order_id": SHARED})),
        ("/v1/outcomes", outcome(f"evt-{KEPT}", "feedback", now, {"score": 1}, session_id=f"chat-{KEPT}")),
    ]


def test_what_is_forgotten_is_found_nowhere_and_no_total_changes(line: Line, tmp_path: Path) -> None:
    sent = everything(line)
    for path, body in sent:
        line.send(path, body)
    for conversation in (FIRST, BY_SUBJECT, f"chat-{KEPT}"):
        line.until(partial(line.revision, conversation, 1), f"a verdict of {conversation}")
    before = line.still()
    seen = line.visible()
    assert all(any(text.encode() in part for part in seen.values()) for text in (SECRET, KEPT))
    assert {name.split()[0] for name, part in seen.items() if SECRET.encode() in part} > set(SNAPSHOTS)

    by_session = line.forget("--session", f"default/{FIRST}")
    by_subject = line.forget("--subject", f"customer-{SECRET}")
    after = line.still()
    seen = line.visible()
    gone = ask(f"{line.worker}/api/sessions/default/{FIRST}")[0]

    assert (by_session["done"], by_subject["done"]) == (True, True)
    assert by_session["found"]["judge"] == {"conversations": 1, "sessions": 1, "spans": 3, "outcomes": 4}
    assert by_session["found"]["resolve"] == {"traces": 2}
    assert by_session["found"]["sink"]["verdicts"] >= 1
    assert by_subject["conversations"] == 1
    assert after == before
    assert gone == 404
    assert b'state="erased"' in seen["/metrics"]
    nameless = [name for name in seen if name.startswith("/api/sessions/default/erased:")]
    assert len(nameless) == 2
    assert [line.told(name)["sessions"][0]["verdict"]["flags"] for name in nameless] == [["erased"]] * 2
    assert [name for name, part in seen.items() if SECRET.encode() in part] == []
    assert {name.split()[0] for name, part in seen.items() if KEPT.encode() in part} > set(SNAPSHOTS)

    line.restart()
    for path, body in sent:
        line.send(path, body)
    line.until(lambda: b'reason="erased"' in line.visible()["/metrics"] or None, "letters for what came again")
    assert line.still() == before
    assert [name for name, part in line.visible().items() if SECRET.encode() in part] == []

    line.machine.stop()
    logs = {str(file): file.read_bytes() for file in (tmp_path / "data" / "logs").iterdir()}
    assert logs
    assert [name for name, text in logs.items() if SECRET.encode() in text] == []
    store = Store.open(f"chdb://{tmp_path / 'data' / 'clickhouse'}")
    try:
        tables = [*TABLES, "erased", "schema_migrations"]
        found = {table: repr(store.query(f"SELECT * FROM {table}")) for table in tables}
        found["mutations"] = repr(store.query("SELECT command FROM system.mutations"))
    finally:
        store.close()
    assert [name for name, rows in found.items() if SECRET in rows] == []
    assert KEPT in found["verdicts"]
    assert "erased:" in found["verdicts"]
    assert "'erased'" in found["dead_letters"]
