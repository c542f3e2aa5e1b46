"""`trueup ...` as a user starts it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

Start = Callable[..., "subprocess.Popen[str]"]


def started_in(folder: Path) -> list[str]:
    """Command lines of the processes that work in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if str(folder) in words and int(process.name) != os.getpid():
            found.append(f"{process.name} {words}")
    return found


@pytest.fixture
def trueup(tmp_path: Path) -> Iterator[Start]:
    """Starts `trueup ...` with a data folder of its own; whatever still runs in the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", *arguments, "--data-dir", str(tmp_path / "data")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()
