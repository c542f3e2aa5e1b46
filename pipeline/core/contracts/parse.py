"""From YAML text to compiled contracts; what is wrong is said with file, line, field and remedy (RULES.md 26)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from pipeline.core.contracts.book import CompiledContract, ContractBook, compile_contract
from pipeline.core.contracts.expressions import SESSION_FIELDS, Expression
from pipeline.core.timeline import TimeRules
from schemas.contract import Contract

LATE_FIELDS = frozenset({"claimed", "turns", "handoffs"})


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a contract, where, and what to do."""

    file: str
    line: int
    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.text}"


class ContractError(ValueError):
    """Contracts that cannot be used; `problems` says why."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def load(files: Iterable[tuple[str, str]], rules: TimeRules) -> ContractBook:
    """All contracts of `files`, (name, YAML text) each.

    Raises:
        ContractError: with every problem of every file.
    """
    problems: list[Problem] = []
    contracts: list[CompiledContract] = []
    for name, text in files:
        contract = _read(name, text, rules, problems)
        if contract is not None:
            contracts.append(contract)
    if problems:
        raise ContractError(problems)
    try:
        return ContractBook(contracts)
    except ValueError as error:
        raise ContractError([Problem("contracts", 0, "version", f"{error}; give each its own")]) from error


def _read(name: str, text: str, rules: TimeRules, problems: list[Problem]) -> CompiledContract | None:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(
            Problem(name, mark.line + 1 if mark else 0, "file", f"is no YAML: {getattr(error, 'problem', error)}")
        )
        return None
    if not isinstance(data, dict):
        problems.append(Problem(name, 1, "file", "must be a mapping with family, version and criteria"))
        return None
    try:
        contract = Contract.model_validate(data)
    except ValidationError as error:
        for one in error.errors():
            path = one["loc"]
            problems.append(Problem(name, _line(node, path), ".".join(map(str, path)) or "file", str(one["msg"])))
        return None
    before = len(problems)
    _check_expressions(name, contract, node, problems)
    return compile_contract(contract, rules) if len(problems) == before else None


def _check_expressions(name: str, contract: Contract, node: Any, problems: list[Problem]) -> None:
    def check(path: tuple[Any, ...], source: str | None, banned: frozenset[str], late: bool) -> Expression | None:
        if source is None:
            return None
        field = ".".join(map(str, path))
        try:
            expression = Expression(source)
        except ValueError as error:
            problems.append(Problem(name, _line(node, path), field, f"is no CEL: {error}"))
            return None
        for variable in sorted(expression.variables & banned):
            problems.append(Problem(name, _line(node, path), field, f"may not read `{variable}` here"))
        unknown = expression.reads("session") - SESSION_FIELDS
        if unknown:
            known = ", ".join(sorted(SESSION_FIELDS))
            problems.append(
                Problem(name, _line(node, path), field, f"session has no {', '.join(sorted(unknown))}; it has {known}")
            )
        if not late and expression.reads("session") & LATE_FIELDS:
            text = "session.claimed, .turns and .handoffs may be read by check, fails_when and applies alone"
            problems.append(Problem(name, _line(node, path), field, text))
        return expression

    evidence = frozenset({"evidence"})
    check(("applies_when",), contract.applies_when, evidence, late=False)
    check(("claimed_when",), contract.claimed_when, evidence, late=False)
    check(("refused_when",), contract.refused_when, evidence | {"state"}, late=False)
    check(("invalid_when",), contract.invalid_when, evidence | {"state"}, late=False)
    for index, criterion in enumerate(contract.criteria):
        others = (
            frozenset({"state", "tools", "resource", "session"}) if criterion.trust == "independent" else frozenset()
        )
        at = ("criteria", index)
        compiled = [
            check((*at, "check"), criterion.check, others, late=True),
            check((*at, "fails_when"), criterion.fails_when, others, late=True),
        ]
        check((*at, "applies"), criterion.applies, evidence, late=True)
        if criterion.deadline is None and any(one is not None and "evidence" in one.variables for one in compiled):
            text = "reads evidence, so it needs a deadline, such as `deadline: 24h`"
            problems.append(Problem(name, _line(node, (*at, "check")), ".".join(map(str, (*at, "check"))), text))


def _line(node: Any, path: tuple[Any, ...]) -> int:
    """The 1-based line where `path` stands in the composed YAML, or that of its nearest parent."""
    line: int = node.start_mark.line + 1 if node is not None else 0
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line
