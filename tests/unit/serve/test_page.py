from __future__ import annotations

import re

import pytest

from pipeline.serve.page import FILES
from tests.unit.serve.conftest import Server


@pytest.mark.parametrize("path", FILES)
def test_each_file_is_served_with_its_type_and_a_policy(path: str, server: Server) -> None:
    async def ask(session, url):
        async with session.get(url + path) as answer:
            return answer.status, answer.headers, await answer.text()

    status, headers, body = server.run(ask)

    assert status == 200
    assert headers["Content-Type"] == f"{FILES[path][1]}; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert len(body) > 1000


def test_what_the_browser_has_is_not_sent_again(server: Server) -> None:
    async def ask(session, url):
        async with session.get(f"{url}/page.js") as first:
            tag = first.headers["ETag"]
        async with session.get(f"{url}/page.js", headers={"If-None-Match": '"old"'}) as other:
            await other.read()
        async with session.get(f"{url}/page.js", headers={"If-None-Match": tag}) as same:
            return same.status, await same.read(), other.status

    assert server.run(ask) == (304, b"", 200)


@pytest.mark.parametrize("path", FILES)
def test_nothing_is_loaded_from_elsewhere(path: str, server: Server) -> None:
    body = server.get(path)[1]

    assert [one for one in re.findall(r"https?://[^\s\"')]+", body) if "w3.org/2000/svg" not in one] == []
    assert "innerHTML" not in body
