"""`trueup up`: comes up as one, goes down as one, and says what is in its way."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from pipeline.embedded.children import answers
from pipeline.embedded.ports import free_port
from tests.started import Start, started_in

PATIENCE = 60.0


def ports() -> dict[str, str]:
    return {"TRUEUP_WORKER_PORT": str(free_port()), "TRUEUP_GATEWAY_PORT": str(free_port())}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_stops_cleanly(number: signal.Signals, trueup: Start, tmp_path: Path) -> None:
    chosen = ports()
    process = trueup("up", **chosen)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("brokers"):
            break
    assert answers(int(chosen["TRUEUP_WORKER_PORT"]), "/readyz")
    assert answers(int(chosen["TRUEUP_GATEWAY_PORT"]), "/healthz")
    process.send_signal(number)
    rest, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, complained
    assert "stopping" in rest
    assert complained == ""
    assert started_in(tmp_path) == []
    [log] = (tmp_path / "data" / "logs").glob("worker-*.log")
    assert "Traceback" not in log.read_text()


def test_a_taken_port_is_named_with_its_holder(trueup: Start, tmp_path: Path) -> None:
    chosen = ports()
    with socket.create_server(("127.0.0.1", int(chosen["TRUEUP_WORKER_PORT"]))):
        process = trueup("up", **chosen)
        _, complained = process.communicate(timeout=PATIENCE)

    assert process.returncode == 2
    assert complained.count("\n") == 1
    assert f"port {chosen['TRUEUP_WORKER_PORT']} is taken by process" in complained
    assert "pytest" in complained
    assert "TRUEUP_WORKER_PORT" in complained
    assert started_in(tmp_path) == []


def test_old_data_is_put_aside_and_said_so(trueup: Start, tmp_path: Path) -> None:
    old = tmp_path / "data" / "clickhouse" / "of an earlier run"
    old.mkdir(parents=True)
    process = trueup("up", **ports())
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)

    assert "the data of an earlier run is in" in first
    assert list((tmp_path / "data" / "archive").glob("*/clickhouse/of an earlier run"))
    assert started_in(tmp_path) == []
