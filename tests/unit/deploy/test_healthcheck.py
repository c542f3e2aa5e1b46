"""deploy/healthcheck.py: 200 is healthy, every other answer and none at all is not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deploy.healthcheck import main


class Answering(BaseHTTPRequestHandler):
    """Answers with the status that the path asks for."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(200, 0, id="well"),
        pytest.param(204, 1, id="not the answer of a health check"),
        pytest.param(404, 1, id="another program's port"),
        pytest.param(503, 1, id="not well"),
    ],
)
def test_only_200_is_healthy(status: int, code: int, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"{address}/{status}") == code
    assert str(status) in capsys.readouterr().out


def test_nobody_there_is_unhealthy_whatever_proxy_is_set(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("http_proxy", address)  # it would answer for the absent one

    assert main("http://127.0.0.1:1/200") == 1
