"""Serves the preview page on loopback and answers its queries: PromQL from a Prometheus, SQL from a ClickHouse.

Macros are expanded as grafana-clickhouse-datasource documents them; only those that the dashboards use are known.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import clickhouse_connect
from aiohttp import web
from clickhouse_connect.driver.client import Client

HERE = Path(__file__).resolve().parent
FEWEST_STEP_SECONDS = 1.0
SCRAPES_IN_A_RATE = 4  # as Grafana's own $__rate_interval


def create_app(prometheus: str, dsn: str, scrape_seconds: float) -> web.Application:
    bridge = Bridge(prometheus, clickhouse_connect.get_client(dsn=dsn), scrape_seconds)
    app = web.Application()
    app.router.add_post("/promql", bridge.promql)
    app.router.add_post("/labels", bridge.labels)
    app.router.add_post("/sql", bridge.sql)
    app.router.add_get("/", page)
    app.router.add_static("/dist", HERE / "dist")
    app.router.add_static("/dashboards", HERE.parent / "dashboards")
    return app


async def page(_: web.Request) -> web.FileResponse:
    return web.FileResponse(HERE / "index.html")


class Bridge:
    def __init__(self, prometheus: str, clickhouse: Client, scrape_seconds: float) -> None:
        self._prometheus = prometheus
        self._clickhouse = clickhouse
        self._scrape_seconds = scrape_seconds

    async def promql(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        since, until = asked["from"] / 1000, asked["to"] / 1000
        step = max(asked["intervalMs"] / 1000, FEWEST_STEP_SECONDS)
        rate_seconds = max(step + self._scrape_seconds, SCRAPES_IN_A_RATE * self._scrape_seconds)
        query = asked["query"].replace("$__rate_interval", f"{math.ceil(rate_seconds)}s")
        query = query.replace("$__range", f"{math.ceil(until - since)}s")
        if asked["instant"]:
            answer = await self._ask("query", {"query": query, "time": str(until)})
        else:
            span = {"start": str(math.floor(since / step) * step), "end": str(until), "step": str(step)}
            answer = await self._ask("query_range", {"query": query, **span})
        if answer["status"] != "success":
            return web.json_response({"error": answer["error"]}, status=400)
        found = [{"labels": s["metric"], "values": s.get("values") or [s["value"]]} for s in answer["data"]["result"]]
        for series in found:
            series["labels"].pop("__name__", None)
        return web.json_response({"series": found})

    async def labels(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        answer = await self._ask(f"label/{asked['label']}/values", {"match[]": asked["query"]})
        return web.json_response({"values": answer["data"]})

    async def sql(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        try:
            query = expanded(asked["query"], asked["from"] // 1000, asked["to"] // 1000, asked["intervalMs"] // 1000)
            found = self._clickhouse.query(query)
        except Exception as error:  # whatever the database says is the page's to show
            return web.json_response({"error": str(error)[:500]}, status=400)
        types = zip(found.column_names, found.column_types, strict=True)
        columns = [{"name": name, "type": kind.name} for name, kind in types]
        return web.json_response({"columns": columns, "rows": [[_plain(v) for v in row] for row in found.result_rows]})

    async def _ask(self, path: str, parameters: dict[str, str]) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self._prometheus}/api/v1/{path}", params=parameters) as answer,
        ):
            content: dict[str, Any] = await answer.json()
            return content


def expanded(sql: str, since: int, until: int, interval: int) -> str:
    """The macros of the ClickHouse data source that the dashboards use; one that is not known stays, and fails."""
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= toDateTime({since}) AND \1 <= toDateTime({until})", sql)
    every = f"INTERVAL {max(interval, 1)} second"
    return re.sub(r"\$__timeInterval\((\w+)\)", rf"toStartOfInterval(toDateTime(\1), {every})", sql)


def _plain(value: object) -> object:
    return value.timestamp() * 1000 if isinstance(value, datetime) else value
