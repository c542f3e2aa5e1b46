"""Scenarios that spans play: their name and trial, and the arguments of the tools that they call.

The rule this file keeps: arguments are content, so they are kept only of a span that says, itself or by its resource,
that it plays a scenario: then nobody's words are in them but the scenario's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pipeline.core.contracts.arguments import argument_text
from pipeline.core.dialects.said import OURS
from pipeline.core.ids import normalise_id
from pipeline.core.otlp.values import read_python, read_value
from schemas.span import Said, Value

SCENARIO = f"{OURS}scenario"
TRIAL = f"{OURS}trial"
MOST_ARGUMENTS = 64

Keys = tuple[str, ...]


def with_trial(
    attributes: Mapping[str, bytes], resource: Mapping[str, Value], arguments: Keys, said: Said | None
) -> Said | None:
    """What is said, with the scenario that the span plays, if it plays one.

    Args:
        arguments: the keys under which a tool call has its arguments; none where the span is no tool call.
    """
    scenario = _stated(attributes, resource, SCENARIO)
    if not scenario:
        return said
    trial = _stated(attributes, resource, TRIAL)
    told = next((attributes[key] for key in arguments if attributes.get(key)), None)
    found = _arguments(told) if told is not None else None
    return msgspec.structs.replace(said or Said(), scenario=scenario, trial=trial, arguments=found)


def _stated(attributes: Mapping[str, bytes], resource: Mapping[str, Value], key: str) -> str:
    raw = attributes.get(key)
    return normalise_id(read_value(raw) if raw else resource.get(key))


def _arguments(raw: bytes) -> dict[str, str] | None:
    """Each argument in one spelling; None where they cannot be read, as when they were cut short."""
    value: Any = read_python(raw)
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    names = sorted(str(name) for name in value)[:MOST_ARGUMENTS]
    return {name: argument_text(value[name]) for name in names if name in value}
