"""The example contracts: their grammar, and that the simulated families mean the same by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

from pipeline.simulation.plan import HOUR_NS
from pipeline.simulation.profiles import FAMILIES, KEY, EvidenceCriterion

FOLDER = Path(__file__).parents[3] / "contracts"
CONTRACTS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))
}
FIELDS = {
    "family", "version", "applies_when", "risk", "criteria", "goal_achievement", "claimed_when", "assume_claim",
    "escalated_when", "approval_when", "refused_when", "invalid_when", "reopen_window", "resume_window", "wait_window",
    "targets",
}  # fmt: skip
CRITERION_FIELDS = {
    "id", "check", "fails_when", "trust", "deadline", "weight", "applies", "required", "stage", "agent",
}  # fmt: skip
ROOTS = {"state", "evidence", "tools", "resource", "session"}
TARGETS = {"completion", "resolution", "reopen", "escalation", "goal_achievement", "coherence"}

by_family = pytest.mark.parametrize("name", sorted(CONTRACTS))


def reads(expression: str) -> set[str]:
    """The variables that an expression reads, text in quotes left out."""
    bare = re.sub(r"'[^']*'", "", expression)
    return {word for word in re.findall(r"(?<![.\w])[a-z_]+", bare) if word not in {"in", "true", "false"}}


def hours(text: str) -> int:
    assert text.endswith("h")
    return int(text[:-1])


def criteria(name: str) -> dict[str, dict[str, Any]]:
    return {criterion["id"]: criterion for criterion in CONTRACTS[name]["criteria"]}


def expressions(name: str) -> list[str]:
    contract = CONTRACTS[name]
    found = [
        contract[key] for key in ("applies_when", "claimed_when", "refused_when", "invalid_when") if key in contract
    ]
    return found + [c[key] for c in contract["criteria"] for key in ("check", "fails_when", "applies") if key in c]


def test_there_is_a_contract_for_each_simulated_family_and_no_other() -> None:
    assert set(CONTRACTS) == set(FAMILIES)


def test_four_families_have_an_independent_criterion() -> None:
    independent = [name for name in CONTRACTS if any(c.get("trust") == "independent" for c in criteria(name).values())]

    assert len(independent) >= 4


def test_an_order_is_complete_only_when_its_payment_settled_within_a_day() -> None:
    payment = criteria("order_placement")["payment_confirmed"]

    assert payment["trust"] == "independent"
    assert payment["deadline"] == "24h"
    assert payment.get("required", True) is True
    assert reads(payment["check"]) == {"evidence"}


@by_family
def test_a_contract_uses_the_published_fields_alone(name: str) -> None:
    contract = CONTRACTS[name]

    assert set(contract) <= FIELDS
    assert contract["family"] == name
    assert contract["version"] == 1
    assert set(contract["targets"]) == TARGETS
    assert all(set(criterion) <= CRITERION_FIELDS for criterion in contract["criteria"])
    assert len(criteria(name)) == len(contract["criteria"])


@by_family
def test_every_expression_compiles_and_reads_known_variables(name: str) -> None:
    for expression in expressions(name):
        cel.compile(expression)

        assert reads(expression) <= ROOTS, expression


@by_family
def test_who_may_read_what(name: str) -> None:
    contract = CONTRACTS[name]
    for criterion in contract["criteria"]:
        judged = reads(criterion["check"]) | reads(criterion.get("fails_when", ""))
        assert judged == {"evidence"} or criterion.get("trust") != "independent"
        assert "deadline" in criterion or "evidence" not in judged
        assert "evidence" not in reads(criterion.get("applies", ""))
    assert "evidence" not in reads(contract["applies_when"]) | reads(contract.get("claimed_when", ""))
    assert not {"evidence", "state"} & (reads(contract["refused_when"]) | reads(contract["invalid_when"]))


@by_family
def test_goal_achievement_weighs_one_in_all(name: str) -> None:
    parts = CONTRACTS[name]["goal_achievement"]

    assert {key: part["max"] for key, part in parts.items()} == {
        "information_accuracy": 3, "action_correctness": 4, "effort_minimization": 3,
    }  # fmt: skip
    assert sum(part["weight"] for part in parts.values()) == pytest.approx(1.0)


@by_family
def test_the_simulated_family_has_the_contracts_windows_and_tools(name: str) -> None:
    contract, family = CONTRACTS[name], FAMILIES[name]

    assert hours(contract["reopen_window"]) * HOUR_NS == family.reopen_window_ns
    assert contract["resume_window"] == "2h"
    assert contract["wait_window"] == "24h"
    assert contract["assume_claim"] is family.assumes_claims
    assert family.hand_off_tool in contract["escalated_when"]["tools"]
    assert not set(family.tools) & set(contract["escalated_when"]["tools"])
    assert contract.get("claimed_when") == (
        f"tools['{family.claim_tool}'].ok > 0" if family.claim_tool is not None else None
    )
    assert cel.evaluate(contract["applies_when"], {"session": {"agents": ["concierge", family.agent]}}) is True
    assert contract.get("approval_when", {}).get("tools", []) == ([family.approval_tool] if family.approvals else [])


@by_family
def test_the_simulated_family_has_the_contracts_criteria(name: str) -> None:
    stated, simulated = criteria(name), {criterion.id: criterion for criterion in FAMILIES[name].criteria}

    assert {key for key, c in stated.items() if c.get("required", True)} == {
        key for key, c in simulated.items() if c.required
    }
    assert {key for key, c in stated.items() if c.get("trust") == "independent"} == {
        c.id for c in FAMILIES[name].evidence
    }
    for key, criterion in simulated.items():
        applies = f"state.{criterion.gate} == true" if criterion.gate is not None else None
        assert stated[key].get("applies") == applies
        if isinstance(criterion, EvidenceCriterion):
            assert hours(stated[key]["deadline"]) * HOUR_NS == criterion.deadline_ns


@by_family
def test_what_the_simulation_calls_good_passes_and_what_it_calls_bad_does_not(name: str) -> None:
    stated, family = criteria(name), FAMILIES[name]
    for fact in family.evidence:
        good, bad = {"evidence": {fact.field: fact.good}}, {"evidence": {fact.field: fact.bad}}
        assert cel.evaluate(stated[fact.id]["check"], good) is True
        assert cel.evaluate(stated[fact.id]["check"], bad) is False
        assert cel.evaluate(stated[fact.id]["fails_when"], bad) is True
        assert cel.evaluate(stated[fact.id]["fails_when"], good) is False
    for criterion in (c for c in family.state if c.required):
        named = {key: "K-1" if value == KEY else value for key, value in criterion.good.items()}
        assert cel.evaluate(stated[criterion.id]["check"], {"state": named}) is True
        for bad_state in criterion.bad:
            assert not passes(stated[criterion.id]["check"], dict(bad_state))


def passes(check: str, state: dict[str, object]) -> bool:
    """A missing field is unknown, and unknown in the end is no pass."""
    try:
        return cel.evaluate(check, {"state": state}) is True
    except KeyError:
        return False
