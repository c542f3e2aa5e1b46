"""Small contracts that between them use what a contract can say; worlds place things at their limits."""

from __future__ import annotations

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from tests.builders import contracts

ORDER = """
family: order
version: 1
claimed_when: "tools['notify'].ok > 0"
escalated_when: {tools: [escalate_to_human], handoffs: ["*_human"]}
approval_when: {tools: [refund]}
refused_when: "tools['refuse'].calls > 0"
reopen_window: 48h
resume_window: 1h
wait_window: 6h
closing_grace: 10m
criteria:
  - {id: placed, check: "tools['place_order'].ok >= 1", stage: execution, agent: clerk}
  - id: settled
    check: "evidence.settled == true"
    fails_when: "evidence.settled == false"
    trust: independent
    deadline: 24h
  - {id: told, check: "state.told == true", required: false, weight: 0.5, applies: "tools['place_order'].calls > 0"}
goal_achievement:
  accuracy: {max: 3, weight: 0.3}
  effort: {max: 4, weight: 0.7}
expected_tool_calls:
  - scenario: buy
    calls:
      - {tool: place_order, arguments: {item: a, count: 2}}
      - {tool: search, arguments: {}}
  - calls: [{tool: place_order, arguments: {item: "{item}"}}]
"""

ORDER_LATER = """
family: order
version: 2
effective_from: 2024-10-04T03:00:00Z
assume_claim: false
escalated_when: {tools: [escalate_to_human]}
reopen_window: 24h
resume_window: 1h
criteria:
  - {id: placed, check: "tools['place_order'].ok >= 1 || state.told", stage: planning}
  - {id: settled, check: "evidence.settled && evidence.score >= 2", trust: independent, deadline: 12h}
goal_achievement: {accuracy: {max: 4, weight: 1}}
"""

SEARCH = """
family: search
version: 1
applies_when: "tools['search'].calls > 0"
assume_claim: false
invalid_when: "resource['test'] == true"
escalated_when: {tools: [escalate_to_human], handoffs: ["*_human"]}
resume_window: 10m
criteria:
  - {id: found, check: "state.found > 0", fails_when: "tools['search'].failed > 1"}
  - id: seen
    check: "evidence.seen == true"
    trust: independent
    required: false
    deadline: 2h
    applies: "state.found > 0"
"""

ASK = """
family: ask
version: 1
applies_when: "tools['lookup'].ok > 0"
approval_when: {tools: [refund]}
criteria:
  - {id: answered, check: "session.errors == 0 && session.runs >= 1 && session.turns < 4"}
  - {id: kept, check: "evidence.score >= 3 || state.told", fails_when: "evidence.score < 2", deadline: 24h}
  - {id: calm, check: "session.retries == 0 && session.handoffs == 0", required: false}
"""

BOOK, ORACLE_CONTRACTS = contracts(ORDER, ORDER_LATER, SEARCH, ASK)

LIMITS = (
    5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 72 * HOUR,
)  # fmt: skip
"""Every limit of the contracts and of the default settings."""

ODD = (0, 1, 20 * SECOND, 3 * MINUTE)
