"""The page at `/` in a real browser: what it says, for everybody who may have to read it."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from pipeline.sinks.listing import Page
from pipeline.tokens import Scope, Token, Tokens
from schemas.segment import RateReading
from tests.services.browser.chromium import Tab
from tests.services.browser.conftest import NOW, World, readings, row, story

CARDS = "[...document.querySelectorAll('.card')].map((one) => [one.querySelector('h3').textContent, one.className])"
TEXT = "document.getElementById('main').innerText"
HEADING = "document.querySelector('h1').textContent"
OVERVIEW, FAMILY = "#/", "#/family/order_placement?window=24h&rate=completion&outcome=good"
SESSION, WAITING = "#/session/default/{refuted}/2", "#/session/default/chat-17"
VIEWS = [OVERVIEW, FAMILY, SESSION, WAITING]
CONTRASTS = (Path(__file__).parent / "contrast.js").read_text("utf-8")


def address(view: str) -> str:
    return view.replace("{refuted}", story("refuted").conversation)


def test_the_overview_has_every_rate_with_all_that_belongs_to_it(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)

        text = (await tab.run(TEXT)).replace("\N{NO-BREAK SPACE}", " ")
        cards = await tab.run(CARDS)
        assert [name for name, _ in cards] == [
            "Completion",
            "Escalated",
            "Reopened",
            "Verified completion",
            "Claimed completion",
            "With a conversation id",
        ]
        assert [look.split()[1] for _, look in cards] == ["bad", "warn", "good", "none", "none", "none"]
        for said in (
            "76.3 %",
            "✗ below target (90.0 %)",
            "95 % interval 71.0 % to 81.0 %; 62.0 % of the evidence is in: an estimate.",
            "Of 287 sessions: 219 complete, 68 not complete.",
            "Missing the target: completion 76.3 % (target 90.0 %).",
            "Perhaps also: escalated 10.1 % (target 10.0 %).",
            "agents claim 79.1 %, independent systems verify 68.9 % of the 228 sessions that they can speak of: "
            "10.2 points more is claimed than is verified.",
            "Numbers as of 2026-11-30 00:20:00 UTC",
        ):
            assert said in text

    tab = world.look(steps)

    assert tab.complaints == []


def test_it_asks_nobody_else(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        assert tab.requested
        assert [one for one in tab.requested if not one.startswith((url, "data:"))] == []

    world.look(steps)


def test_behind_a_number_are_as_many_sessions(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        await tab.run("document.querySelector('.card a').click()")
        await tab.shown()
        assert "219 sessions complete" in await tab.run(TEXT)
        before = await tab.run("document.querySelectorAll('tbody tr').length")
        await tab.run("document.querySelector('main button').click()")
        after = await tab.until("document.querySelectorAll('tbody tr').length", lambda rows: rows > before)

        assert after == 2 * before
        assert await tab.run("document.activeElement.closest('tr').rowIndex") == before + 1
        assert await tab.run("document.querySelector('main button')") is None

    world.look(steps)

    asked = [wanted for wanted, _, _ in world.store.asked]
    assert [(one.rate, one.outcome) for one in asked] == [(None, None), ("completion", "good"), ("completion", "good")]


def test_a_session_tells_its_claim_its_evidence_and_every_revision(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url + address(SESSION))

        text = await tab.run(TEXT)
        for said in (
            "The agent said that it was done, but it is not: payment_confirmed failed.",
            "It said 'completed' at",
            "payment_status is declined",
            "evidence.payment_status == 'settled'",
            "completion pending -> incomplete",
            "tool submit_order",
        ):
            assert said in text
        revisions = "[...document.querySelectorAll('table')].at(-1).querySelectorAll('tbody tr').length"
        assert await tab.run(revisions) == len(story("refuted").sessions[1].revisions)
        assert await tab.run("document.querySelector('tbody th').textContent") == "payment_confirmed"

    tab = world.look(steps)

    assert tab.complaints == []


def test_what_the_api_says_is_text_and_never_markup(world: World) -> None:
    evil = "<img src=x onerror=\"document.title='taken'\">"
    bad = story("waiting", conversation=evil)
    world.stories = [bad]
    world.store.pages = [Page(1, [row(bad, family=evil, reason=evil, agents=[evil])], None)] * 2
    world.worker.of_rates = readings(evil)

    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        assert await tab.run("document.querySelectorAll('img').length") == 0
        assert (await tab.run(TEXT)).count(evil) >= 3
        await tab.run("[...document.querySelectorAll('a')].find((one) => one.textContent.endsWith('#1')).click()")
        await tab.shown()
        assert await tab.run(HEADING) == f"{evil}#1"
        assert await tab.run("document.querySelectorAll('img').length") == 0
        assert "taken" not in await tab.run("document.title.replace(/<.*>/, '')")

    world.look(steps)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_narrow_and_wide_screens(view: str, width: int, world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url + address(view))

        assert await tab.run("document.documentElement.scrollWidth") == width
        cut = (
            "[...document.querySelectorAll('main *')].filter((one) => !one.closest('.unseen, thead') && "
            "one.getBoundingClientRect().right > innerWidth + 1).length"
        )
        assert await tab.run(cut) == 0

    world.look(steps, width)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(view: str, scheme: str, world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url + address(view))

        measured = json.loads(await tab.run(CONTRASTS))
        assert len(measured) > 30
        assert [one for one in measured if one["ratio"] < one["least"]] == []
        dark = await tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 27)"
        assert dark == (scheme == "dark")

    world.look(steps, scheme=scheme)


@pytest.mark.parametrize("view", VIEWS)
def test_it_is_built_for_those_who_do_not_see_it(view: str, world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url + address(view))

        assert await tab.run("document.documentElement.lang") == "en"
        for one in ("header", "main", "footer", "h1"):
            assert await tab.run(f"document.querySelectorAll('{one}').length") == 1
        headings = await tab.run("[...document.querySelectorAll('h1, h2, h3')].map((one) => +one.tagName[1])")
        assert all(later - one <= 1 for one, later in pairwise(headings))
        unnamed = (
            "[...document.querySelectorAll('table')].filter((one) => !one.caption?.textContent).length"
            " + [...document.querySelectorAll('input')].filter((one) => !one.labels.length).length"
            " + [...document.querySelectorAll('a, button')].filter((one) => !one.textContent.trim()).length"
            " + [...document.querySelectorAll('nav')].filter((one) => !one.ariaLabel).length"
            " + [...document.querySelectorAll('th')].filter((one) => !one.scope).length"
        )
        assert await tab.run(unnamed) == 0
        assert (await tab.run("document.title")).startswith(await tab.run(HEADING))

    world.look(steps)


def test_the_keyboard_is_enough(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        assert await tab.run("document.activeElement.tagName") == "H1"
        await tab.run("document.activeElement.blur()")
        await tab.run("document.body.focus()")
        await tab.run("document.querySelector('.skip').focus()")
        assert await tab.run("document.activeElement.getBoundingClientRect().left") >= 0
        await tab.press("Enter", 13)
        assert await tab.run("document.activeElement.id") == "main"
        for _ in range(60):
            await tab.press("Tab", 9)
            if "complete" in await tab.run("document.activeElement.textContent"):
                break
        assert await tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await tab.press("Enter", 13)
        await tab.shown()
        assert await tab.run(HEADING) == "Sessions behind completion"
        assert await tab.run("document.activeElement.tagName") == "H1"

    world.look(steps)


def test_a_refresh_keeps_the_reader_where_he_was(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        await tab.run("[...document.querySelectorAll('.card a')].at(-1).focus()")
        where = await tab.run("[document.activeElement.getAttribute('href'), scrollY]")
        changed: RateReading = msgspec.structs.replace(world.worker.of_rates[1], numerator=220)
        world.worker.of_rates[1] = changed
        await tab.run("show(true)")

        assert "220 complete" in await tab.run(TEXT)
        assert await tab.run("[document.activeElement.getAttribute('href'), scrollY]") == where

    world.store.pages = [Page(0, [], None)] * 2
    world.look(steps)


def test_a_session_is_found_by_its_name(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        await tab.run("document.getElementById('session').value = 'chat-17#1'")
        await tab.run("document.querySelector('#find button').click()")
        await tab.until("document.getElementById('main').dataset.shown.includes('chat-17')")
        assert await tab.run(HEADING) == "chat-17#1"

    world.look(steps)


def test_a_worker_that_asks_for_a_token_is_given_one(world: World) -> None:
    secret = "a token of sixteen"
    holder = Token("reader", frozenset({Scope.READ}), None, None)
    world.tokens = Tokens([(sha256(secret.encode()).digest(), holder)])

    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        assert await tab.run(HEADING) == "A token is needed"
        await tab.run(f"document.getElementById('token').value = '{secret}'")
        await tab.run("document.querySelector('main form button').click()")
        await tab.until(f"{HEADING} === 'All agents'")
        assert not [one for one in tab.requested if secret in one]

    world.look(steps)


def test_an_unknown_session_and_silence_are_told_in_words(world: World) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.go(f"{url}#/session/default/nobody")
        assert "no session of conversation 'nobody'" in await tab.run(TEXT)
        world.worker.of_rates, world.worker.at = [], 0
        await tab.run("location.hash = '#/'")
        await tab.shown()
        assert "Nothing has been heard yet" in await tab.run(TEXT)

    world.store.pages = [Page(0, [], None)]
    world.look(steps)


def test_event_time_that_stands_still_is_said(world: World) -> None:
    day = 86_400 * 10**9
    world.worker.of_rates = [msgspec.structs.replace(one, as_of=NOW - 4000 * day) for one in readings()]

    async def steps(tab: Tab, url: str) -> None:
        await tab.go(url)
        assert "days behind the clock: either nothing is sent, or the pipeline lags" in await tab.run(TEXT)

    world.look(steps)
