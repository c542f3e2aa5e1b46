"""The read API: the numbers of the gauges as JSON, the same from the store, and the story of a conversation.

The rule this file keeps: `source=store` counts over the very window that the gauge beside it was made of, so that the
two may be held against each other to the last session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from aiohttp import web

from pipeline.core.contracts.book import CompiledContract, ContractBook
from pipeline.core.timeline import SECOND, TimeRules
from pipeline.core.windows import window_bounds
from pipeline.errors import StoreUnavailable
from pipeline.logs import Log
from pipeline.serve.asking import Refusal, chosen, json_body, known_only, time
from pipeline.serve.listing import Listing
from pipeline.serve.means import Means
from pipeline.serve.restatements import Restatements
from pipeline.sinks.conversation import Conversation
from pipeline.sinks.listing import Page, Place, Wanted
from pipeline.sinks.restatements import Restatement
from schemas.segment import WINDOWS, CountReading, MeanReading, Rate, RateReading

log = Log("serve")

SOURCES = ("state", "store")
RETRY_AFTER_SECONDS = 5

Explain = Callable[[Mapping[str, Any]], Iterable[Any]]
Counts = tuple[int, int]
Segment = tuple[frozenset[tuple[str, str]], str]


class Rates(Protocol):
    """Where the present rates come from."""

    def cubes(self) -> Sequence[str]:
        """Those that are configured."""

    def watermark(self) -> int:
        """How far the measure stage has come, ns; 0 before it began."""

    async def all_rates(self) -> Iterable[RateReading]:
        """Of all segments, whichever worker owns them."""

    async def all_summaries(self) -> tuple[Iterable[MeanReading], Iterable[CountReading]]:
        """The same of means, and of sessions by state, stage and criterion."""


class Reader(Protocol):
    """What the API asks of the store."""

    async def rates(
        self, cube: str, window_start_ns: int, window_end_ns: int
    ) -> list[tuple[dict[str, str], str, int, int]]: ...

    async def session(self, tenant: str, conversation: str) -> Conversation | None: ...

    async def sessions(self, wanted: Wanted, after: Place | None, limit: int) -> Page: ...

    async def restatements(
        self, cube: str, rate: str | None, since: int, limit: int
    ) -> tuple[int, list[Restatement]]: ...


class Api:
    """The handlers of `/api`.

    Args:
        explain: a conversation, as it is told here, in words: one explanation a session.
    """

    def __init__(
        self,
        rates: Rates,
        store: Reader,
        rules: TimeRules,
        book: ContractBook,
        explain: Explain,
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self._rates, self._store, self._rules, self._book = rates, store, rules, book
        self._explain, self._health = explain, health

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/rates", self.rates),
            web.get("/api/means", Means(self._rates).means),
            web.get("/api/sessions", Listing(self._rates, self._store, self._rules).sessions),
            web.get("/api/sessions/{tenant}/{conversation}", self.conversation),
            web.get("/api/restatements", Restatements(self._rates, self._store).restatements),
            web.get("/api/health", self.health),
        ]

    async def rates(self, request: web.Request) -> web.Response:
        """`cube` (default `system`), `window` (default `24h`), `rate` (default all), `source` (default `state`)."""
        known_only(request, ["cube", "window", "rate", "source"])
        cube = chosen(request, "cube", self._rates.cubes(), "system")
        window = chosen(request, "window", list(WINDOWS), "24h")
        rate = chosen(request, "rate", [r.value for r in Rate], None)
        source = chosen(request, "source", SOURCES, "state")
        readings = [
            reading
            for reading in await self._rates.all_rates()
            if reading.cube == cube and reading.window == window and rate in (None, reading.rate)
        ]
        as_of = min((r.as_of for r in readings), default=self._rates.watermark())
        found = [_told(r, r.numerator, r.denominator) for r in readings]
        if source == "store":
            found = await self._from_store(cube, window, rate, readings, as_of)
        found.sort(key=lambda r: (r["rate"], sorted(r["dimensions"].items())))
        return json_body({"as_of": time(as_of), "cube": cube, "window": window, "source": source, "rates": found})

    async def _from_store(
        self, cube: str, window: str, rate: str | None, readings: Sequence[RateReading], as_of: int
    ) -> list[dict[str, Any]]:
        """The readings with the store's counts, and what the store alone has.

        Partitions are at different watermarks, and so are their windows: each reading is counted over its own.
        """
        stored: dict[tuple[int, int], dict[Segment, Counts]] = {}

        async def counts_at(watermark: int) -> dict[Segment, Counts]:
            bounds = window_bounds(watermark, WINDOWS[window] * SECOND, self._rules)
            if bounds not in stored:
                rows = await self._store.rates(cube, *bounds)
                stored[bounds] = {(frozenset(dims.items()), of): (k, n) for dims, of, k, n in rows}
            return stored[bounds]

        found = []
        known: set[Segment] = set()
        for reading in readings:
            segment = frozenset(reading.dimensions), reading.rate
            known.add(segment)
            found.append(_told(reading, *(await counts_at(reading.as_of)).get(segment, (0, 0))))
        for (dimensions, of), (numerator, denominator) in (await counts_at(as_of)).items():
            if denominator and (dimensions, of) not in known and rate in (None, of):
                alone = RateReading(
                    cube, tuple(sorted(dimensions)), of, window, 0, 0, None, 0.0, 1.0, 0.0, None, None, as_of
                )
                found.append(_told(alone, numerator, denominator))
        return found

    async def conversation(self, request: web.Request) -> web.Response:
        tenant, conversation = request.match_info["tenant"], request.match_info["conversation"]
        story = await self._store.session(tenant, conversation)
        if story is None:
            raise Refusal(404, f"no session of conversation {conversation!r} of tenant {tenant!r} is in the store")
        names = sorted({one.verdict["contract_version"] for one in story.sessions} - {""})
        contracts = {name: _judged_by(found) for name in names if (found := self._book.named(name)) is not None}
        body: dict[str, Any] = {**msgspec.to_builtins(story), "contracts": contracts}
        body["explanations"] = list(self._explain(body))
        return json_body({"as_of": time(self._rates.watermark()), **body})

    async def health(self, _request: web.Request) -> web.Response:
        return json_body({"as_of": time(self._rates.watermark()), **self._health()})


@web.middleware
async def errors_as_json(request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
    """Whatever goes wrong is told as JSON, and no stack trace leaves the process."""
    try:
        response: web.StreamResponse = await handler(request)
        return response
    except Refusal as refusal:
        return web.json_response(refusal.body, status=refusal.status)
    except StoreUnavailable:
        return web.json_response(
            {"error": "the store does not answer now; gauges and source=state go on"},
            status=503,
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    except web.HTTPNotFound:
        there_are = sorted({resource.canonical for resource in request.app.router.resources()})
        return web.json_response({"error": f"there is no {request.path} here", "allowed": there_are}, status=404)
    except web.HTTPMethodNotAllowed as error:
        allowed = sorted(error.allowed_methods)
        told = {"error": f"{request.path} is not asked by {request.method}", "allowed": allowed}
        return web.json_response(told, status=405, headers={"Allow": ",".join(allowed)})
    except web.HTTPException as error:
        return web.json_response({"error": error.reason}, status=error.status)
    except Exception as error:
        # The edge of the process: the reader is told that it failed, the log why.
        log.error("a request failed", error, path=request.path)
        return web.json_response({"error": "this failed; the worker's log says why"}, status=500)


def _told(reading: RateReading, numerator: int, denominator: int) -> dict[str, Any]:
    known = reading.ratio is not None
    return {
        "dimensions": dict(reading.dimensions),
        "rate": reading.rate,
        "numerator": numerator,
        "denominator": denominator,
        "ratio": reading.ratio,
        "lower": reading.lower if known else None,
        "upper": reading.upper if known else None,
        "effective_n": reading.effective_n if known else None,
        "maturity": reading.maturity,
        "target": reading.target,
    }


def _judged_by(contract: CompiledContract) -> dict[str, Any]:
    """A contract in its own words: what each criterion asks, and which fields it reads."""
    criteria: dict[str, Any] = {}
    for one in contract.criteria:
        reads = one.check.variables | (one.fails_when.variables if one.fails_when is not None else frozenset())
        fields = {
            variable: sorted(one.check.reads(variable) | (one.fails_when.reads(variable) if one.fails_when else set()))
            for variable in sorted(reads)
        }
        criteria[one.id] = {
            "check": one.check.source,
            "fails_when": one.fails_when.source if one.fails_when is not None else None,
            "applies": one.applies.source if one.applies is not None else None,
            "reads": fields,
        }
    return {"reopen_window_seconds": contract.reopen_window / SECOND, "criteria": criteria}
