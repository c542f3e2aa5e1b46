"""A worker's HTTP server, as one page: metrics, health and the read API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from pipeline.core.contracts.book import ContractBook
from pipeline.core.timeline import TimeRules, to_text
from pipeline.serve import page
from pipeline.serve.api import Api, Explain, Rates, Reader, errors_as_json
from pipeline.serve.forgetting import Forgets, Forgetting
from pipeline.serve.guard import guard
from pipeline.sinks.prometheus import Exporter, Readings
from pipeline.tokens import Tokens

NotReady = Callable[[], str | None]
"""Why this worker is not ready; None when all its parts run."""


def application(
    exporter: Exporter,
    readings: Readings,
    rates: Rates,
    store: Reader,
    rules: TimeRules,
    book: ContractBook,
    explain: Explain,
    not_ready: NotReady,
    tokens: Tokens | None = None,
    forgets: Forgets | None = None,
) -> web.Application:
    """The routes; with `tokens`, the API asks for one. Without `forgets` nothing can be erased here."""

    async def metrics(request: web.Request) -> web.Response:
        body, content_type = exporter.scrape(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_request: web.Request) -> web.Response:
        why = not_ready()
        return web.json_response({"ready": why is None, "reason": why}, status=200 if why is None else 503)

    app = web.Application(middlewares=[errors_as_json, *([guard(tokens)] if tokens else [])])
    app.router.add_routes(page.routes())
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_routes(Api(rates, store, rules, book, explain, lambda: health(readings, not_ready)).routes())
    if forgets is not None:
        app.router.add_routes(Forgetting(forgets, tokens).routes())
    return app


def health(readings: Readings, not_ready: NotReady) -> dict[str, Any]:
    """What this worker owns and how far it is, by stage."""
    stages: dict[str, dict[str, Any]] = {
        stage: {"partitions": count, "owned": [], "watermarks": {}} for stage, count in readings.partitions()
    }

    def of(stage: str) -> dict[str, Any]:
        return stages.setdefault(stage, {"partitions": None, "owned": [], "watermarks": {}})

    for stage, partition in readings.owned():
        of(stage)["owned"].append(partition)
    for stage, partition, ns in readings.watermarks():
        of(stage)["watermarks"][str(partition)] = to_text(ns) if ns else None
    why = not_ready()
    return {
        "ready": why is None,
        "reason": why,
        "stages": stages,
        "gauges": dict(readings.gauges()),
        "contracts": readings.contracts(),
    }


async def listen(app: web.Application, host: str, port: int) -> tuple[web.AppRunner, int]:
    """Serve until the runner's `cleanup`; the port is the real one where 0 was asked for.

    Raises:
        OSError: the port is taken.
    """
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])
