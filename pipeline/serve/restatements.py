"""`/api/restatements`: past buckets whose counts have changed since they were first published.

The rule this file keeps: what was first said stays readable beside what is true now; nothing is taken back in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from aiohttp import web

from pipeline.serve.asking import chosen, json_body, known_only, moment, number, time
from pipeline.sinks.restatements import Restatement
from schemas.segment import Rate

PAGE, MOST = 50, 500


class Rates(Protocol):
    """Where the cubes and the time come from."""

    def cubes(self) -> Sequence[str]: ...

    def watermark(self) -> int: ...


class Restated(Protocol):
    """What is asked of the store."""

    async def restatements(
        self, cube: str, rate: str | None, since: int, limit: int
    ) -> tuple[int, list[Restatement]]: ...


class Restatements:
    """The handler."""

    def __init__(self, rates: Rates, store: Restated) -> None:
        self._rates, self._store = rates, store

    async def restatements(self, request: web.Request) -> web.Response:
        """`cube` (default `system`), `rate` (default all), `since` (default all), `limit`; the newest buckets first."""
        known_only(request, ["cube", "rate", "since", "limit"])
        cube = chosen(request, "cube", self._rates.cubes(), "system")
        rate = chosen(request, "rate", [one.value for one in Rate], None)
        as_of = self._rates.watermark()
        since = moment(request, "since", as_of)
        total, found = await self._store.restatements(cube, rate, since or 0, number(request, "limit", PAGE, MOST))
        body = {"as_of": time(as_of), "cube": cube, "total": total, "restatements": [_told(one) for one in found]}
        return json_body(body)


def _told(one: Restatement) -> dict[str, Any]:
    return {
        "dimensions": one.dimensions,
        "rate": one.rate,
        "bucket": time(one.bucket),
        "first": {"numerator": one.first_numerator, "denominator": one.first_denominator},
        "now": {"numerator": one.numerator, "denominator": one.denominator},
        "as_of": time(one.as_of),
    }
