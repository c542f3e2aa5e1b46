from __future__ import annotations

import logging
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipeline.core.timeline import HOUR, MINUTE
from pipeline.core.windows import window_bounds
from pipeline.errors import StoreUnavailable
from pipeline.sinks.conversation import Conversation, StoredSession
from schemas.segment import WINDOWS, Rate, RateReading
from tests.unit.serve.conftest import RULES, FakeStore, FakeWorker, Server

NOW = 1_764_000_000_000_000_000 // (5 * MINUTE) * 5 * MINUTE


def reading(
    cube: str = "family", family: str = "returns", k: int = 3, n: int = 4, as_of: int = NOW, **given: Any
) -> RateReading:
    values: dict[str, Any] = {
        "cube": cube,
        "dimensions": (("family", family),) if cube == "family" else (),
        "rate": "completion",
        "window": "24h",
        "numerator": k,
        "denominator": n,
        "ratio": 0.75,
        "lower": 0.3,
        "upper": 0.95,
        "effective_n": 4.0,
        "maturity": 1.0,
        "target": 0.9,
        "as_of": as_of,
    }
    return RateReading(**(values | given))


def test_rates_are_those_of_the_gauges(server: Server, worker: FakeWorker) -> None:
    worker.at = NOW
    worker.of_rates = [
        reading(),
        reading(family="order", k=0, n=2, ratio=None, maturity=None, target=None),
        reading(window="7d"),
        reading(rate="reopen"),
        reading("system"),
    ]

    status, body, _ = server.get("/api/rates?cube=family&window=24h&rate=completion&source=state")

    assert status == 200
    assert body == {
        "as_of": "2025-11-24T16:00:00.000Z",
        "cube": "family",
        "window": "24h",
        "source": "state",
        "rates": [
            {
                "dimensions": {"family": "order"},
                "rate": "completion",
                "numerator": 0,
                "denominator": 2,
                "ratio": None,
                "lower": None,
                "upper": None,
                "effective_n": None,
                "maturity": None,
                "target": None,
            },
            {
                "dimensions": {"family": "returns"},
                "rate": "completion",
                "numerator": 3,
                "denominator": 4,
                "ratio": 0.75,
                "lower": 0.3,
                "upper": 0.95,
                "effective_n": 4.0,
                "maturity": 1.0,
                "target": 0.9,
            },
        ],
    }


def test_without_parameters_it_is_the_whole_system_over_a_day(server: Server, worker: FakeWorker) -> None:
    worker.of_rates = [reading("system"), reading("system", rate="reopen"), reading()]

    body = server.get("/api/rates")[1]

    assert (body["cube"], body["window"], body["source"]) == ("system", "24h", "state")
    assert [r["rate"] for r in body["rates"]] == ["completion", "reopen"]


def counts(body: Any) -> dict[str, tuple[int, int]]:
    return {r["dimensions"]["family"]: (r["numerator"], r["denominator"]) for r in body["rates"]}


def test_the_store_is_counted_over_the_window_of_each_gauge(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    behind = NOW - HOUR
    worker.of_rates = [reading(family="live"), reading(family="behind", as_of=behind)]
    start, end = window_bounds(NOW, 24 * HOUR, RULES)
    for family in ("live", "behind"):
        fake_store.buckets += [
            ("family", {"family": family}, "completion", bucket, 10**place, 2 * 10**place)
            for place, bucket in enumerate([start - 1, start, end - HOUR - 1, end - HOUR, end - 1, end])
        ]

    body = server.get("/api/rates?cube=family&source=store")[1]

    assert counts(body) == {"live": (11110, 22220), "behind": (111, 222)}
    assert {r["ratio"] for r in body["rates"]} == {0.75}


def test_what_only_one_of_state_and_store_has_is_told_too(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    worker.at, worker.of_rates = NOW, [reading(family="state only")]
    fake_store.buckets = [
        ("family", {"family": "store only"}, "completion", NOW - 5 * HOUR, 1, 2),
        ("family", {"family": "emptied"}, "completion", NOW - 5 * HOUR, 0, 0),
        ("family", {"family": "other rate"}, "reopen", NOW - 5 * HOUR, 1, 2),
    ]

    body = server.get("/api/rates?cube=family&rate=completion&source=store")[1]

    assert counts(body) == {"state only": (0, 0), "store only": (1, 2)}
    assert [r["ratio"] for r in body["rates"]] == [0.75, None]


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ("cube=agent", ["system", "family"]),
        ("window=2h", list(WINDOWS)),
        ("rate=success", [r.value for r in Rate]),
        ("source=files", ["state", "store"]),
        ("cubes=family", ["cube", "window", "rate", "source"]),
    ],
)
def test_an_unknown_value_is_refused_with_the_allowed_ones(server: Server, query: str, allowed: list[str]) -> None:
    status, body, _ = server.get(f"/api/rates?{query}")

    assert (status, body["allowed"]) == (400, allowed)
    assert body["error"]


def test_a_conversation_is_told_by_tenant_and_id(server: Server, worker: FakeWorker, fake_store: FakeStore) -> None:
    worker.at = NOW
    odd = "a/b c%d?\N{SNOWMAN}"
    verdict = {"completion": "complete", "contract_version": "return@1"}
    session = StoredSession(1, verdict, [{"id": "paid"}], [], [{"revision": 1, "reason": "end"}], [])
    fake_store.stories["shop", odd] = Conversation("shop", odd, [session], [], [])

    status, body, _ = server.get("/api/sessions/shop/a%2Fb%20c%25d%3F%E2%98%83")

    assert status == 200
    assert body["conversation"] == odd
    assert body["as_of"] == "2025-11-24T16:00:00.000Z"
    assert body["sessions"][0]["revisions"] == [{"revision": 1, "reason": "end"}]
    assert body["explanations"] == [f"shop/{odd}#1"]
    assert body["contracts"]["return@1"]["criteria"]["refund_settled"] == {
        "check": "evidence.refund_status == 'settled'",
        "fails_when": "evidence.refund_status == 'rejected'",
        "applies": None,
        "reads": {"evidence": ["refund_status"]},
    }
    missing, told, _ = server.get("/api/sessions/shop/none")
    assert (missing, "none" in told["error"]) == (404, True)


def test_a_store_that_is_away_takes_nothing_else_along(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    worker.of_rates = [reading()]
    fake_store.fails = StoreUnavailable("away")

    assert server.get("/api/rates?cube=family&source=store")[0] == 503
    assert server.get("/api/sessions/t/c")[0] == 503
    assert server.get("/api/rates?cube=family")[0] == 200
    assert server.get("/metrics")[0] == 200


def test_an_error_of_our_own_shows_no_trace(
    server: Server, fake_store: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    fake_store.fails = RuntimeError("secret detail")

    with caplog.at_level(logging.ERROR):
        status, body, content_type = server.get("/api/sessions/t/c")

    assert (status, list(body), "json" in content_type) == (500, ["error"], True)
    assert "secret" not in body["error"]
    assert "secret detail" in caplog.text


def test_what_is_not_there_is_told_as_json(server: Server) -> None:
    status, told, _ = server.get("/api/nothing")

    assert (status, told["error"]) == (404, "there is no /api/nothing here")
    assert {"/api/rates", "/api/sessions/{tenant}/{conversation}", "/metrics"} <= set(told["allowed"])
    assert server.get("/api/forget")[0] == 404, "nothing can be erased here"


def test_metrics_are_openmetrics_for_who_takes_them(server: Server, worker: FakeWorker) -> None:
    worker.of_rates = [reading()]

    status, body, content_type = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")

    assert (status, content_type.split(";")[0]) == (200, "application/openmetrics-text")
    families = {family.name: family for family in text_string_to_metric_families(body)}
    assert families["trueup_rate_ratio"].samples[0].value == 0.75
    assert server.get("/metrics")[2].startswith("text/plain")


def test_health_says_what_is_owned_and_how_far_it_is(server: Server, worker: FakeWorker) -> None:
    worker.at = NOW
    server.not_ready = "restoring"

    body = server.get("/api/health")[1]

    time = "2025-11-24T16:00:00.000Z"
    measure = {"partitions": 4, "owned": [0, 1], "watermarks": {"0": time, "1": None}}
    assert body == {
        "as_of": time,
        "ready": False,
        "reason": "restoring",
        "stages": {"measure": measure},
        "gauges": {"trueup_open_sessions": 2.0},
        "contracts": {"in_force": [], "refused": []},
    }
    assert server.get("/healthz")[:2] == (200, {"status": "ok"})
    assert server.get("/readyz")[:2] == (503, {"ready": False, "reason": "restoring"})
