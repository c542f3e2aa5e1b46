"""What a dialect's table says. A table is data: keys and spellings, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.span import Control, Kind

Keys = tuple[str, ...]
"""Attribute keys in their order: the first that is there holds."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's attributes.

    Args:
        kind: says what kind of operation a span is; `kinds` holds its known values, any other is a step.
        messages: JSON of what the model answered, of which only the number of `tool_call_parts` is read.
        not_agents: agent names that name no agent.
        handoff_tools: matches the whole name of a tool that hands over, case-insensitive; its groups name the target.
        not_targets: what such a name says where the target stands in the arguments, which are content.
        finish_spellings: other spellings of a finish reason, lower case, what stands before the last dot cut off.
        control_types: last name of an error's or exception's type -> what it steers.
        control_messages: how an error message begins -> what it steers.
    """

    kind: Keys
    kinds: Mapping[str, Kind]
    agent: Keys
    tool: Keys
    call_id: Keys
    handoff_to: Keys
    model: Keys
    response_id: Keys
    finish: Keys
    messages: Keys
    tool_call_parts: frozenset[str]
    input_tokens: Keys
    output_tokens: Keys
    cached_tokens: Keys
    tripped: Keys
    error_type: Keys
    not_agents: frozenset[str]
    handoff_tools: str
    not_targets: frozenset[str]
    finish_spellings: Mapping[str, str]
    control_types: Mapping[str, Control]
    control_messages: Mapping[str, Control]
