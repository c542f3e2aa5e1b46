"""Processes that we start: each with a log of its own, and none that outlives us.

The rule this file keeps: a child ends with its parent, also when the parent is killed; Ctrl-C in the terminal reaches
the parent alone, which stops its children in order.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import TrueupError

STOP_SECONDS = 20.0
LAST_WORDS = 2000
# Linux ends a child with its parent if the child asks for it; elsewhere there is nothing like it. In a process of its
# own, since code between fork and exec of a process with threads may hang.
DIE_WITH_PARENT = """
import ctypes, os, signal, sys
try:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
except (AttributeError, OSError):
    pass
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class ChildEnded(TrueupError):
    """A process that we need has ended by itself."""


def bound(command: Sequence[str]) -> list[str]:
    """The command that runs `command` in a process that ends with this one; start it from the main thread."""
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *command]


class Child:
    """A process of trueup: `python -m pipeline <arguments>`.

    Args:
        name: for messages.
        arguments: of the command line.
        log: file that its output is appended to.
        ready: port and path of the page that answers 200 once it is ready.
    """

    def __init__(self, name: str, arguments: Sequence[str], log: Path, ready: tuple[int, str] | None = None) -> None:
        self.name, self.log = name, log
        self._arguments, self._ready = list(arguments), ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, more: Sequence[str] = ()) -> None:
        """Start it; `wait_ready` waits until it can be used."""
        command = bound([sys.executable, "-m", "pipeline", *self._arguments, *more])
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def returncode(self) -> int | None:
        """None while it runs, or before it was started."""
        return self._process.poll() if self._process else None

    def wait_ready(self, seconds: float) -> None:
        """
        Raises:
            ChildEnded: it ended, or is not ready in time; with what it said last.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (code := self.returncode) is not None:
                raise ChildEnded(f"the {self.name} ended with {code}: {self.last_words()}")
            if self._ready is None or answers(*self._ready):
                return
            time.sleep(0.05)
        raise ChildEnded(f"the {self.name} is not ready after {seconds:g} s; see {self.log}: {self.last_words()}")

    def last_words(self) -> str:
        """The last line of its log that says something."""
        if not self.log.exists():
            return "it said nothing"
        lines = self.log.read_bytes()[-LAST_WORDS:].decode(errors="replace").strip().splitlines()
        return lines[-1][-400:] if lines else "it said nothing"

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to stop; `stop` waits."""
        self.tell(signal.SIGTERM)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask it to stop, and end it if it does not. Safe to call twice, and before it was started."""
        if self._process is None:
            return
        self.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        except BaseException:  # a second Ctrl-C: no more patience, but nothing is left behind
            self.kill()
            raise


def answers(port: int, path: str) -> bool:
    """Whether a page on this machine answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
