"""A gateway on a real port, over a broker that can be told to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
import pytest
from aiohttp import web

from pipeline.gateway.app import application, listen
from pipeline.gateway.limits import Limits
from pipeline.gateway.request import Authorize, anyone

Result = TypeVar("Result")
MAX_REQUEST_BYTES = 4_000_000


@dataclass
class FakeBroker:
    """Keeps what it took; `fails` is raised instead, from the given record on."""

    taken: list[tuple[str, bytes, bytes | None]] = field(default_factory=list)
    fails: Exception | None = None
    fails_from: int = 0
    delivered: asyncio.Event | None = None

    async def __call__(self, topic: str, value: bytes, key: bytes | None = None, /) -> None:
        if self.fails is not None and len(self.taken) >= self.fails_from:
            raise self.fails
        if self.delivered is not None:
            await self.delivered.wait()
        self.taken.append((topic, value, key))

    def values(self, topic: str) -> list[bytes]:
        return [value for at, value, _ in self.taken if at == topic]


@dataclass
class Gateway:
    """Runs a test's coroutine against a gateway that lives as long as it."""

    broker: FakeBroker
    authorize: Authorize = anyone
    not_ready: str | None = None
    limits: Limits = field(default_factory=lambda: Limits(request_bytes=MAX_REQUEST_BYTES))

    def run(self, test: Callable[[aiohttp.ClientSession, str], Awaitable[Result]]) -> Result:
        async def whole() -> Result:
            runner, port = await self.listen()
            try:
                async with aiohttp.ClientSession() as session:
                    return await test(session, f"http://127.0.0.1:{port}")
            finally:
                await runner.cleanup()

        return asyncio.run(whole())

    async def listen(self) -> tuple[web.AppRunner, int]:
        async def why() -> str | None:
            return self.not_ready

        app = application(self.broker, why, self.authorize, self.limits)
        return await listen(app, "127.0.0.1", 0)

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """One request; a header `content_type` is sent as `content-type`."""

        async def send(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes, dict[str, str]]:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            async with session.post(url + path, data=body, headers=names) as answer:
                told = {name.lower(): value for name, value in answer.headers.items()}
                return answer.status, await answer.read(), told

        return self.run(send)


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def gateway(broker: FakeBroker) -> Gateway:
    return Gateway(broker)
