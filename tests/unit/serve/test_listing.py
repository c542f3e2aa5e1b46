from __future__ import annotations

from urllib.parse import quote

import pytest

from pipeline.core.timeline import DAY, HOUR
from pipeline.core.windows import window_bounds
from pipeline.errors import StoreUnavailable
from pipeline.sinks.listing import Page, Place, Wanted
from tests.unit.serve.conftest import RULES, FakeStore, FakeWorker, Server
from tests.unit.serve.test_api import NOW, reading

ONE = Page(1, [{"conversation": "c", "ordinal": 1}], None)


def test_a_list_is_cut_by_the_window_of_the_reading_beside_it(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    worker.at = NOW - 3 * HOUR
    worker.of_rates = [reading("system", as_of=NOW), reading(as_of=NOW - HOUR), reading(rate="reopen", as_of=NOW)]
    fake_store.pages = [ONE]

    status, body, _ = server.get("/api/sessions?family=returns&rate=completion&outcome=good&window=24h")

    start, end = window_bounds(NOW - HOUR, DAY, RULES)
    assert status == 200
    assert fake_store.asked == [(Wanted("returns", None, "completion", "good", start, end), None, 50)]
    assert (body["total"], body["counts"], body["cursor"]) == (1, "sessions", None)
    assert (body["as_of"], body["from"]) == ("2025-11-24T15:00:00.000Z", "2025-11-23T13:00:00.000Z")


def test_a_segment_without_a_reading_is_cut_as_the_store_is_counted(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    worker.of_rates = [reading(family="live"), reading(family="behind", as_of=NOW - HOUR)]
    fake_store.pages = [ONE]

    server.get("/api/sessions?family=returns&rate=completion")

    start, end = window_bounds(NOW - HOUR, DAY, RULES)
    assert (fake_store.asked[0][0].start, fake_store.asked[0][0].end) == (start, end)


def test_without_parameters_it_is_every_session(server: Server, fake_store: FakeStore) -> None:
    fake_store.pages = [ONE]

    body = server.get("/api/sessions")[1]

    assert fake_store.asked == [(Wanted(), None, 50)]
    assert (body["from"], body["to"], body["window"]) == (None, None, None)


def test_the_next_page_has_the_window_of_the_first(server: Server, worker: FakeWorker, fake_store: FakeStore) -> None:
    place = Place(5, "default", "c/1", 2)
    worker.of_rates = [reading("system")]
    fake_store.pages = [Page(2, [{}], place), ONE]
    first = server.get("/api/sessions?rate=completion&limit=1")[1]
    worker.of_rates = [reading("system", as_of=NOW + HOUR)]

    server.get(f"/api/sessions?rate=completion&limit=1&cursor={quote(first['cursor'])}")

    assert fake_store.asked[1] == (fake_store.asked[0][0], place, 1)


def test_a_tenant_sees_its_own(server: Server, fake_store: FakeStore) -> None:
    fake_store.pages = [ONE]

    server.get("/api/sessions?tenant=shop")

    assert fake_store.asked == [(Wanted(tenant="shop"), None, 50)]


@pytest.mark.parametrize("since", ["2025-11-24T10:00:00Z", "6h"], ids=["a time", "how long ago"])
def test_since_cuts_what_is_older(since: str, server: Server, worker: FakeWorker, fake_store: FakeStore) -> None:
    worker.of_rates = [reading("system")]
    fake_store.pages = [ONE]

    server.get(f"/api/sessions?rate=completion&since={since}")

    assert (fake_store.asked[0][0].start, fake_store.asked[0][0].end) == (
        NOW - 6 * HOUR,
        window_bounds(NOW, DAY, RULES)[1],
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("windows=24h", "unknown parameter 'windows'"),
        ("rate=joy", "unknown rate 'joy'"),
        ("outcome=good", "outcome needs a rate"),
        ("rate=reopen&outcome=late", "unknown outcome 'late'"),
        ("limit=0", "no number from 1 to 500"),
        ("limit=5%C2%B2", "no number from 1 to 500"),
        ("since=yesterday", "neither a time with its zone nor a duration"),
        ("since=2026-01-01T00:00:00", "neither a time with its zone nor a duration"),
        ("cursor=abc", "cursor is none that this API gave"),
        ("cursor=%C3%A9", "cursor is none that this API gave"),
    ],
)
def test_what_cannot_be_meant_is_refused(query: str, said: str, server: Server, fake_store: FakeStore) -> None:
    status, body, _ = server.get(f"/api/sessions?{query}")

    assert status == 400
    assert said in body["error"]
    assert fake_store.asked == []


def test_without_the_store_it_says_so(server: Server, fake_store: FakeStore) -> None:
    fake_store.fails = StoreUnavailable("away")

    assert server.get("/api/sessions")[0] == 503
