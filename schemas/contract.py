"""A contract: the versioned, machine-checkable success criteria of a task family, as it stands in a YAML file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")


def parse_duration(value: Any) -> Any:
    """`24h`, `30 min`, `7d`, `90s`; several parts add up (`1h 30m`).

    Raises:
        ValueError: it is no duration: a number without a unit is none.
    """
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write 30m, 24h, 7d or 1h 30m")
    text = value.strip()
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{value!r} is no duration; write 30m, 24h, 7d or 1h 30m")
    return timedelta(seconds=sum(float(amount) * _UNITS[unit] for amount, unit in parts))


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.\-]{0,63}$")]
Named = Annotated[str, Field(min_length=1, max_length=256)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Stage = Literal["", "planning", "execution", "verification", "policy", "infrastructure"]
"""Where a task broke, in the words that all contracts share; `infrastructure` is also said by the judge itself."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Criterion(_Part):
    """One check. `trust: independent` means that nothing which the agent says can satisfy it."""

    id: Name
    check: str
    weight: Positive = 1.0
    required: bool = True
    trust: Literal["any", "independent"] = "any"
    deadline: Duration | None = None
    fails_when: str | None = None
    applies: str | None = None
    stage: Stage = ""
    agent: str = ""


class SubGoal(_Part):
    """A part of goal achievement: the evaluation of that name scores it from 0 to `max`."""

    max: Positive
    weight: Positive


class EscalatedWhen(_Part):
    tools: list[Named] = []
    handoffs: list[Named] = []


class ApprovalWhen(_Part):
    tools: list[Named] = []


class ExpectedCall(_Part):
    """A tool that the scenario has called; an argument without a value may have any."""

    tool: Named
    arguments: dict[Named, Any] = {}


class ExpectedCalls(_Part):
    """What a scenario expects; an empty `scenario` stands for those that are not named."""

    scenario: str = ""
    calls: list[ExpectedCall]


class Contract(_Part):
    """The whole file. Field for field as INTERFACES documents it; an unknown field is refused, not ignored."""

    family: Name
    version: Annotated[int, Field(ge=1, lt=2**31, strict=True)]
    effective_from: datetime | None = None
    applies_when: str | None = None
    risk: str = ""
    criteria: Annotated[list[Criterion], Field(min_length=1)]
    goal_achievement: dict[Name, SubGoal] = {}
    claimed_when: str | None = None
    assume_claim: bool = True
    escalated_when: EscalatedWhen = EscalatedWhen()
    approval_when: ApprovalWhen = ApprovalWhen()
    refused_when: str | None = None
    invalid_when: str | None = None
    reopen_window: Duration | None = None
    resume_window: Duration | None = None
    wait_window: Duration | None = None
    closing_grace: Duration | None = None
    targets: dict[str, Annotated[float, Field(allow_inf_nan=False, strict=True)]] = {}
    expected_tool_calls: list[ExpectedCalls] = []

    @field_validator("effective_from")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        return value if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)

    @field_validator("criteria")
    @classmethod
    def _distinct(cls, value: list[Criterion]) -> list[Criterion]:
        ids = [criterion.id for criterion in value]
        doubled = sorted({one for one in ids if ids.count(one) > 1})
        if doubled:
            raise ValueError(f"criterion ids must differ: {', '.join(doubled)}; give each an id of its own")
        return value


class ContractRecord(msgspec.Struct, frozen=True):
    """`trueup.contracts`: one version of a family's contract, as a worker found it; the first of a name holds for ever.

    Args:
        name: `family@version`; `digest`: of what it says. file: where it was found; `text`: the YAML.
    """

    name: str
    digest: str
    file: str
    text: str
