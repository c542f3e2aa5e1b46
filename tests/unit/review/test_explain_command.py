"""`trueup explain` against a server that knows one conversation."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.cli.explain import NotTold, readings

GOLDEN = Path(__file__).parents[2] / "golden" / "explain"
STORY = (GOLDEN / "refuted.json").read_bytes()
ID = json.loads(STORY)["conversation"]
SECRET = "read-me"


class Worker(BaseHTTPRequestHandler):
    """Tells the story to whoever has the token."""

    def do_GET(self) -> None:
        told = {f"/api/sessions/default/{ID}": STORY, "/api/sessions/shop/a/b#1": STORY}
        found = told.get(unquote(self.path), b"")
        if self.headers.get("Authorization") != f"Bearer {SECRET}":
            status, body = 401, b'{"error": "no token"}'
        elif unquote(self.path).endswith("/page"):
            status, body = 200, b"<html>"
        else:
            status, body = (200, found) if found else (404, b'{"error": "none"}')
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Worker) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    return str(file)


def told(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["explain", *arguments])
    if isinstance(done.exception, NotTold):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_it_prints_the_text_of_the_conversation(url: str, token: str) -> None:
    assert told(ID, "--url", url, "--token-file", token) == (GOLDEN / "refuted.txt").read_text("utf-8")


def test_json_holds_the_same(url: str, token: str) -> None:
    body = json.loads(told(f"default/{ID}#2", "--url", f"{url}/", "--format", "json", "--token-file", token))

    [session] = body["sessions"]
    assert session["session"] == f"default/{ID}#2"
    assert session["in_short"] == ["The agent said that it was done, but it is not: payment_confirmed failed."]
    assert {one["status"] for one in session["criteria"]} == {"passed", "failed"}


def test_ids_with_slashes_and_numbers_are_found(url: str, token: str) -> None:
    assert told("shop/a/b#1", "--url", url, "--token-file", token)
    assert list(readings("shop/a#2")) == [
        ("shop", "a", 2),
        ("default", "shop/a", 2),
        ("shop", "a#2", None),
        ("default", "shop/a#2", None),
    ]


@pytest.mark.parametrize(
    ("session", "said"),
    [
        ("nobody", "knows no such session"),
        (f"{ID}#7", f"default/{ID} has no session #7; it has #1, #2"),
        ("page", "no JSON: is it a trueup worker?"),
    ],
)
def test_what_cannot_be_told_says_why(session: str, said: str, url: str, token: str) -> None:
    with pytest.raises(NotTold, match=said):
        told(session, "--url", url, "--token-file", token)


def test_without_a_token_it_says_what_to_give(url: str) -> None:
    with pytest.raises(NotTold, match="401: no token; give --token-file"):
        told(ID, "--url", url)


def test_a_worker_that_is_away_is_named(url: str) -> None:
    with pytest.raises(NotTold, match=r"127\.0\.0\.1:1 does not answer .*--url"):
        told(ID, "--url", "http://127.0.0.1:1")


def test_help_has_an_example() -> None:
    assert "Example: trueup explain default/chat-17#2" in told("--help")
