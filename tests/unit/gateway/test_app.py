from __future__ import annotations

import asyncio
import re
from typing import Any

import aiohttp
import pytest

from pipeline.errors import BrokerUnreachable
from pipeline.gateway.app import OpenToAll, application, is_loopback, listen
from tests.unit.gateway.conftest import FakeBroker, Gateway


def get(gateway: Gateway, path: str) -> tuple[int, Any]:
    async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
        async with session.get(url + path) as answer:
            return answer.status, await answer.json()

    return gateway.run(ask)


def test_health_and_readiness_are_told_apart(broker: FakeBroker) -> None:
    gateway = Gateway(broker, not_ready="no broker answers")

    assert get(gateway, "/healthz") == (200, {"status": "ok"})
    assert get(gateway, "/readyz") == (503, {"ready": False, "reason": "no broker answers"})
    assert get(Gateway(broker), "/readyz") == (200, {"ready": True, "reason": None})


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "10.0.0.1", "example.com"])
def test_without_tokens_only_loopback_is_listened_on(host: str, broker: FakeBroker) -> None:
    async def ready() -> str | None:
        return None

    with pytest.raises(OpenToAll, match="tokens"):
        asyncio.run(listen(application(broker, ready), host, 0))


def test_loopback_is_known_in_every_spelling() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.0.0.53", "::1", "localhost"))


def test_a_taken_port_is_an_error_and_leaves_nothing_open(broker: FakeBroker) -> None:
    gateway = Gateway(broker)

    async def twice() -> None:
        runner, port = await gateway.listen()

        async def ready() -> str | None:
            return None

        try:
            with pytest.raises(OSError, match=str(port)):
                await listen(application(broker, ready), "127.0.0.1", port)
        finally:
            await runner.cleanup()

    asyncio.run(twice())


def test_who_asks_for_what_is_not_here_hears_what_is(broker: FakeBroker) -> None:
    async def both(session: aiohttp.ClientSession, url: str) -> list[tuple[int, Any]]:
        async with session.post(f"{url}/v1/metrics", data=b"") as metrics, session.get(f"{url}/v1/traces") as traces:
            assert traces.headers["Allow"] == "POST"
            return [(answer.status, (await answer.json())["error"]) for answer in (metrics, traces)]

    (no_route, routes), no_method = Gateway(broker).run(both)

    assert no_route == 404
    assert routes.startswith("there is no /v1/metrics here")
    assert all(route in routes for route in ("/v1/traces", "/v1/logs", "/v1/outcomes"))
    assert no_method == (405, "/v1/traces is not asked by GET, but by POST")


def test_what_became_of_requests_is_counted(broker: FakeBroker) -> None:
    gateway = Gateway(broker)
    sound, half = b'{"resourceSpans": [{}]}', b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}, 5, "x"]}]}]}'

    async def whole(session: aiohttp.ClientSession, url: str) -> str:
        for path, body in (
            ("traces", sound),
            ("traces", half),
            ("logs", b"{"),
            ("outcomes", b"[]"),
            ("outcomes", b"x"),
        ):
            await session.post(f"{url}/v1/{path}", data=body, headers={"Content-Type": "application/json"})
        broker.fails = BrokerUnreachable("away")
        await session.post(f"{url}/v1/traces", data=sound, headers={"Content-Type": "application/json"})
        async with session.get(f"{url}/metrics") as answer:
            return await answer.text()

    page = gateway.run(whole)
    counts = dict(re.findall(r'trueup_records_total{reason="(\w+)",result="\w+",stage="gateway"} (\d+)', page))
    by_result = re.findall(r'trueup_records_total{reason="request",result="(\w+)",stage="gateway"} (\d+)', page)

    assert counts | {"request": ""} == {
        "request": "",
        "unreadable": "2",
        "kafka_away": "1",
        "item_refused": "2",
        "item_bad_id": "1",
    }
    assert dict(by_result) == {"received": "6", "used": "3"}
    assert "trueup_build_info" in page
