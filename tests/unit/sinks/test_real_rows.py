"""The rows that the steps make, into the tables that the migrations make: their types must agree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from pipeline.core.judging.rows import as_json, outcome_row, revision_row, step_row, verdict_rows
from pipeline.sinks.clickhouse import Store
from schemas.envelope import Envelope, decoder, encode
from schemas.outcome import Attached, Outcome, OutcomeKind
from schemas.span import Kind, Span
from schemas.verdict import Completion, CriterionVerdict, Reason, Status, Verdict
from schemas.wire import Row

T = 1_764_000_000_123_456_789
CRITERION = CriterionVerdict("paid", Status.PASSED, Reason.MET, True, True, 2.0, passed_at=T, deadline=T + 1)
JUDGED = Verdict(
    "real",
    "c",
    ordinal=1,
    version=(1 << 56) | (3 << 36) | 5,
    revision=2,
    reason="evidence",
    as_of=T,
    trace_ids=("ab" * 16,),
    start=T,
    end=T,
    family="returns",
    contract="returns@3",
    claim="completed",
    claimed="explicit",
    completion=Completion.COMPLETE,
    verified=True,
    confirmed=False,
    score=7.5,
    criteria=(CRITERION,),
    agents=("planner",),
    flags=("truncated",),
    evidence={"payment_status": ("settled", T)},
)
SPAN = Span(
    "real", b"\xab" * 16, b"\xcd" * 8, b"", T, T, Kind.TOOL, "refund", failed=True, tool="refund", tokens=(1, 2, 3)
)
OUTCOME = Outcome(
    "real", "billing", "e", 1, T, OutcomeKind.EVIDENCE, "c", None, b"", (), {"payment_status": "settled"}, b""
)
ATTACHED = Attached("real", "c", "billing", "e", ("order_id", "A-100"), 1, OUTCOME)


def over_kafka(rows: Iterable[Row]) -> list[Row]:
    """As the sink gets them."""
    message = encode(Envelope(1, [], list(rows)))
    return list(decoder(Row).decode(message).records)


def write(store: Store, rows: Iterable[Row], token: str) -> int:
    return sum(asyncio.run(store.write(row.table, [row.values], token)) for row in over_kafka(rows))


@pytest.mark.parametrize(
    "verdict",
    [JUDGED, Verdict("real", "bare", 1, start=T, end=T, as_of=T)],
    ids=["everything known", "nothing known"],
)
def test_no_row_of_a_verdict_is_refused(store: Store, verdict: Verdict) -> None:
    rows = [*verdict_rows(verdict, 0, settled=False), revision_row(verdict, ["completion"], as_json(verdict))]

    assert write(store, rows, verdict.conversation) == 0


def test_a_judged_session_is_read_back_as_it_was_judged(store: Store) -> None:
    rows = [*verdict_rows(JUDGED, 0, settled=True), revision_row(JUDGED, ["completion"], as_json(JUDGED))]
    assert write(store, [*rows, step_row("c", SPAN, 1), outcome_row(ATTACHED, 1)], "back") == 0

    story: Any = asyncio.run(store.session("real", "c"))

    [session] = story.sessions
    verdict = session.verdict
    told = {name: verdict[name] for name in ("claimed", "completion", "verified", "confirmed", "score", "settled")}
    assert told == {
        "claimed": "explicit",
        "completion": "complete",
        "verified": True,
        "confirmed": False,
        "score": 7.5,
        "settled": True,
    }
    assert (verdict["contract_version"], verdict["agents"], verdict["flags"]) == (
        "returns@3",
        ["planner"],
        ["truncated"],
    )
    assert [(c["criterion"], c["status"], c["reason"], c["weight"]) for c in session.criteria] == [
        ("paid", "passed", "met", 2.0)
    ]
    [revision] = session.revisions
    assert (revision["reason"], revision["changed"]) == ("evidence", ["completion"])
    assert revision["verdict"] == json.loads(as_json(JUDGED))
    assert [(s["name"], s["failed"], s["span_id"]) for s in session.spans] == [("refund", True, "cd" * 8)]
    assert [(o["via"], o["data"]) for o in story.outcomes] == [("order_id=A-100", {"payment_status": "settled"})]


def test_an_outcome_that_was_retracted_is_gone(store: Store) -> None:
    attached = Attached("real", "gone", "billing", "e", ("session", ""), 1, OUTCOME)
    retracted = Attached("real", "gone", "billing", "e", ("session", ""), 2, None)
    rows = [*verdict_rows(Verdict("real", "gone", 1, start=T, end=T, as_of=T), 0, settled=False)]
    assert write(store, [*rows, outcome_row(attached, 1), outcome_row(retracted, 2)], "gone") == 0

    story = asyncio.run(store.session("real", "gone"))
    assert story is not None
    assert story.outcomes == []
