"""Spans that name no family get it from the contracts, from their arrival to the verdict (RULES.md 13)."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.contracts.parse import load
from pipeline.core.timeline import DAY, TimeRules
from tests.builders import T0
from tests.unit.core.line import CHAT, Line, sent

CONTRACT = """
family: {}
version: 1
applies_when: "{}"
criteria:
  - {{id: done, check: "{}"}}
"""
CONTRACTS = [
    (f"{family}.yaml", CONTRACT.format(family, condition, check))
    for family, condition, check in (
        ("order", "'order_agent' in session.agents", "tools['create_order'].ok > 0"),
        ("refund", "tools['refund_order'].calls > 0", "tools['refund_order'].ok > 0"),
        ("served", "resource['service.name'] == 'desk'", "session.errors == 0"),
    )
]  # fmt: skip


def judged(agent: str, *tools: str, resource: Any = None, **said: Any) -> dict[str, Any]:
    """The verdict on a session of an agent that calls these tools, as a stock SDK sends it."""
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, "gen_ai.conversation.id": "c", **said}
    spans = [sent(1, 1, T0, T0 + 10, root), sent(1, 2, T0, T0 + 9, CHAT, 1)]
    for number, name in enumerate(tools, start=3):
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        spans.append(sent(1, number, T0 + number, T0 + number + 1, called, 1))
    rules = TimeRules()
    return Line(rules, load(CONTRACTS, rules)).spans(*spans, resource=resource).until(T0 + DAY).only()


@pytest.mark.parametrize(
    ("agent", "tools", "resource", "family", "passed"),
    [
        ("order_agent", ("create_order",), None, "order", True),
        ("order_agent", (), None, "order", False),
        ("desk_agent", ("refund_order",), None, "refund", True),
        ("desk_agent", (), {"service.name": "desk"}, "served", True),
    ],
)
def test_a_session_that_names_no_family_is_judged_by_the_contract_that_applies(
    agent: str, tools: tuple[str, ...], resource: Any, family: str, passed: bool
):
    found = judged(agent, *tools, resource=resource)
    assert (found["family"], found["family_source"]) == (family, "derived")
    assert [one["status"] for one in found["criteria"]] == ["passed" if passed else "failed"]
    assert found["eligible"]


def test_a_stated_family_holds_over_one_that_would_apply():
    found = judged("order_agent", "refund_order", **{"trueup.task.family": "served"})
    assert (found["family"], found["family_source"]) == ("served", "stated")


def test_several_that_apply_are_ambiguous_and_none_is_no_contract():
    both, none = judged("order_agent", "refund_order"), judged("desk_agent")
    assert (both["family"], both["family_source"], both["eligible"]) == ("", "ambiguous_contract", False)
    assert (none["family"], none["family_source"], none["eligible"]) == ("", "no_contract", False)


def test_a_family_is_stated_by_a_users_own_attribute():
    rules = TimeRules()
    root = {"gen_ai.operation.name": "invoke_agent", "session.id": "c", "acme.task": "refund"}
    line = Line(rules, load(CONTRACTS, rules), aliases={"trueup.task.family": ("acme.task",)})
    found = line.spans(sent(1, 1, T0, T0 + 10, root)).until(T0 + DAY).only()
    assert (found["family"], found["family_source"]) == ("refund", "stated")
