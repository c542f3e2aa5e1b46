"""A running `trueup up` whose clock is short, and programs that are started beside it and ended again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from pipeline.embedded.ports import free_port
from tests.live.test_live import PATIENCE_SECONDS, Live
from tools.examples import EXAMPLES, PYTHON

ROOT = Path(__file__).parents[3]
STOP_SECONDS = 20.0
OWN = ("OTEL_", "TRUEUP_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "COLLECTOR_", "PAYMENT_")


def bare() -> dict[str, str]:
    """This environment without what would configure an agent or a Collector."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN)}


class Trueup(Live):
    """A running `trueup up`, and where its broker is."""

    def __init__(self, worker_port: int, gateway_port: int, brokers: str) -> None:
        super().__init__(worker_port, gateway_port)
        self.brokers = brokers


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trueup]:
    worker, gateway = free_port(), free_port()
    config, data = EXAMPLES / "minutes.toml", tmp_path_factory.mktemp("trueup") / "data"
    ports = {"TRUEUP_WORKER_PORT": str(worker), "TRUEUP_GATEWAY_PORT": str(gateway)}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "up", "--config", str(config), "--data-dir", str(data)],
        cwd=ROOT,
        env={**bare(), **ports, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said = line
            if line.startswith("brokers"):
                break
        else:
            pytest.fail(f"it did not come up: {said}")
        yield Trueup(worker, gateway, said.split()[1])
    finally:
        stop(process)


class Start:
    """Programs that a test starts, each until it listens at a port of loopback."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "started.log"
        self._running: list[subprocess.Popen[str]] = []

    def __call__(self, command: Sequence[str], environment: Mapping[str, str], port: int) -> None:
        with self._log.open("w") as said:
            process = subprocess.Popen(
                command, cwd=ROOT, env={**bare(), **environment}, stdout=said, stderr=said, text=True
            )
        self._running.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                pytest.fail(f"{command[0]} ended by itself: {self._log.read_text()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        pytest.fail(f"{command[0]} does not listen at {port}: {self._log.read_text()}")

    def end(self) -> None:
        """Ends them in good order."""
        while self._running:
            stop(self._running.pop())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started = Start(tmp_path)
    yield started
    started.end()


@pytest.fixture(scope="session")
def python() -> str:
    """Of the examples' own environment."""
    if not PYTHON.exists():
        pytest.fail("the examples have an environment of their own: `make test-examples` makes it", pytrace=False)
    return str(PYTHON)
