"""The rest of a contract whose grammar is wrong somewhere, so that all that is wrong is told at once.

The rule this file keeps: what is wrong stands still for what could be meant, and nothing is said of a stand-in; the
contract that comes of it is looked at and never judges anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from schemas.contract import Contract

Path = tuple[Any, ...]
Error = Mapping[str, Any]
"""As pydantic tells it: `loc`, `type`, `msg`."""

STAND_INS: Mapping[str, Any] = {"family": "stand_in", "version": 1}
STAND_IN_FIELDS: Mapping[str, Any] = {"check": "state.stand_in == 1", "deadline": "1h"}
ROUNDS = 4
"""What one round puts right may show what it hid: ids that differ are asked for only of criteria that are well."""


def mended(data: Mapping[str, Any]) -> tuple[Contract | None, list[Error]]:
    """The contract, with stand-ins for what is wrong, and what that is; no contract where nothing can be saved."""
    errors: list[Error] = []
    now: Any = data
    for _ in range(ROUNDS):
        try:
            return Contract.model_validate(now), errors
        except ValidationError as error:
            found = [dict(one) for one in error.errors()]
            errors += found
            now = _without(now, found)
    return None, errors


def is_stand_in(path: Path, errors: Sequence[Error]) -> bool:
    """Whether what stands at `path` of the mended contract was never written."""
    return any(path[: len(one["loc"])] == tuple(one["loc"]) for one in errors if not _is_doubled(one))


def _without(data: Mapping[str, Any], errors: Sequence[Error]) -> dict[str, Any]:
    copy: dict[Any, Any] = {key: deepcopy(value) for key, value in data.items()}
    if isinstance(copy.get("criteria"), list):  # aliases may make one of several
        copy["criteria"] = [dict(one) if isinstance(one, dict) else one for one in copy["criteria"]]
    for error in errors:
        top, *below = error["loc"]
        if top != "criteria":
            copy.pop(top, None)
            copy |= {name: value for name, value in STAND_INS.items() if name == top}
        elif _is_doubled(error):
            copy["criteria"] = [one | {"id": _id(index)} for index, one in enumerate(copy["criteria"])]
        elif not below:
            copy["criteria"] = [_criterion(0)]
        elif len(below) == 1:
            copy["criteria"][below[0]] = _criterion(below[0])
        else:
            index, name, *_ = below
            held = copy["criteria"][index]
            held.pop(name, None)
            held |= {field: value for field, value in _criterion(index).items() if field == name}
    return copy


def _is_doubled(error: Error) -> bool:
    """Whether it is about all criteria together: each by itself is as it was written."""
    return tuple(error["loc"]) == ("criteria",) and error["type"] == "value_error"


def _criterion(index: int) -> dict[str, Any]:
    return {"id": _id(index), **STAND_IN_FIELDS}


def _id(index: int) -> str:
    return f"stand_in_{index}"
