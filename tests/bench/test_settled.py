"""What a settled session may cost, measured on real ones (RULES.md 48)."""

from __future__ import annotations

import pytest

from tests.bench.report import SettledCost
from tests.bench.settled import PER_KEY, PER_SESSION, PER_TRACE, measure

SESSIONS, COPIES = 60, 60


@pytest.fixture(scope="module")
def cost() -> SettledCost:
    return measure(7, SESSIONS, COPIES)


def test_rule_48_a_settled_session_costs_300_bytes_beside_8_a_span(cost: SettledCost) -> None:
    assert cost.session.items == SESSIONS * COPIES
    assert cost.session.checkpoint <= PER_SESSION
    assert cost.session.memory <= PER_SESSION


def test_rule_48_a_settled_trace_costs_64_bytes_in_stage_2(cost: SettledCost) -> None:
    assert cost.trace.items >= 3 * SESSIONS * COPIES
    assert cost.trace.checkpoint <= PER_TRACE
    assert cost.trace.memory <= PER_TRACE


def test_rule_48_a_stated_key_costs_64_bytes_in_stage_3(cost: SettledCost) -> None:
    assert cost.key.items >= 3 * SESSIONS * COPIES
    assert cost.key.checkpoint <= PER_KEY
    assert cost.key.memory <= PER_KEY
