"""The ledger's own reading of a plan, one rule at a time, and that it leans on nothing that it is to judge."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.simulation import ledger
from pipeline.simulation.ledger import Account, accounts, truth
from pipeline.simulation.plan import (
    HOUR_NS,
    ConversationPlan,
    Ending,
    Fact,
    FactKind,
    HandOff,
    Kind,
    SessionPlan,
    Shape,
    Standing,
)
from pipeline.simulation.profiles import FAMILIES

ORDERED = SessionPlan(
    family="order_placement", key="OR-1", issue=None, ending=Ending.CLAIMS_COMPLETED, hand_off=HandOff.NONE,
    shape=Shape.ONE_TURN, standing=Standing.VALID, runs=(), start_ns=100 * HOUR_NS, end_ns=101 * HOUR_NS, tool_calls=3,
    tool_calls_ok=2, passed=frozenset({"order_created", "items_verified", "address_confirmed"}), exempt=frozenset(),
)  # fmt: skip


def fact(kind: FactKind, value: bool | str, hours_after: float, name: str = "state", by_key: bool = True) -> Fact:
    at_ns = ORDERED.end_ns + round(hours_after * HOUR_NS)
    return Fact(kind, name, value, at_ns, by_key, f"{kind}-{hours_after}")


def paid(value: str, hours_after: float, by_key: bool = True) -> Fact:
    return fact(FactKind.EVIDENCE, value, hours_after, "payment_status", by_key)


def conversation(*sessions: SessionPlan, kind: Kind = Kind.SINGLE) -> ConversationPlan:
    return ConversationPlan("c", kind, 0, sessions)


def account(*facts: Fact, session: SessionPlan = ORDERED) -> Account:
    return accounts(conversation(replace(session, facts=facts)))[0]


def later(hours_after: float, **changes: Any) -> SessionPlan:
    start_ns = ORDERED.end_ns + round(hours_after * HOUR_NS)
    return replace(ORDERED, start_ns=start_ns, end_ns=start_ns + HOUR_NS // 4, key="OR-2", **changes)


@pytest.mark.parametrize(
    ("facts", "complete"),
    [
        pytest.param([], False, id="proof never comes"),
        pytest.param([paid("settled", 3)], True, id="settled in time"),
        pytest.param([paid("settled", 26)], False, id="settled after the deadline"),
        pytest.param([paid("declined", 3)], False, id="declined"),
        pytest.param([paid("declined", 3), paid("settled", 5)], True, id="declined and then settled"),
        pytest.param([paid("settled", 3), paid("declined", 5)], False, id="settled and then charged back"),
        pytest.param([paid("settled", 3), paid("declined", 30)], True, id="charged back after the deadline"),
        pytest.param([paid("settled", -1.01)], True, id="known before the session starts"),
    ],
)
def test_completion_hangs_on_the_last_evidence_in_time(facts: list[Fact], complete: bool) -> None:
    assert account(*facts).complete is complete


def test_a_required_state_criterion_that_fails_makes_incomplete_whatever_was_paid() -> None:
    assert not account(paid("settled", 3), session=replace(ORDERED, passed=frozenset({"order_created"}))).complete


def test_verified_asks_for_every_independent_criterion_that_applies() -> None:
    shipped = fact(FactKind.EVIDENCE, "as_ordered", 20, "shipment")

    assert account(paid("settled", 3), shipped).verified is True
    assert account(paid("settled", 3)).verified is False
    assert account(session=replace(ORDERED, family="order_status")).verified is None


def test_an_exempt_criterion_neither_proves_nor_refutes() -> None:
    passed = frozenset({"changes_applied", "total_recalculated"})
    modified = replace(ORDERED, family="multi_item_modification", passed=passed, exempt=frozenset({"order_reconciled"}))

    assert account(session=modified).complete
    assert account(session=modified).verified is None


def test_a_person_takes_over_only_when_accepted_and_in_time() -> None:
    assert account(fact(FactKind.ESCALATION, "accepted", 10)).escalated
    assert not account(fact(FactKind.ESCALATION, "failed", 10)).escalated
    assert account(fact(FactKind.ESCALATION, "failed", 10)).attempted
    assert not account(fact(FactKind.ESCALATION, "accepted", 80)).attempted
    assert account(session=replace(ORDERED, ending=Ending.CLAIMS_ESCALATED)).attempted
    assert not account(session=replace(ORDERED, ending=Ending.CLAIMS_ESCALATED)).escalated


def test_the_customers_last_word_in_time_counts() -> None:
    yes = fact(FactKind.RESOLUTION, True, 5, "confirmed")
    no = fact(FactKind.RESOLUTION, False, 9, "confirmed")
    too_late = fact(FactKind.RESOLUTION, True, 73, "confirmed")

    assert account(yes, no, too_late).answer is False
    assert account(too_late).answer is None


@pytest.mark.parametrize(
    ("first", "second", "reopened"),
    [
        pytest.param({}, later(20), True, id="back within the window"),
        pytest.param({}, later(75), False, id="back after the window"),
        pytest.param({}, later(20, family="return"), False, id="back with another task"),
        pytest.param({"issue": "a"}, later(20, issue="a"), True, id="back with the same issue"),
        pytest.param({"issue": "a"}, later(20, issue="b"), False, id="back with another issue"),
        pytest.param({"issue": "a"}, later(20), True, id="back without saying which issue"),
        pytest.param({"ending": Ending.CLAIMS_FAILED}, later(20), False, id="no claim to take back"),
        pytest.param({"ending": Ending.ANSWERS}, later(20), True, id="assumed claim taken back"),
        pytest.param(
            {"ending": Ending.ANSWERS, "hand_off": HandOff.ACCEPTED}, later(20), False, id="a person has taken over"
        ),
    ],
)
def test_a_return_reopens_a_claimed_session(first: dict[str, Any], second: SessionPlan, reopened: bool) -> None:
    sessions = [replace(ORDERED, **first), second]

    assert [each.reopened for each in accounts(conversation(*sessions))] == [reopened, False]


def test_a_return_reopens_the_latest_claimed_session_of_its_task_past_another_task() -> None:
    between = later(1, family="product_search")

    found = accounts(conversation(ORDERED, between, later(20), kind=Kind.THERE_AND_BACK))
    assert [each.reopened for each in found] == [True, False, False]


def test_evidence_by_key_reaches_each_session_on_the_key_that_had_begun() -> None:
    second = replace(later(4), key=ORDERED.key, facts=(paid("declined", 9),))
    first = replace(ORDERED, facts=(paid("settled", 2),))
    by_conversation = replace(second, facts=(paid("declined", 9, by_key=False),))

    assert [each.complete for each in accounts(conversation(first, second))] == [False, False]
    assert [each.complete for each in accounts(conversation(first, by_conversation))] == [True, False]
    assert [each.complete for each in accounts(conversation(first, replace(second, facts=())))] == [True, False]


def test_test_sessions_count_nowhere_and_guarded_ones_only_with_their_calls_and_identity() -> None:
    test = conversation(replace(ORDERED, standing=Standing.TEST))
    guarded = conversation(replace(ORDERED, standing=Standing.GUARDED, ending=Ending.ANSWERS))

    assert {row for row, counts in truth([test]).items() if counts != (0, 0)} == set()
    assert {rate for (_, rate), counts in truth([guarded]).items() if counts != (0, 0)} == {
        "tool_success",
        "attribution",
    }
    assert truth([guarded])["order_placement", "tool_success"] == (2, 3)


def test_nothing_here_imports_what_it_is_to_judge() -> None:
    for path in Path(ledger.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            ours = [name for name in names if name.split(".")[0] in ("pipeline", "schemas", "tests")]
            assert all(name.startswith("pipeline.simulation.") for name in ours), path.name


def test_only_a_return_needs_its_claim_in_words() -> None:
    quiet = {name for name, family in FAMILIES.items() if not family.assumes_claims}

    assert quiet == {"return"}
    assert not account(session=replace(ORDERED, family="return", ending=Ending.ANSWERS)).claimed
