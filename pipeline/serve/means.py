"""`/api/means`: the means of the gauges as JSON, and what failed: sessions by state, stage and criterion.

The rule this file keeps: a mean goes with how many sessions it is of, and one of none is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from aiohttp import web

from pipeline.serve.asking import chosen, json_body, known_only, time
from schemas.segment import WINDOWS, CountReading, MeanReading

GROUPS = {"states": "state", "failures": "stage", "criterion_failures": "criterion"}


class Summaries(Protocol):
    """Where the present means come from."""

    def cubes(self) -> Sequence[str]: ...

    def watermark(self) -> int: ...

    async def all_summaries(self) -> tuple[Iterable[MeanReading], Iterable[CountReading]]:
        """Of all segments, whichever worker owns them."""


class Means:
    """The handler."""

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries

    async def means(self, request: web.Request) -> web.Response:
        """`cube` (default `system`), `window` (default `24h`): one entry a segment."""
        known_only(request, ["cube", "window"])
        cube = chosen(request, "cube", self._summaries.cubes(), "system")
        window = chosen(request, "window", list(WINDOWS), "24h")
        means, counts = await self._summaries.all_summaries()
        segments: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
        as_of: list[int] = []

        def of(one: MeanReading | CountReading) -> dict[str, Any]:
            as_of.append(one.as_of)
            empty: dict[str, Any] = {"dimensions": dict(one.dimensions), "means": {}, **{name: {} for name in GROUPS}}
            return segments.setdefault(one.dimensions, empty)

        for mean in means:
            if (mean.cube, mean.window) == (cube, window):
                of(mean)["means"][mean.measure] = {"mean": mean.mean, "count": mean.count, "target": mean.target}
        for count in counts:
            if (count.cube, count.window) == (cube, window):
                group = next(name for name, what in GROUPS.items() if what == count.what)
                of(count)[group][count.name] = count.count
        told = [segments[dimensions] for dimensions in sorted(segments)]
        now = min(as_of, default=self._summaries.watermark())
        return json_body({"as_of": time(now), "cube": cube, "window": window, "segments": told})
