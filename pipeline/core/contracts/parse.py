"""From YAML text to compiled contracts; what is wrong is said with file, line, field and remedy (RULES.md 26)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import yaml

from pipeline.core.contracts.book import CompiledContract, ContractBook, compile_contract
from pipeline.core.contracts.checks import complaints
from pipeline.core.contracts.mending import Error, is_stand_in, mended
from pipeline.core.contracts.problems import Heading, Problem, clashes
from pipeline.core.timeline import TimeRules, from_datetime
from schemas.contract import Contract

MAX_BYTES, MAX_NODES = 262_144, 20_000
"""Of a file; of what it says once its aliases are written out."""


class ContractError(ValueError):
    """Contracts that cannot be used; `problems` says why, `heading` of which version a single one would be."""

    def __init__(self, problems: Sequence[Problem], heading: Heading | None = None) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems, self.heading = list(problems), heading


@dataclass(frozen=True, slots=True)
class ContractFile:
    """A contract as it stands in a file."""

    text: str
    contract: CompiledContract
    heading: Heading

    @property
    def file(self) -> str:
        return self.heading.file


def load(files: Iterable[tuple[str, str]], rules: TimeRules) -> ContractBook:
    """All contracts of `files`, (name, YAML text) each.

    Raises:
        ContractError: with every problem of every file.
    """
    found, problems = read_all(files, rules)
    if problems:
        raise ContractError(problems)
    return ContractBook(one.contract for one in found)


def read_all(files: Iterable[tuple[str, str]], rules: TimeRules) -> tuple[list[ContractFile], list[Problem]]:
    """The files that can be used, each by itself and beside the others, and what is wrong with the rest.

    A file that cannot be used takes nothing from one that can: where both claim a version, the first is the one that
    clashes.
    """
    found: list[ContractFile] = []
    wrong: dict[str, list[Problem]] = {}
    unusable: list[Heading] = []
    for name, text in files:
        wrong[name] = []
        try:
            one = read(name, text, rules)
        except ContractError as error:
            wrong[name] = error.problems
            unusable += [error.heading] if error.heading else []
            continue
        clash = next((said for other in found if (said := clashes(one.heading, other.heading, other.file))), None)
        if clash is None:
            found.append(one)
        else:
            wrong[name].append(clash)
    beside = [one.heading for one in found]
    for heading in unusable:
        clash = next((said for other in beside if (said := clashes(heading, other, other.file))), None)
        wrong[heading.file] += [clash] if clash else []
        beside.append(heading)
    return found, [problem for problems in wrong.values() for problem in sorted(problems, key=lambda one: one.line)]


def read(name: str, text: str, rules: TimeRules) -> ContractFile:
    """One contract.

    Raises:
        ContractError: with every problem of the file.
    """
    node, data, problems = _yaml(name, text)
    contract, errors = mended(data)
    problems += [_grammar(name, node, one) for one in errors]
    heading = None
    if contract is not None:
        problems += [
            Problem(name, line_of(node, at), _dotted(at), said, do)
            for at, said, do in complaints(contract, rules)
            if not is_stand_in(at, errors)
        ]
        heading = _heading(name, node, contract, errors)
    if problems or contract is None or heading is None:
        raise ContractError(sorted(problems, key=lambda one: one.line), heading)
    return ContractFile(text, compile_contract(contract, rules, heading.digest), heading)


def _heading(name: str, node: Any, contract: Contract, errors: Sequence[Error]) -> Heading | None:
    """None where it is not known which version the file is meant to be."""
    if any(is_stand_in((field,), errors) for field in ("family", "version", "effective_from")):
        return None
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    effective_from = from_datetime(contract.effective_from) if contract.effective_from else 0
    digest = "" if errors else digest_of(contract)
    return Heading(name, lines, contract.family, contract.version, effective_from, digest)


def digest_of(contract: Contract) -> str:
    """What a contract says, as a hash: how its file spells it, comments and defaults written out do not matter."""
    said = contract.model_dump(mode="json", exclude_defaults=True)
    return sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _yaml(name: str, text: str) -> tuple[Any, dict[str, Any], list[Problem]]:
    """The composed YAML, what it says, and what it says twice.

    Raises:
        ContractError: it is no YAML, or no mapping.
    """

    def refuse(line: int, said: str, remedy: str) -> ContractError:
        return ContractError([Problem(name, line, "file", said, remedy)])

    if len(text) > MAX_BYTES:
        raise refuse(1, f"is larger than {MAX_BYTES} characters", "one file holds one version of one family")
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        if len(nodes) > 1:
            raise refuse(nodes[1].start_mark.line, "holds several documents", "write one contract to a file")
        if not nodes or not isinstance(nodes[0], yaml.MappingNode):
            raise refuse(1, "must be a mapping with family, version and criteria", "see docs/contracts.md")
        if _count(nodes[0], set()) > MAX_NODES:
            raise refuse(1, "becomes too large once its aliases are written out", "write it without aliases")
        doubled = [
            Problem(name, key.start_mark.line + 1, str(key.value), f"says `{key.value}` twice", "keep one of the two")
            for key in _doubled(nodes[0])
        ]
        return nodes[0], yaml.safe_load(text), doubled
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = f"is no YAML: {getattr(error, 'problem', None) or type(error).__name__}"
        raise refuse(mark.line + 1 if mark else 1, said, "mind indentation, colons and quotes") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ContractError):
            raise
        raise refuse(1, f"cannot be read: {error}", "mind dates and nesting") from error


def _count(node: Any, above: set[int]) -> int:
    """Nodes of a tree with aliases written out; a circle, or more than are allowed, counts as too many."""
    if id(node) in above:
        return MAX_NODES + 1
    parts = _parts(node)
    total = 1
    for part in parts:
        total += _count(part, above | {id(node)})
        if total > MAX_NODES:
            break
    return total


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _doubled(node: Any) -> Iterator[Any]:
    """Keys that a mapping has twice, of which YAML would silently take the last."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                yield key
            seen.add(str(key.value))
    for part in _parts(node):
        yield from _doubled(part)


def _grammar(name: str, node: Any, error: Mapping[str, Any]) -> Problem:
    at, kind = tuple(error["loc"]), error["type"]
    text = str(error["msg"]).removeprefix("Value error, ")
    text, _, remedy = text.partition("; ")
    if kind == "extra_forbidden":
        text, remedy = "there is no such field", f"there are {', '.join(_fields_beside(at))}"
    elif kind == "missing":
        text, remedy = "is missing", "give it"
    elif kind == "string_type":
        remedy = "put it in quotes"
    return Problem(name, line_of(node, at), _dotted(at), text[:1].lower() + text[1:], remedy or "see docs/contracts.md")


def _fields_beside(at: tuple[Any, ...]) -> list[str]:
    """The fields of the part of a contract in which `at` stands."""
    model: Any = Contract
    for part in at[:-1]:
        if isinstance(part, str) and hasattr(model, "model_fields") and part in model.model_fields:
            model = model.model_fields[part].annotation
        while getattr(model, "__args__", None):
            model = model.__args__[-1]
    return sorted(getattr(model, "model_fields", Contract.model_fields))


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)) or "file"


def line_of(node: Any, path: tuple[Any, ...]) -> int:
    """The 1-based line where `path` stands in the composed YAML, or that of its nearest parent."""
    line: int = node.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pairs = reversed(node.value)  # of what is said twice the last holds
            found = next(((key, value) for key, value in pairs if key.value == str(part)), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line
