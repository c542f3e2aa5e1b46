"""A worker's HTTP server on a real port, over what the test lets the worker say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.timeline import TimeRules
from pipeline.serve.api import Reader
from pipeline.serve.app import application, listen
from pipeline.sinks.conversation import Conversation
from pipeline.sinks.listing import Page, Place, Wanted
from pipeline.sinks.prometheus import Exporter
from pipeline.sinks.restatements import Restatement
from schemas.segment import CountReading, MeanReading, RateReading

Result = TypeVar("Result")
RULES = TimeRules()
CONTRACT = Path(__file__).parents[3] / "contracts" / "return.yaml"
BOOK = load([(CONTRACT.name, CONTRACT.read_text("utf-8"))], RULES)


def told(story: Mapping[str, Any]) -> list[str]:
    """A conversation in words: its sessions' addresses."""
    return [f"{story['tenant']}/{story['conversation']}#{session['ordinal']}" for session in story["sessions"]]


@dataclass
class FakeWorker:
    """What a worker says; `Readings` and `Rates` at once."""

    of_rates: list[RateReading] = field(default_factory=list)
    of_means: list[MeanReading] = field(default_factory=list)
    of_counts: list[CountReading] = field(default_factory=list)
    at: int = 0

    def rates(self) -> Iterable[RateReading]:
        return self.of_rates

    def contracts(self) -> dict[str, Any]:
        return {"in_force": [], "refused": []}

    def summaries(self) -> tuple[list[MeanReading], list[CountReading]]:
        return self.of_means, self.of_counts

    async def all_summaries(self) -> tuple[list[MeanReading], list[CountReading]]:
        return self.of_means, self.of_counts

    async def all_rates(self) -> Iterable[RateReading]:
        return self.of_rates

    def cubes(self) -> Sequence[str]:
        return ("system", "family")

    def watermark(self) -> int:
        return self.at

    def records(self) -> Iterable[tuple[str, str, str, int]]:
        return [("ingest", "used", "", 5)]

    def watermarks(self) -> Iterable[tuple[str, int, int]]:
        return [("measure", 0, self.at), ("measure", 1, 0)]

    def owned(self) -> Iterable[tuple[str, int]]:
        return [("measure", 0), ("measure", 1)]

    def partitions(self) -> Iterable[tuple[str, int]]:
        return [("measure", 4)]

    def caught_up(self) -> Iterable[tuple[str, str, int]]:
        return []

    def commit_ages(self) -> Iterable[tuple[str, int, float]]:
        return []

    def session_like(self) -> Iterable[tuple[str, int]]:
        return []

    def gauges(self) -> Mapping[str, float]:
        return {"trueup_open_sessions": 2.0}


@dataclass
class FakeStore:
    """A store that answers with what `buckets` holds, or raises `fails`.

    Attributes:
        pages: of every list, in order; what was asked for is in `asked`.
    """

    buckets: list[tuple[str, dict[str, str], str, int, int, int]] = field(default_factory=list)
    stories: dict[tuple[str, str], Conversation] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    asked: list[tuple[Wanted, Place | None, int]] = field(default_factory=list)
    restated: list[Restatement] = field(default_factory=list)
    asked_restated: list[tuple[str, str | None, int, int]] = field(default_factory=list)
    fails: Exception | None = None

    async def restatements(self, cube: str, rate: str | None, since: int, limit: int) -> tuple[int, list[Restatement]]:
        if self.fails is not None:
            raise self.fails
        self.asked_restated.append((cube, rate, since, limit))
        return len(self.restated), self.restated

    async def rates(self, cube: str, start: int, end: int) -> list[tuple[dict[str, str], str, int, int]]:
        if self.fails is not None:
            raise self.fails
        totals: dict[tuple[tuple[tuple[str, str], ...], str], tuple[int, int]] = {}
        for of, dimensions, rate, bucket, numerator, denominator in self.buckets:
            if of == cube and start <= bucket < end:
                key = tuple(dimensions.items()), rate
                before = totals.get(key, (0, 0))
                totals[key] = before[0] + numerator, before[1] + denominator
        return [(dict(dimensions), rate, k, n) for (dimensions, rate), (k, n) in totals.items()]

    async def session(self, tenant: str, conversation: str) -> Conversation | None:
        if self.fails is not None:
            raise self.fails
        return self.stories.get((tenant, conversation))

    async def sessions(self, wanted: Wanted, after: Place | None, limit: int) -> Page:
        if self.fails is not None:
            raise self.fails
        self.asked.append((wanted, after, limit))
        return self.pages[len(self.asked) - 1]


@dataclass
class Server:
    """Runs requests against a server that lives as long as they do."""

    worker: FakeWorker
    store: Reader
    not_ready: str | None = None

    def run(self, test: Callable[[aiohttp.ClientSession, str], Awaitable[Result]]) -> Result:
        async def whole() -> Result:
            exporter = Exporter(self.worker, "1")
            app = application(exporter, self.worker, self.worker, self.store, RULES, BOOK, told, lambda: self.not_ready)
            runner, port = await listen(app, "127.0.0.1", 0)
            try:
                async with aiohttp.ClientSession() as session:
                    return await test(session, f"http://127.0.0.1:{port}")
            finally:
                await runner.cleanup()

        return asyncio.run(whole())

    def get(self, path: str, **headers: str) -> tuple[int, Any, str]:
        """Status, the body (as JSON where it is JSON) and the content type."""

        async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any, str]:
            async with session.get(url + path, headers=headers) as answer:
                body = await (answer.json() if answer.content_type == "application/json" else answer.text())
                return answer.status, body, answer.headers["Content-Type"]

        return self.run(ask)


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def fake_store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def server(worker: FakeWorker, fake_store: FakeStore) -> Server:
    return Server(worker, fake_store)
