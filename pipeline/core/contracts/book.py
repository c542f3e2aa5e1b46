"""Compiled contracts and the book of those in force.

A session is judged by the version in force at its start (RULES.md 31); a family that spans do not state is the one
whose `applies_when` holds (13).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from pipeline.core.contracts.arguments import expected_value
from pipeline.core.contracts.expressions import Expression, Truth
from pipeline.core.timeline import HOUR, TimeRules, from_datetime, nanoseconds
from schemas.contract import Contract, Criterion

AGE_GRID_HOURS = (0, 1, 2, 4, 8, 12, 18, 24, 36, 48, 72)
"""Source: STATISTICS.md section 0, the grid that was simulated; each family adds its own deadlines and window."""


@dataclass(frozen=True, slots=True)
class CompiledCriterion:
    """A criterion with its expressions compiled; `deadline` in ns, None without one."""

    id: str
    check: Expression
    fails_when: Expression | None
    applies: Expression | None
    deadline: int | None
    required: bool
    independent: bool
    weight: float
    stage: str
    agent: str


@dataclass(frozen=True, slots=True)
class GoalPart:
    """A part of goal achievement, as exact fractions: what it says in decimals is what counts."""

    name: str
    most: Fraction
    weight: Fraction


@dataclass(frozen=True, slots=True)
class ExpectedTool:
    """A call that a scenario expects; an argument whose value is None may have any."""

    tool: str
    arguments: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class CompiledContract:
    """A contract ready to judge by. Windows in ns; `horizon` is H of RULES.md 38.

    Args:
        expected: scenario -> the calls that it expects; under `""` those of scenarios that are not named.
        digest: of what the contract says; a version has one, for ever.
    """

    family: str
    version: int
    effective_from: int
    criteria: tuple[CompiledCriterion, ...]
    applies_when: Expression | None
    claimed_when: Expression | None
    refused_when: Expression | None
    invalid_when: Expression | None
    assume_claim: bool
    escalated_tools: frozenset[str]
    escalated_handoffs: tuple[str, ...]
    approval_tools: frozenset[str]
    reopen_window: int
    resume_window: int
    wait_window: int
    closing_grace: int
    targets: Mapping[str, float]
    horizon: int
    age_grid: tuple[int, ...]
    goal: tuple[GoalPart, ...] = ()
    expected: Mapping[str, tuple[ExpectedTool, ...]] = field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}@{self.version}"

    def expected_of(self, scenario: str) -> tuple[ExpectedTool, ...] | None:
        """The calls that a scenario expects; None where nothing is expected of it, or there is no scenario."""
        return self.expected.get(scenario, self.expected.get("")) if scenario else None

    def is_person(self, tool: str, target: str) -> bool:
        """Whether a tool or hand-off target of these names reaches a person (RULES.md 20)."""
        if tool in self.escalated_tools:
            return True
        return bool(target) and any(fnmatchcase(target, pattern) for pattern in self.escalated_handoffs)


def compile_criterion(criterion: Criterion) -> CompiledCriterion:
    return CompiledCriterion(
        id=criterion.id,
        check=Expression(criterion.check),
        fails_when=Expression(criterion.fails_when) if criterion.fails_when else None,
        applies=Expression(criterion.applies) if criterion.applies else None,
        deadline=nanoseconds(criterion.deadline) if criterion.deadline is not None else None,
        required=criterion.required,
        independent=criterion.trust == "independent",
        weight=criterion.weight,
        stage=criterion.stage,
        agent=criterion.agent,
    )


def _expected(contract: Contract) -> dict[str, tuple[ExpectedTool, ...]]:
    return {
        one.scenario: tuple(
            ExpectedTool(
                call.tool,
                tuple(sorted((name, expected_value(value)) for name, value in call.arguments.items())),
            )
            for call in one.calls
        )
        for one in contract.expected_tool_calls
    }


def compile_contract(contract: Contract, rules: TimeRules, digest: str = "") -> CompiledContract:
    """Compile; what the contract does not say comes from `rules`.

    Raises:
        ValueError: an expression does not parse.
    """

    def expression(source: str | None) -> Expression | None:
        return Expression(source) if source else None

    def window(given: Any, default: int) -> int:
        return default if given is None else nanoseconds(given)

    criteria = tuple(compile_criterion(one) for one in contract.criteria)
    deadlines = [one.deadline for one in criteria if one.deadline is not None]
    reopen_window = window(contract.reopen_window, rules.reopen_window)
    horizon = max([reopen_window, *deadlines])
    grid = {hours * HOUR for hours in AGE_GRID_HOURS if hours * HOUR <= horizon}
    return CompiledContract(
        family=contract.family,
        version=contract.version,
        effective_from=from_datetime(contract.effective_from) if contract.effective_from else 0,
        criteria=criteria,
        applies_when=expression(contract.applies_when),
        claimed_when=expression(contract.claimed_when),
        refused_when=expression(contract.refused_when),
        invalid_when=expression(contract.invalid_when),
        assume_claim=contract.assume_claim,
        escalated_tools=frozenset(contract.escalated_when.tools),
        escalated_handoffs=tuple(contract.escalated_when.handoffs),
        approval_tools=frozenset(contract.approval_when.tools),
        reopen_window=reopen_window,
        resume_window=window(contract.resume_window, rules.resume_window),
        wait_window=window(contract.wait_window, rules.wait_window),
        closing_grace=window(contract.closing_grace, rules.closing_grace),
        targets=dict(contract.targets),
        horizon=horizon,
        age_grid=tuple(sorted(grid | set(deadlines) | {reopen_window})),
        goal=tuple(
            GoalPart(name, Fraction(str(part.max)), Fraction(str(part.weight)))
            for name, part in contract.goal_achievement.items()
        ),
        expected=_expected(contract),
        digest=digest,
    )


class ContractBook:
    """All contracts, by family and time. Versions are added and never changed or taken away.

    Raises:
        ValueError: two versions of a family share a number or a moment.
    """

    def __init__(self, contracts: Iterable[CompiledContract]) -> None:
        self._by_family: dict[str, list[CompiledContract]] = {}
        self._by_name: dict[str, CompiledContract] = {}
        for contract in contracts:
            self.add(contract)

    def add(self, contract: CompiledContract) -> bool:
        """Take a version in; whether it is news.

        Raises:
            ValueError: the version is there with another content, or another version has its moment.
        """
        known = self._by_name.get(contract.name)
        if known is not None:
            if known.digest != contract.digest or not contract.digest:
                raise ValueError(f"two contracts are {contract.name}")
            return False
        versions = self._by_family.setdefault(contract.family, [])
        if any(one.effective_from == contract.effective_from for one in versions):
            raise ValueError(f"two versions of {contract.family} take effect at the same time")
        self._by_name[contract.name] = contract
        versions.append(contract)
        versions.sort(key=lambda one: one.effective_from)
        return True

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[CompiledContract]:
        return iter(self._by_name.values())

    @property
    def derives(self) -> bool:
        """Whether any contract can tell its family from spans that do not state one."""
        return any(one.applies_when is not None for one in self._by_name.values())

    @property
    def families(self) -> list[str]:
        return sorted(self._by_family)

    def named(self, name: str) -> CompiledContract | None:
        """The contract called `family@version`."""
        return self._by_name.get(name)

    def in_force(self, family: str, moment: int) -> CompiledContract | None:
        """The version of `family` in force at `moment` (ns)."""
        versions = self._by_family.get(family)
        if not versions:
            return None
        if len(versions) == 1:
            return versions[0] if versions[0].effective_from <= moment else None
        index = bisect_right([one.effective_from for one in versions], moment)
        return versions[index - 1] if index else None

    def derive(self, values: Mapping[str, Any], moment: int) -> tuple[list[str], int]:
        """The families whose `applies_when` holds for these variables at `moment`, and how many of them raised."""
        found: list[str] = []
        raised = 0
        for family in self._by_family:
            contract = self.in_force(family, moment)
            applies = contract.applies_when if contract is not None else None
            if applies is not None:
                answer = applies.holds(values)
                raised += answer is Truth.RAISED
                if answer is Truth.TRUE:
                    found.append(family)
        return sorted(found), raised

    def longest_horizon(self, default: int) -> int:
        """The largest H of all contracts, at least `default`."""
        return max([default, *(one.horizon for one in self._by_name.values())])

    def longest(self, name: str, default: int) -> int:
        """The largest window called `name` (such as `wait_window`), at least `default`."""
        return max([default, *(int(getattr(one, name)) for one in self._by_name.values())])
