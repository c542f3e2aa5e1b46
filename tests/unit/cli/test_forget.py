"""`trueup forget`: what it orders, how it tells what was found, and what it refuses to guess."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pipeline.cli import app
from pipeline.cli.forget import NotForgotten

FOUND = {
    "judge": {"conversations": 1, "sessions": 2, "spans": 12, "outcomes": 0},
    "resolve": {"traces": 3},
    "correlate": {"keys": 4, "outcomes": 1},
    "sink": {"verdicts": 5, "revisions": 6, "outcomes": 0},
}
NOTHING = {"judge": {"conversations": 1, "sessions": 0}, "resolve": {"traces": 0}}


class Worker:
    """A worker that says what it is told to.

    Attributes:
        reports: one for each time it is asked; the last again and again.
        ordered: bodies and tokens that came.
    """

    def __init__(self) -> None:
        self.status = 202
        self.reports: list[dict[str, Any]] = []
        self.ordered: list[tuple[dict[str, Any], str]] = []
        worker = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                worker.ordered.append((json.loads(body), self.headers.get("Authorization", "")))
                self._say(worker.status, {"order": "c-1"} if worker.status == 202 else {"error": "why not"})

            def do_GET(self) -> None:
                report = worker.reports.pop(0) if len(worker.reports) > 1 else worker.reports[0]
                self._say(200, report)

            def _say(self, status: int, body: dict[str, Any]) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.close()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints."""
    app(["forget", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def report(done: bool, found: dict[str, Any], conversations: int = 1) -> dict[str, Any]:
    return {"order": "c-1", "done": done, "conversations": conversations, "found": found}


def test_it_waits_until_all_is_erased_and_says_what_was_found_where(
    worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.reports = [report(False, {}), report(True, FOUND)]
    token = tmp_path / "token"
    token.write_text("one-that-may-erase\n")
    printed = said(capsys, "--session", "acme/chat/17", "--url", worker.url, "--token-file", str(token))

    assert worker.ordered == [({"tenant": "acme", "conversation": "chat/17"}, "Bearer one-that-may-erase")]
    assert printed.splitlines() == [
        "erased: 1 conversation; what it counted stays, counted as erased",
        "  sessions: 2 sessions, 12 spans",
        "  traces on their way to sessions: 3 traces",
        "  outcomes and business keys: 4 keys, 1 outcomes",
        "  rows of the store: 6 revisions, 5 verdicts",
    ]


def test_a_subject_goes_as_senders_write_it(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    worker.reports = [report(True, FOUND, 2)]
    printed = said(capsys, "--subject", "ada@example.org", "--url", worker.url, "--format", "json")
    assert worker.ordered[0][0] == {"tenant": "default", "subject": "ada@example.org"}
    assert json.loads(printed) == worker.reports[0]


def test_what_is_not_done_in_time_is_under_way(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    worker.reports = [report(False, FOUND)]
    printed = said(capsys, "--session", "default/c", "--url", worker.url, "--wait", "0.6")
    assert printed.startswith("ordered, and under way")
    assert f"{worker.url}/api/forget/c-1" in printed


def test_nothing_found_is_said_with_what_may_be_the_reason(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    worker.reports = [report(True, NOTHING)]
    assert said(capsys, "--session", "default/c#2", "--url", worker.url) == (
        "nothing of it was found; leave #n out, whole conversations are erased; "
        "whatever comes of it is refused from now on\n"
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "exactly one of --session and --subject"),
        (["--session", "default/c", "--subject", "ada"], "exactly one of --session and --subject"),
        (["--session", "chat-17"], "write TENANT/CONVERSATION, such as default/chat-17"),
        (["--session", "default/"], "write TENANT/CONVERSATION"),
        (["--session", "default/c", "--tenant", "default"], "--tenant goes with --subject"),
        (["--session", "default/c", "--token-file", "/nowhere"], "/nowhere: cannot be read"),
        (["--session", "default/c", "--url", "http://127.0.0.1:1"], "name a running worker with --url"),
    ],
)
def test_what_is_not_clear_erases_nothing(arguments: list[str], why: str) -> None:
    with pytest.raises(NotForgotten, match=re.escape(why)):
        app(["forget", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("status", "why"),
    [(403, "of the scope forget"), (404, "a worker with stages and a store"), (503, "answers with 503: why not")],
)
def test_a_refusal_says_what_to_do(worker: Worker, status: int, why: str) -> None:
    worker.status = status
    with pytest.raises(NotForgotten, match=re.escape(why)):
        app(["forget", "--session", "default/c", "--url", worker.url], standalone_mode=False)
