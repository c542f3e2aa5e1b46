"""What is wrong with a contract, and why two of them cannot stand beside one another (RULES.md 26, 31)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a contract, where, and what to do."""

    file: str
    line: int
    field: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.text}{f'; {self.remedy}' if self.remedy else ''}"


class Versioned(Protocol):
    """Of what version of what family a contract is, and from when on."""

    @property
    def family(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def effective_from(self) -> int: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Heading:
    """What a file says of its version, also where the rest of it cannot be used.

    Args:
        lines: where each field stands.
        effective_from: ns.
        digest: empty where not all that the file says could be understood.
    """

    file: str
    lines: Mapping[str, int]
    family: str
    version: int
    effective_from: int
    digest: str

    def problem(self, field: str, text: str, remedy: str) -> Problem:
        return Problem(self.file, self.lines.get(field, 1), field, text, remedy)


def clashes(one: Heading, other: Versioned, where: str) -> Problem | None:
    """Why a file cannot stand beside another contract: a version of a family has one content and one moment."""
    if one.family != other.family:
        return None
    name = f"{other.family}@{other.version}"
    if one.version == other.version:
        if one.digest and one.digest == other.digest:
            text = f"{name} is in {where} already, with the same content"
            return one.problem("version", text, "remove one of the two files")
        text = f"{name} has another content in {where}"
        return one.problem("version", text, "a version never changes: give this one a number of its own")
    if one.effective_from == other.effective_from:
        field = "effective_from" if "effective_from" in one.lines else "version"
        text = f"takes effect at the same moment as {name} in {where}"
        return one.problem(field, text, "give it an effective_from of its own")
    return None
