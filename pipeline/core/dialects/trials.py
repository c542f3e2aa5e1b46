"""Scenarios that spans play: their name and trial, and the arguments of the tools that they call.

The rule this file keeps: arguments are content, so they are kept only of a span that says, itself or by its resource,
that it plays a scenario: then nobody's words are in them but the scenario's own.

```
{"order_id": "A-1"}                                   as most instrumentations have them
{"args": [], "kwargs": {"order_id": "A-1"}}           Traceloop's and Langfuse's decorators
{"input_str": "...", "inputs": {"order_id": "A-1"}}   LangChain's, as Traceloop has them
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pipeline.core.contracts.arguments import argument_text
from pipeline.core.dialects.said import OURS
from pipeline.core.dialects.span_events import arguments_in
from pipeline.core.ids import normalise_id
from pipeline.core.otlp.values import read_python, read_value
from schemas.span import Said, Value

SCENARIO = f"{OURS}scenario"
TRIAL = f"{OURS}trial"
MOST_ARGUMENTS = 64

Keys = tuple[str, ...]


def with_trial(
    attributes: Mapping[str, bytes],
    resource: Mapping[str, Value],
    arguments: Keys,
    events: Iterable[bytes],
    said: Said | None,
) -> Said | None:
    """What is said, with the scenario that the span plays, if it plays one.

    Args:
        arguments: the keys under which a tool call has its arguments, of which the first that can be read holds; none
            where the span is no tool call.
        events: of the span; of a tool call they are asked where no key holds.
    """
    scenario = _stated(attributes, resource, SCENARIO)
    if not scenario:
        return said
    trial = _stated(attributes, resource, TRIAL)
    told = [attributes[key] for key in arguments if attributes.get(key)]
    if arguments and not told:
        told = arguments_in(events)
    found = next((read for raw in told if (read := _arguments(raw)) is not None), None)
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
    value = _unwrapped(value)
    names = sorted(str(name) for name in value)[:MOST_ARGUMENTS]
    return {name: argument_text(value[name]) for name in names if name in value}


def _unwrapped(held: dict[str, Any]) -> dict[str, Any]:
    """The arguments by their names; as they are, where some have none."""
    decorated, inputs = held.get("kwargs"), held.get("inputs")
    if held.keys() == {"args", "kwargs"} and not held["args"] and isinstance(decorated, dict):
        return decorated
    return inputs if "input_str" in held and isinstance(inputs, dict) else held
