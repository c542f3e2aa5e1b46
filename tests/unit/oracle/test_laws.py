"""The oracle's own laws: neither the order nor the number of deliveries is seen in any answer."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.model import DAY, SECOND, OCriterion, OOutcome, OSpan, World
from tests.unit.oracle.small_world import HOURS, contract, judge, outcome, span, tool_turn, turn

CONTRACTS = [
    contract(
        OCriterion("ok", "tools['x'].ok > 0"),
        OCriterion("paid", "evidence.pay == 'ok'", trust="independent", deadline=DAY),
        family=family,
        claimed_when="tools['close'].ok > 0",
    )
    for family in ("order", "return")
]


def some_world(seed: int) -> tuple[list[OSpan], list[OOutcome]]:
    chance = random.Random(seed)
    spans: list[OSpan] = []
    outcomes: list[OOutcome] = []
    for number in range(1, 31):
        start = chance.uniform(0, 40 * HOURS)
        conversation = chance.choice(["a", "b", None])
        stated = {"family": (chance.choice(["order", "return"]),), "keys": {"order": (chance.randint(1, 5),)}}
        kind = chance.choice(["x", "close", None])
        run = tool_turn(number, start, kind, conversation) if kind else turn(number, start, conversation)
        link = [chance.randint(1, 30)] if conversation is None else []
        spans += [*run, span(number, "9", start, start + 1, "step", parent="1", links=link, **stated)]
        address: dict[str, Any] = chance.choice([{"session_id": "a"}, {"correlation": {"order": chance.randint(1, 5)}}])
        said = chance.choice(["evidence", "reopen", "feedback"])
        data = {"pay": chance.choice(["ok", "no"])}
        outcomes.append(outcome(str(number % 20), start, said, event_version=number, data=data, **address))
    return spans, outcomes


def content(world: World) -> tuple[object, ...]:
    return (world.sessions, world.rates, world.events, world.waiting)


@pytest.mark.parametrize("seed", range(3))
def test_order_and_number_of_deliveries_change_nothing(seed):
    spans, outcomes = some_world(seed)
    spans = [replace(s, record_time=s.end) for s in spans]
    again = [replace(s, record_time=s.end + SECOND) for s in spans] + spans
    late = [*outcomes, *outcomes[::2]]
    random.Random(seed).shuffle(again)
    random.Random(seed).shuffle(late)
    straight, shuffled = judge(spans, outcomes, CONTRACTS), judge(again, late, CONTRACTS)

    assert len(straight.sessions) > 5
    assert content(straight) == content(shuffled)
    assert shuffled.dropped["duplicate"] == len(spans)


@pytest.mark.parametrize("seed", range(3))
def test_every_span_is_in_a_session_or_dropped_with_a_reason(seed):
    spans, outcomes = some_world(seed)
    world = judge([*spans, span(99, "1", 0, 1, "step")], outcomes, CONTRACTS)
    held = {trace for session in world.sessions for trace in session.trace_ids}

    assert sum(len(s.trace_ids) for s in world.sessions) == len(held)
    assert sum(s.trace_id in held for s in spans) + sum(world.dropped.values()) == len(spans) + 1
