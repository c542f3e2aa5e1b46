"""INTERFACES.md's own contract and outcome, read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml

from tests.oracle.loading import contract_of, duration_of, moment_of, outcome_of
from tests.oracle.model import DAY, HOUR, MINUTE, OCriterion

CONTRACT = """
family: order_placement
version: 3
effective_from: 2026-04-01T00:00:00Z
applies_when: "'order_agent' in session.agents"
criteria:
  - {id: order_created, check: "state.order_id != ''", stage: execution, agent: order_agent}
  - {id: paid, check: "evidence.payment_status == 'settled'", fails_when: "evidence.payment_status == 'declined'",
     trust: independent, deadline: 24h, weight: 2}
  - {id: gift_wrapped, check: "tools['wrap'].ok > 0", applies: "state.gift == true", required: false}
goal_achievement: {accuracy: {max: 3, weight: 0.3}}
escalated_when: {tools: [escalate_to_human], handoffs: ["*_human", support_desk]}
approval_when: {tools: [approve_refund]}
reopen_window: 72h
"""


def test_a_contract_is_read():
    contract = contract_of(yaml.safe_load(CONTRACT))

    assert (contract.family, contract.version) == ("order_placement", 3)
    assert contract.effective_from == 1_775_001_600 * 10**9
    assert contract.criteria[0] == OCriterion(
        "order_created", "state.order_id != ''", stage="execution", agent="order_agent"
    )
    assert (contract.criteria[1].deadline, contract.criteria[1].weight) == (DAY, 2.0)
    assert not contract.criteria[2].required
    assert contract.goal_achievement == {"accuracy": (3.0, 0.3)}
    assert contract.escalated_handoffs == ("*_human", "support_desk")
    assert (contract.approval_tools, contract.assume_claim) == (("approve_refund",), True)
    assert (contract.reopen_window, contract.resume_window) == (72 * HOUR, None)


def test_an_outcome_is_read():
    event = {
        "event_id": "stripe:evt_1",
        "event_time": "2026-04-02T10:00:00.000001Z",
        "source": "billing",
        "kind": "evidence",
        "correlation": {"order_id": "A-100"},
        "data": {"payment_status": "settled"},
    }
    outcome = outcome_of(event, record_time=5)

    assert outcome.event_time == 1_775_124_000 * 10**9 + 1000
    assert (outcome.tenant, outcome.event_version, outcome.record_time) == ("default", 1, 5)
    assert (outcome.session_id, outcome.correlation) == (None, {"order_id": "A-100"})


@pytest.mark.parametrize(
    ("text", "expected"), [("5m", 5 * MINUTE), ("2 h", 2 * HOUR), ("35d", 35 * DAY), ("90s", 90 * 10**9)]
)
def test_durations(text, expected):
    assert duration_of(text) == expected


def test_a_duration_needs_a_unit():
    with pytest.raises(ValueError, match="no duration"):
        duration_of("30")


def test_a_time_without_a_zone_is_utc():
    assert moment_of("1970-01-02") == moment_of(datetime(1970, 1, 2, tzinfo=UTC)) == DAY
