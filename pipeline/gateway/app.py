"""The gateway's HTTP server, as one page: its routes and where it may listen."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from pipeline.errors import TrueupError
from pipeline.gateway.broker import Produce
from pipeline.gateway.counting import Counts
from pipeline.gateway.limits import Limits, Room
from pipeline.gateway.otlp import OtlpRoute
from pipeline.gateway.outcomes import OutcomesRoute
from pipeline.gateway.request import Authorize, anyone
from pipeline.gateway.signals import LOGS, TRACES

NotReady = Callable[[], Awaitable[str | None]]
"""Why nothing can be taken now; None when all is well."""


class OpenToAll(TrueupError):
    """The gateway was to listen beyond this machine without tokens."""


def application(
    produce: Produce,
    not_ready: NotReady,
    authorize: Authorize = anyone,
    limits: Limits | None = None,
    version: str = "unknown",
) -> web.Application:
    """The routes.

    Args:
        produce: sends one record to Kafka.
        not_ready: asked by `/readyz`.
        authorize: decides who may send what.
        limits: the usual ones, if not given.
        version: of trueup, for its metrics.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_request: web.Request) -> web.Response:
        why = await not_ready()
        return web.json_response({"ready": why is None, "reason": why}, status=200 if why is None else 503)

    limits = limits or Limits()
    room = Room(limits.bytes_in_flight)
    counts = Counts(version)
    app = web.Application(middlewares=[what_there_is])
    app.router.add_post("/v1/traces", counts.counted(OtlpRoute(TRACES, produce, authorize, limits, room)))
    app.router.add_post("/v1/logs", counts.counted(OtlpRoute(LOGS, produce, authorize, limits, room)))
    app.router.add_post("/v1/outcomes", counts.counted(OutcomesRoute(produce, authorize, limits, room)))
    app.router.add_get("/metrics", counts.page)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


@web.middleware
async def what_there_is(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Who asks for what is not here, an exporter of metrics for one, hears what is."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        there_are = ", ".join(resource.canonical for resource in request.app.router.resources())
        return web.json_response({"error": f"there is no {request.path} here; there are {there_are}"}, status=404)
    except web.HTTPMethodNotAllowed as error:
        allow = ", ".join(sorted(error.allowed_methods))
        told = {"error": f"{request.path} is not asked by {request.method}, but by {allow}"}
        return web.json_response(told, status=405, headers={"Allow": allow})


async def listen(app: web.Application, host: str, port: int, has_tokens: bool = False) -> tuple[web.AppRunner, int]:
    """Serve until the runner's `cleanup`; the port is the real one where 0 was asked for.

    Raises:
        OpenToAll: without tokens on an address that others can reach.
        OSError: the port is taken.
    """
    if not has_tokens and not is_loopback(host):
        raise OpenToAll(
            f"the gateway has no tokens, so it may not listen on {host}: set tokens, or listen on 127.0.0.1"
        )
    # Bodies are unpacked by us, up to our limit.
    runner = web.AppRunner(app, auto_decompress=False, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
