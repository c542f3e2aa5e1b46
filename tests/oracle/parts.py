"""Parts of an answer: what the oracle says of one thing about a session."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class OEvaluation:
    """What holds of one evaluation of a session (rule 40)."""

    name: str
    state: str
    """`scored`, `abstained` or `error`."""
    score: Fraction | None
    """None unless it is scored with a number."""
    normal: float | None
    label: str
    layer: str
    contradictions: int
    at: int


@dataclass(frozen=True)
class OFailure:
    """Why a session is incomplete: its earliest cause."""

    stage: str
    cause: str
    agent: str
    at: int


@dataclass(frozen=True)
class OTrial:
    """A session that plays a scenario beside what its contract expects; a share is None where nothing is known."""

    scenario: str
    trial: str
    expected: int
    made: int
    name_precision: float | None = None
    name_recall: float | None = None
    argument_precision: float | None = None
    argument_recall: float | None = None
    reliability: float | None = None


@dataclass(frozen=True)
class OUsage:
    """Tokens of a session, each counted once."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class OClaim:
    """Rules 15 and 16."""

    value: str | None = None
    assumed: bool = False
    time: int | None = None

    @property
    def completed(self) -> bool:
        """Claimed completed, explicitly or by assumption."""
        return self.assumed or self.value == "completed"


@dataclass(frozen=True)
class OFamily:
    """Rule 13: the name, and how it is known."""

    name: str | None
    state: str
    """`stated`, `derived`, `inherited`, `none` or `ambiguous`."""


NO_CLAIM = OClaim()
NOTHING_USED = OUsage()
