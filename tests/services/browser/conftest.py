"""One browser for all tests, and a worker's real server over stories and rates that the tests choose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.timeline import TimeRules
from pipeline.review.explain import explain
from pipeline.serve.app import application, listen
from pipeline.sinks.conversation import Conversation
from pipeline.sinks.listing import Page, Place
from pipeline.sinks.prometheus import Exporter
from pipeline.tokens import Tokens
from schemas.segment import RateReading
from tests.services.browser.chromium import Chromium, NoBrowser, Tab
from tests.unit.serve.conftest import FakeStore, FakeWorker

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "explain"
RULES = TimeRules()
NOW = 1_795_998_000_000_000_000
FAMILY = "order_placement"
KINDS = ("proven", "refuted", "came-back", "waiting", "refused")

Steps = Callable[[Tab, str], Awaitable[None]]


def readings(family: str = FAMILY) -> list[RateReading]:
    """One rate that surely misses its target, one that may, one at it, and one without."""
    rates = (
        ("attribution", 297, 300, 0.99, 0.97, 0.999, 1.0, None),
        ("completion", 219, 287, 0.763, 0.71, 0.81, 0.62, 0.9),
        ("escalation", 29, 287, 0.101, 0.07, 0.14, 1.0, 0.1),
        ("reopen", 2, 227, 0.009, 0.001, 0.03, 1.0, 0.08),
        ("claimed_completion", 227, 287, 0.791, 0.74, 0.83, 1.0, None),
        ("verified_completion", 157, 228, 0.689, 0.63, 0.74, 1.0, None),
    )
    return [
        RateReading(cube, dimensions, rate, "24h", k, n, ratio, low, high, float(n), maturity, target, NOW)
        for cube, dimensions in (("system", ()), ("family", (("family", family),)))
        for rate, k, n, ratio, low, high, maturity, target in rates
    ]


def story(kind: str, **changes: Any) -> Conversation:
    told = json.loads((GOLDEN / f"{kind}.json").read_text("utf-8")) | changes
    return msgspec.convert(told, Conversation)


def row(conversation: Conversation, **changes: Any) -> dict[str, Any]:
    """Its first session as a list tells it."""
    of = {"tenant": conversation.tenant, "conversation": conversation.conversation}
    return {**of, **conversation.sessions[0].verdict, **changes}


class World:
    """What the worker behind the page says; a test changes it before it looks."""

    def __init__(self, browser: Chromium) -> None:
        self._browser = browser
        self.worker, self.store = FakeWorker(of_rates=readings(), at=NOW), FakeStore()
        self.tokens: Tokens | None = None
        self.stories = [story(kind) for kind in KINDS]

    def look(self, steps: Steps, width: int = 1200, scheme: str = "light") -> Tab:
        """Takes the steps in a tab of this size; the tab then tells what happened in it."""
        self.store.stories = {(one.tenant, one.conversation): one for one in self.stories}
        rows = [row(one) for one in self.stories]
        place = Place(1, "default", "c", 1)
        self.store.pages = self.store.pages or [
            Page(len(rows), rows, None),
            Page(219, rows, place),
            Page(219, rows, None),
        ]
        files = [(path.name, path.read_text("utf-8")) for path in sorted((ROOT / "contracts").glob("*.yaml"))]
        book = load(files, RULES)

        async def whole() -> Tab:
            worker, exporter = self.worker, Exporter(self.worker, "1")
            app = application(exporter, worker, worker, self.store, RULES, book, told, lambda: None, self.tokens)
            runner, port = await listen(app, "127.0.0.1", 0)
            try:
                async with self._browser.tab(width, 800, scheme) as tab:
                    await steps(tab, f"http://127.0.0.1:{port}/")
                    return tab
            finally:
                await runner.cleanup()

        return asyncio.run(whole())


def told(body: Mapping[str, Any]) -> list[Any]:
    return list(explain(body))


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    try:
        opened = Chromium()
    except NoBrowser as missing:
        pytest.fail(str(missing), pytrace=False)
    yield opened
    opened.close()


@pytest.fixture
def world(browser: Chromium) -> World:
    return World(browser)
