"""What was first published stays readable beside what is true now."""

from __future__ import annotations

from pipeline.core.timeline import DAY, HOUR
from pipeline.errors import StoreUnavailable
from pipeline.sinks.restatements import Restatement
from tests.unit.serve.conftest import FakeStore, FakeWorker, Server
from tests.unit.serve.test_api import NOW


def test_a_restated_bucket_is_told_with_what_was_first_published(
    server: Server, worker: FakeWorker, fake_store: FakeStore
) -> None:
    worker.at = NOW
    fake_store.restated = [Restatement({"family": "returns"}, "completion", NOW - DAY, 3, 4, 2, 4, NOW - HOUR)]

    status, body, _ = server.get("/api/restatements?cube=family&rate=completion&since=7d&limit=5")

    assert status == 200
    assert fake_store.asked_restated == [("family", "completion", NOW - 7 * DAY, 5)]
    assert body == {
        "as_of": "2025-11-24T16:00:00.000Z",
        "cube": "family",
        "total": 1,
        "restatements": [
            {
                "dimensions": {"family": "returns"},
                "rate": "completion",
                "bucket": "2025-11-23T16:00:00.000Z",
                "first": {"numerator": 3, "denominator": 4},
                "now": {"numerator": 2, "denominator": 4},
                "as_of": "2025-11-24T15:00:00.000Z",
            }
        ],
    }


def test_what_cannot_be_meant_is_refused_and_a_store_that_is_away_is_said_so(
    server: Server, fake_store: FakeStore
) -> None:
    assert server.get("/api/restatements?cube=nothing")[0] == 400
    assert server.get("/api/restatements?limit=0")[0] == 400
    fake_store.fails = StoreUnavailable("away")
    assert server.get("/api/restatements")[0] == 503
