"""A contract that changes while everything runs: what is judged anew, and what a broken file changes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pipeline.core.timeline import HOUR, SECOND, to_text
from pipeline.embedded.ports import free_port
from tests.started import Start
from tests.unit.core.ingest_support import json_request
from tests.unit.core.line import turn

PATIENCE = 60.0
CONTRACT = 'family: sale\nversion: {}\neffective_from: {}\ncriteria:\n  - {{id: k, check: "state.{}"}}\n'

Found = TypeVar("Found")


def eventually(ask: Callable[[], Found | None]) -> Found:
    """The first answer that is one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = ask()
        except (HTTPError, OSError):
            found = None
        if found is not None:
            return found
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.25)


def test_a_running_worker_takes_contracts_up_and_a_broken_file_changes_nothing(trueup: Start, tmp_path: Path) -> None:
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    now = int(datetime.now(UTC).timestamp()) * SECOND
    (contracts / "sale-1.yaml").write_text(CONTRACT.format(1, to_text(now - 40 * HOUR), "one"))
    worker, gateway = free_port(), free_port()
    ports = {"TRUEUP_WORKER_PORT": str(worker), "TRUEUP_GATEWAY_PORT": str(gateway)}
    process = trueup("up", "--contracts", str(contracts), **ports, TRUEUP_IDLE_AFTER="1s")

    def get(path: str) -> Any:
        with urlopen(f"http://127.0.0.1:{worker}{path}", timeout=5) as answer:
            return json.loads(answer.read())

    def refused() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = get("/api/health")["contracts"]["refused"]
        return found or None

    def session(contract: str) -> dict[str, Any] | None:
        (found,) = get("/api/sessions/default/c")["sessions"]
        return found if found["verdict"]["contract_version"] == contract and found["revisions"] else None

    eventually(lambda: get("/readyz")["ready"] or None)
    said = {"trueup.task.family": "sale", "gen_ai.conversation.id": "c", "trueup.state.one": True}
    later = {"gen_ai.conversation.id": "other"}
    body = json_request(*turn(1, now - 4 * HOUR, said), *turn(2, now - 30 * SECOND, later))
    headers = {"Content-Type": "application/json"}
    eventually(lambda: urlopen(Request(f"http://127.0.0.1:{gateway}/v1/traces", body, headers), timeout=5).status)
    before = eventually(lambda: session("sale@1"))
    assert before["verdict"]["completion"] == "complete"

    (contracts / "sale-2.yaml").write_text(CONTRACT.format(2, to_text(now - 5 * HOUR), "two"))
    after = eventually(lambda: session("sale@2"))
    assert after["verdict"]["completion"] == "incomplete"
    assert after["revisions"][-1]["reason"].startswith("contract sale@2: ")
    assert [one["criterion"] for one in after["criteria"]] == ["k"]

    (contracts / "sale-3.yaml").write_text(CONTRACT.format(3, to_text(now - 3 * HOUR), "three ="))
    (problem,) = eventually(refused)
    assert (Path(problem["file"]).name, problem["line"], problem["field"]) == ("sale-3.yaml", 5, "criteria.0.check")
    with urlopen(f"http://127.0.0.1:{worker}/metrics", timeout=5) as answer:
        metrics = answer.read().decode().splitlines()
    assert "trueup_contracts_refused 1.0" in metrics
    assert "trueup_contracts_in_force 2.0" in metrics
    kept = session("sale@2")
    assert kept is not None
    assert kept["verdict"]["revision"] == after["verdict"]["revision"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
