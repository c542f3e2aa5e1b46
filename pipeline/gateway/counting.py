"""What the gateway counts of itself: requests, and what became of each.

The rule this file keeps: `used` and `dropped` add up to `received`; items that a request was taken without are noted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from pipeline import metrics
from pipeline.core.effects import Result

STAGE = "gateway"
WHY = {
    400: "unreadable",
    401: "no_token",
    403: "not_allowed",
    408: "slow",
    413: "too_large",
    415: "unsupported",
    429: "no_room",
    503: "kafka_away",
}
LEFT_OUT = web.RequestKey("left_out", int)
"""How many items of a request were not taken; its handler says it."""
MALFORMED = web.RequestKey("malformed", int)
"""How many were taken though their ids are none: their sender was told, and ingest buries and counts them."""

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Counts:
    """The `/metrics` of a gateway."""

    def __init__(self, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        records, build = metrics.RECORDS, metrics.BUILD_INFO
        self._records = Counter(records.name, records.help, records.labels, registry=self._registry)
        Gauge(build.name, build.help, build.labels, registry=self._registry).labels(version).set(1)

    def counted(self, handler: Handler) -> Handler:
        """The handler, with what it answers counted."""

        async def handle(request: web.Request) -> web.Response:
            status = 500
            try:
                answer = await handler(request)
                status = answer.status
                return answer
            finally:
                self._count(Result.RECEIVED, "request")
                if status == 200:
                    self._count(Result.USED, "request")
                else:
                    self._count(Result.DROPPED, WHY.get(status, "failed"))
                self._count(Result.NOTED, "item_refused", request.get(LEFT_OUT, 0))
                self._count(Result.NOTED, "item_bad_id", request.get(MALFORMED, 0))

        return handle

    def _count(self, result: Result, reason: str, number: int = 1) -> None:
        self._records.labels(STAGE, result, reason).inc(number)

    async def page(self, request: web.Request) -> web.Response:
        """OpenMetrics where the reader takes it, else the older text."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})
