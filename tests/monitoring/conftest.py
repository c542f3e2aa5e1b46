"""A demo that runs while its metrics are looked at. TRUEUP_MONITORED_WORKER names one that runs already."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.monitoring.exposition import Exposed, exposed
from tests.monitoring.rules import ROOT

SESSIONS = 300
READY_WITHIN_SECONDS = 240.0
STOPS_WITHIN_SECONDS = 30.0
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@contextmanager
def running_demo(data_dir: Path) -> Iterator[str]:
    """Start a demo that stays up after its comparison; gives the worker's address."""
    command = [sys.executable, "-m", "pipeline", "demo", "--keep"]
    command += ["--sessions", str(SESSIONS), "--data-dir", str(data_dir)]
    log = data_dir / "demo.log"
    with log.open("wb") as output:
        demo = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while not (data_dir / "demo" / "summary.json").is_file():
            if demo.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the demo did not get ready:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.5)
        yield str(json.loads((data_dir / "demo" / "urls.json").read_text("utf-8"))["worker"])
    finally:
        if demo.poll() is None:
            demo.send_signal(signal.SIGINT)
            try:
                demo.wait(STOPS_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                demo.kill()
                demo.wait()


@pytest.fixture(scope="session")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exposed]:
    """What a worker exposes once the demo has been measured."""
    if worker := os.environ.get("TRUEUP_MONITORED_WORKER"):
        yield _scraped(worker)
        return
    with running_demo(tmp_path_factory.mktemp("demo")) as worker:
        yield _scraped(worker)


def _scraped(worker: str) -> Exposed:
    request = urllib.request.Request(f"{worker}/metrics", headers={"Accept": OPENMETRICS})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return exposed(answer.read().decode("utf-8"), answer.headers["Content-Type"])
