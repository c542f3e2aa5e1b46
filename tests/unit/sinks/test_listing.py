"""Each list has the length of the number it stands behind, over verdicts of every kind."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.judging.fold import contribution
from pipeline.core.judging.rows import verdict_rows
from pipeline.core.timeline import MINUTE, SECOND, TimeRules
from pipeline.sinks.clickhouse import Store
from pipeline.sinks.listing import OUTCOMES, Page, Place, Wanted
from schemas.segment import Rate
from schemas.verdict import Completion, CriterionVerdict, Reason, Status, Verdict

CONTRACT = Path(__file__).parents[3] / "contracts" / "return.yaml"
BOOK = load([(CONTRACT.name, CONTRACT.read_text("utf-8"))], TimeRules())
TENANT = "lists"
START = 1_766_000_000 * SECOND // (5 * MINUTE) * 5 * MINUTE
BUCKET = 5 * MINUTE
HOW_MANY = 400
BOUNDS = (START, START + 20 * BUCKET)


def verdict(number: int, dice: random.Random) -> Verdict:
    """Any verdict that judging may come to, as far as the rates look at it."""
    terminal = dice.random() < 0.9
    completion = dice.choice([Completion.COMPLETE, Completion.INCOMPLETE, Completion.PENDING]) if terminal else ""
    escalated, reopened, confirmed = dice.random() < 0.2, dice.random() < 0.2, dice.choice([None, None, True, False])
    independent = dice.choice([None, Status.PASSED, Status.FAILED, Status.PENDING])
    verified = None if independent is None else (completion, independent) == (Completion.COMPLETE, Status.PASSED)
    eligible = terminal and dice.random() < 0.8
    calls = dice.randrange(4)
    end = START + dice.randrange(-2 * BUCKET, 22 * BUCKET)
    resolved = eligible and completion == Completion.COMPLETE and not escalated and not reopened
    criteria = () if independent is None else (CriterionVerdict("paid", independent, Reason.MET, False, True, 1.0),)
    given: dict[str, Any] = {
        "claimed": dice.choice(["", "explicit", "assumed"]) if terminal else "",
        "terminal_reason": dice.choice(["completed", "abandoned", "escalated"]) if terminal else "",
        "verified": verified,
        "verified_at": end if verified else 0,
        "completed_at": end if completion == Completion.COMPLETE else 0,
        "handoff_attempted": escalated or dice.random() < 0.1,
        "resolved": resolved and confirmed is not False,
        "invalid": terminal and not eligible and dice.random() < 0.5,
        "attributed": dice.random() < 0.9,
    }
    return Verdict(
        TENANT,
        f"c-{number % 150}",
        1 + number // 150,
        version=2,
        revision=int(terminal),
        start=end - MINUTE,
        end=end,
        family=dice.choice(["lists_a", "lists_b"]),
        contract="return@1",
        terminal=terminal,
        completion=Completion(completion),
        criteria=criteria,
        escalated=escalated,
        reopened=reopened,
        confirmed=confirmed,
        eligible=eligible,
        tool_calls=calls,
        tool_calls_ok=dice.randint(0, calls),
        agents=dice.choice([("lists_x",), ("lists_x", "lists_y")]),
        handoff_at=end if given["handoff_attempted"] else 0,
        **given,
    )


@pytest.fixture(scope="module")
def verdicts(store: Store) -> list[Verdict]:
    dice = random.Random(20)
    made = [verdict(number, dice) for number in range(HOW_MANY)]
    rows = [row for one in made for row in verdict_rows(one, one.end // BUCKET * BUCKET, False)]
    for table in ("verdicts", "criteria"):
        asyncio.run(store.write(table, [row.values for row in rows if row.table == table], f"lists {table}"))
    return made


def listed(store: Store, after: Place | None = None, limit: int = 500, **wanted: Any) -> Page:
    bounds = {"start": BOUNDS[0], "end": BOUNDS[1]}
    return asyncio.run(store.sessions(Wanted(**(bounds | wanted)), after, limit))


@pytest.mark.parametrize("family", ["lists_a", "lists_b"])
@pytest.mark.parametrize("rate", list(Rate))
def test_the_total_is_what_the_fold_counts(rate: Rate, family: str, verdicts: list[Verdict], store: Store) -> None:
    denominator = numerator = 0
    for one in verdicts:
        if one.family == family and BOUNDS[0] <= one.end // BUCKET * BUCKET < BOUNDS[1]:
            counted = contribution(one, BOOK.named(one.contract), BUCKET).counts
            denominator += sum(n for name, n, _, _ in counted if name == rate)
            numerator += sum(good for name, _, good, _ in counted if name == rate)

    whole = listed(store, family=family, rate=rate.value)
    good, rest, bad, pending = (listed(store, family=family, rate=rate.value, outcome=outcome) for outcome in OUTCOMES)

    assert 0 < numerator < denominator
    assert (good.total, whole.total) == (numerator, denominator)
    assert good.total + rest.total == whole.total
    assert bad.total + pending.total == rest.total
    if rate is not Rate.TOOL_SUCCESS:
        assert all(len(one.sessions) == one.total for one in (whole, good, rest, bad, pending))


def test_what_is_pending_is_neither_good_nor_bad(verdicts: list[Verdict], store: Store) -> None:
    waits = listed(store, rate="completion", outcome="pending", family="lists_a")
    unverified = listed(store, rate="verified_completion", outcome="pending", family="lists_a")
    open_yet = {
        (one.conversation, one.ordinal)
        for one in verdicts
        if one.criteria[:1] and one.criteria[0].status in (Status.PENDING, Status.PASSED)
    }

    assert {one["completion"] for one in waits.sessions} == {"pending"}
    assert {(one["conversation"], one["ordinal"]) for one in unverified.sessions} <= open_yet


@pytest.mark.usefixtures("verdicts")
def test_pages_hold_every_session_once_and_in_order(store: Store) -> None:
    found: list[Any] = []
    after = None
    while True:
        page = listed(store, after, 7, agent="lists_y")
        found += page.sessions
        after = page.after
        if after is None:
            break

    assert len(found) == page.total
    assert Counter((one["conversation"], one["ordinal"]) for one in found).most_common(1)[0][1] == 1
    assert [one["end"] for one in found] == sorted((one["end"] for one in found), reverse=True)


@pytest.mark.usefixtures("verdicts")
def test_names_are_values_and_never_part_of_a_statement(store: Store) -> None:
    assert listed(store, family="lists_a' OR '1' = '1").total == 0
