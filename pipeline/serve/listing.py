"""`/api/sessions`: the list behind a number.

The rule this file keeps: a list is cut by the very window that the rate beside it was counted over, and all its pages
by the window of the first, so that its `total` is that number to the last session.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from aiohttp import web

from pipeline.core.timeline import SECOND, TimeRules
from pipeline.core.windows import window_bounds
from pipeline.serve.asking import Refusal, chosen, json_body, known_only, moment, number, time
from pipeline.sinks.listing import OUTCOMES, Page, Place, Wanted
from schemas.segment import WINDOWS, Rate, RateReading

PARAMETERS = ("tenant", "family", "agent", "rate", "outcome", "window", "since", "cursor", "limit")
PAGE, MOST = 50, 500
DEFAULT_WINDOW = "24h"


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """Where a page begins: the window of the first page (ns; None is no bound), and the last session seen."""

    start: int | None
    end: int | None
    after: Place


_decode = msgspec.json.Decoder(Cursor).decode


class Rates(Protocol):
    """Where the present rates come from."""

    def watermark(self) -> int: ...

    async def all_rates(self) -> Iterable[RateReading]: ...


class Lists(Protocol):
    """What is asked of the store."""

    async def sessions(self, wanted: Wanted, after: Place | None, limit: int) -> Page: ...


class Listing:
    """The handler."""

    def __init__(self, rates: Rates, store: Lists, rules: TimeRules) -> None:
        self._rates, self._store, self._rules = rates, store, rules

    async def sessions(self, request: web.Request) -> web.Response:
        """All parameters are optional; without `rate`, `window` and `since` it is every session, the open ones too.

        `outcome` needs a `rate`: `good` is its numerator, without it the list is its denominator.
        """
        known_only(request, PARAMETERS)
        rate = chosen(request, "rate", [one.value for one in Rate], None)
        outcome = chosen(request, "outcome", OUTCOMES, None)
        window = chosen(request, "window", list(WINDOWS), None)
        limit = number(request, "limit", PAGE, MOST)
        if outcome is not None and rate is None:
            raise Refusal(400, "outcome needs a rate, whose outcome it is", parameter="outcome")
        if window is None and rate is not None and "since" not in request.query:
            window = DEFAULT_WINDOW
        tenant, family, agent = (request.query.get(name) or None for name in ("tenant", "family", "agent"))
        as_of = await self._as_of(family, rate, window)
        cursor = _cursor(request)
        if cursor is not None:
            start, end, after = cursor.start, cursor.end, cursor.after
        else:
            start, end = self._bounds(window, moment(request, "since", as_of), as_of, rate is not None)
            after = None
        wanted = Wanted(family, agent, rate, outcome, start, end, tenant)
        page = await self._store.sessions(wanted, after, limit)
        following = Cursor(start, end, page.after) if page.after is not None else None
        return json_body(
            {
                "as_of": time(as_of),
                "tenant": tenant,
                "family": family,
                "agent": agent,
                "rate": rate,
                "outcome": outcome,
                "window": window,
                "from": time(start) if start is not None else None,
                "to": time(end) if end is not None else None,
                "counts": "tool_calls" if rate == Rate.TOOL_SUCCESS else "sessions",
                "total": page.total,
                "sessions": page.sessions,
                "cursor": _text(following) if following is not None else None,
            }
        )

    def _bounds(
        self, window: str | None, since: int | None, as_of: int, counted: bool
    ) -> tuple[int | None, int | None]:
        """Both bounds of a window; a rate since then ends where its windows end; else there are none but `since`."""
        if window is None and not counted:
            return since, None
        start, end = window_bounds(as_of, WINDOWS[window or DEFAULT_WINDOW] * SECOND, self._rules)
        if window is None:
            start = 0
        return max(start, since or 0), end

    async def _as_of(self, family: str | None, rate: str | None, window: str | None) -> int:
        """The watermark of the reading that shows this number; where none does, that of all."""
        cube = "system" if family is None else "family"
        dimensions = () if family is None else (("family", family),)
        readings = list(await self._rates.all_rates()) if rate is not None or window is not None else []
        same = [one for one in readings if (one.cube, one.dimensions) == (cube, dimensions)]
        shown = [one.as_of for one in same if rate is None or one.rate == rate]
        of_cube = [one.as_of for one in readings if one.cube == cube]
        return min(shown or of_cube, default=self._rates.watermark())


def _text(cursor: Cursor) -> str:
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _cursor(request: web.Request) -> Cursor | None:
    """
    Raises:
        Refusal: it is none of ours.
    """
    text: Any = request.query.get("cursor")
    if not text:
        return None
    try:
        return _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise Refusal(400, "cursor is none that this API gave; begin without one", parameter="cursor") from error
