"""Keeps what a program would send to trueup in files, for `trueup inspect`.

    python examples/catch_spans.py FOLDER COMMAND ARGUMENT...
    trueup inspect --together FOLDER/*

It takes OTLP over HTTP on a free port of loopback while the command runs, and tells the command by
OTEL_EXPORTER_OTLP_ENDPOINT. Each request becomes a file, as it came. Needs only the standard library.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEPT = {"/v1/traces": "traces", "/v1/logs": "logs"}


class Catcher(ThreadingHTTPServer):
    """An OTLP receiver that writes each body to a file of its own.

    Attributes:
        kept: how many there are.
    """

    daemon_threads = False  # closing waits for the last request

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._folder = folder
        self._lock = threading.Lock()
        self.kept = 0

    def keep(self, signal: str, ending: str, body: bytes) -> None:
        with self._lock:
            self.kept += 1
            name = f"{self.kept:04d}-{signal}.{ending}"
        (self._folder / name).write_bytes(body)


class Handler(BaseHTTPRequestHandler):
    """Says yes to everything; metrics are not kept."""

    server: Catcher

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        json = self.headers.get("Content-Type", "").startswith("application/json")
        if signal := KEPT.get(self.path):
            self.server.keep(signal, "json" if json else "pb", body)
        answer = b"{}" if json else b""  # nothing was left out
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if json else "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing: what the program prints is what one wants to see."""


@contextmanager
def catching(folder: Path) -> Iterator[Catcher]:
    """A receiver, as long as the block runs."""
    server = Catcher(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def main(arguments: list[str]) -> int:
    """Runs the command beside the receiver; the status is the command's."""
    if len(arguments) < 2:
        print("usage: catch_spans.py FOLDER COMMAND ARGUMENT...", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"catch_spans: {folder} is not empty: name a new folder", file=sys.stderr)
        return 2
    with catching(folder) as server:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        status = subprocess.run(arguments[1:], env={**os.environ, **endpoint, **protocol}, check=False).returncode
    print(f"{server.kept} requests in {folder}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
