"""The read API asks for a token with the scope `read`; the token of a tenant shows that tenant alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pipeline.serve.guard import guard
from pipeline.tokens import Tokens, load

READER, TENANT, SENDER = "reader-of-everything", "reader-of-acme-alone", "sender-of-spans-0001"
FILE = "".join(
    f'[[token]]\ntoken = "{token}"\nscopes = ["{scope}"]\ntenant = "{tenant}"\n'
    for token, scope, tenant in ((READER, "read", "*"), (TENANT, "read", "acme"), (SENDER, "spans", "acme"))
)
STORY, LIST, RATES, OPEN = "/api/sessions/acme/c1", "/api/sessions", "/api/rates", "/metrics"
MEANS = "/api/means"


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    file = tmp_path / "tokens.toml"
    file.write_text(FILE)
    return load(file)


def app_of(tokens: Tokens) -> web.Application:
    async def told(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    app = web.Application(middlewares=[guard(tokens)])
    for path in ("/api/sessions/{tenant}/{conversation}", LIST, RATES, MEANS, OPEN, "/", "/healthz"):
        app.router.add_get(path, told)
    return app


def ask(tokens: Tokens, path: str, token: str = "") -> tuple[int, Any]:
    async def asked() -> tuple[int, Any]:
        async with TestClient(TestServer(app_of(tokens))) as client:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await client.get(path, headers=headers)
            text = await answer.text()
            return answer.status, json.loads(text) if answer.status >= 400 else text

    return asyncio.run(asked())


@pytest.mark.parametrize("path", [OPEN, "/", "/healthz"])
def test_metrics_health_and_the_page_stay_open(tokens: Tokens, path: str) -> None:
    assert ask(tokens, path)[0] == 200


@pytest.mark.parametrize("path", [STORY, LIST, RATES])
def test_without_a_token_that_may_read_nothing_is_told(tokens: Tokens, path: str) -> None:
    assert ask(tokens, path)[0] == 401
    assert ask(tokens, path, "another-token-entirely")[0] == 401
    assert ask(tokens, path, SENDER) == (403, {"error": "the token 'token 3' has not the scope read"})


@pytest.mark.parametrize("path", [STORY, LIST, RATES, "/api/sessions/rival/c1"])
def test_a_reader_of_all_tenants_sees_all(tokens: Tokens, path: str) -> None:
    assert ask(tokens, path, READER)[0] == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (STORY, 200),
        (RATES, 200),
        (MEANS, 200),
        ("/api/sessions?tenant=acme", 200),
        ("/api/sessions?tenant=rival", 403),
        (LIST, 403),
        ("/api/sessions/rival/c1", 403),
        ("/api/sessions/rival/c1?tenant=acme", 403),
    ],
)
def test_a_reader_of_one_tenant_sees_that_one(tokens: Tokens, path: str, status: int) -> None:
    assert ask(tokens, path, TENANT)[0] == status
