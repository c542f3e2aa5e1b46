"""`/api/means`: the means and counts of the gauges, a segment at a time."""

from __future__ import annotations

from schemas.segment import CountReading, MeanReading
from tests.unit.serve.conftest import FakeWorker, Server
from tests.unit.serve.test_api import NOW

RETURNS = (("family", "returns"),)


def test_means_and_counts_are_told_by_segment(server: Server, worker: FakeWorker) -> None:
    worker.of_means = [
        MeanReading("family", RETURNS, "coherence", "24h", 8.25, 4, 9.0, NOW),
        MeanReading("family", RETURNS, "turns", "24h", 2.5, 6, None, NOW),
        MeanReading("family", RETURNS, "turns", "7d", 9.0, 9, None, NOW),
        MeanReading("system", (), "turns", "24h", 1.0, 1, None, NOW),
        MeanReading("family", (("family", "order"),), "turns", "24h", 1.0, 1, None, NOW),
    ]
    worker.of_counts = [
        CountReading("family", RETURNS, "state", "eligible", "24h", 6, NOW),
        CountReading("family", RETURNS, "stage", "execution", "24h", 2, NOW),
        CountReading("family", RETURNS, "criterion", "paid", "24h", 1, NOW),
        CountReading("family", RETURNS, "criterion", "paid", "7d", 8, NOW),
    ]

    status, body, _ = server.get("/api/means?cube=family&window=24h")

    assert status == 200
    assert (body["as_of"], body["cube"], body["window"]) == ("2025-11-24T16:00:00.000Z", "family", "24h")
    order, returns = body["segments"]
    assert order["dimensions"] == {"family": "order"}
    assert order["failures"] == {}
    assert returns == {
        "dimensions": {"family": "returns"},
        "means": {
            "coherence": {"mean": 8.25, "count": 4, "target": 9.0},
            "turns": {"mean": 2.5, "count": 6, "target": None},
        },
        "states": {"eligible": 6},
        "failures": {"execution": 2},
        "criterion_failures": {"paid": 1},
    }


def test_the_system_is_shown_unless_a_cube_is_asked_for(server: Server, worker: FakeWorker) -> None:
    worker.of_means = [MeanReading("system", (), "score", "24h", 0.5, 2, None, NOW)]

    _, body, _ = server.get("/api/means")

    assert body["segments"][0]["means"] == {"score": {"mean": 0.5, "count": 2, "target": None}}


def test_what_is_not_known_is_refused(server: Server) -> None:
    for query in ("cube=agent", "window=2h", "measure=score"):
        status, body, _ = server.get(f"/api/means?{query}")
        assert status == 400
        assert body["allowed"]
