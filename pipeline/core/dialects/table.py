"""What a dialect's table says. A table is data: keys, spellings and where in a value something stands, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from schemas.span import Control, Kind


class Inside(NamedTuple):
    """What stands at `path` in the JSON that the attribute `key` holds; with an empty path, the JSON value itself.

    Such an attribute often holds content, so it is read only where no attribute of its own says the same.
    """

    key: str
    path: tuple[str | int, ...] = ()


class Total(NamedTuple):
    """The sum of these counts in the JSON object that the attribute `key` holds; nothing, if the first is missing."""

    key: str
    names: tuple[str, ...]


Source = str | Inside | Total
Keys = tuple[Source, ...]
"""Where something is said, in order: the first that says it holds; attributes of their own come before JSON."""

Marks = tuple[tuple[str, str], ...]
"""(key, value): the span has that attribute with that value; with an empty value, the span has that attribute."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's attributes.

    Args:
        kind: says what kind of operation a span is; `kinds` holds its known values, any other is a step.
        agent: the agent at work, on any span; `own_agent`: on agent spans alone.
        named: kinds whose agent or tool is named by the span, where no attribute does: kind -> what of the span's
            name is it, the pattern's group.
        unnamed_scopes: instrumentations whose agent spans are not named by their agents, as the ends of their scopes.
        requesting_scopes: instrumentations that show a tool call that waits for an approval as a span of the tool
            without a result, as the ends of their scopes.
        tools: marks of agent spans that are tools.
        groups: marks of agent spans that are graphs, crews or workflows: they run agents and are none.
        nodes: names of a graph's nodes: with one of `agent_nodes` among them the graph is an agent, else it is a group.
        messages: JSON of what the model answered, of which only the number of `tool_call_parts` is read.
        written_calls: how the text of a part begins that is a tool call put into words.
        calls: JSON lists of the tool calls that the model asked for, of which only the length is read.
        numbered_calls: the same, flattened into attributes: a key with `{message}` and `{call}` for the numbers.
        cost: of a model's call, in dollars.
        arguments, result: of a tool call; only whether they are there is read, and the arguments of played scenarios.
        not_agents: agent names that name no agent.
        handoff_tools: matches the whole name of a tool that hands over, case-insensitive; its groups name the target.
        not_targets: what such a name says where the target stands in the arguments, which are content.
        finish_spellings: other spellings of a finish reason, lower case, what stands before the last dot cut off.
        tripped_values: what `tripped` says, lower case, when a guardrail stopped something.
        failed_marks: marks of spans that failed, whatever their status says.
        error_message: where error messages stand beside the status.
        control_types: last name of an error's or exception's type -> what it steers.
        control_messages: how an error message begins -> what it steers.
        control_in_events: exceptions that steer are told by events and messages of spans that are no errors.
        smears: an error status with a message is an error only on the span that has the exception's event, too.
    """

    kind: str
    kinds: Mapping[str, Kind]
    agent: Keys = ()
    own_agent: Keys = ()
    tool: Keys = ()
    call_id: Keys = ()
    handoff_to: Keys = ()
    provider: Keys = ()
    model: Keys = ()
    response_id: Keys = ()
    finish: Keys = ()
    messages: Keys = ()
    tool_call_parts: frozenset[str] = frozenset()
    written_calls: tuple[str, ...] = ()
    calls: Keys = ()
    numbered_calls: str = ""
    input_tokens: Keys = ()
    output_tokens: Keys = ()
    cached_tokens: Keys = ()
    cost: Keys = ()
    arguments: tuple[str, ...] = ()
    result: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    tripped: Keys = ()
    tripped_values: frozenset[str] = frozenset({"true"})
    named: Mapping[Kind, str] = field(default_factory=dict)
    unnamed_scopes: tuple[str, ...] = ()
    requesting_scopes: tuple[str, ...] = ()
    tools: Marks = ()
    groups: Marks = ()
    nodes: str = ""
    agent_nodes: frozenset[str] = frozenset()
    not_agents: frozenset[str] = frozenset()
    handoff_tools: str = ""
    not_targets: frozenset[str] = frozenset()
    finish_spellings: Mapping[str, str] = field(default_factory=dict)
    failed_marks: Marks = ()
    error_type: tuple[str, ...] = ()
    error_message: tuple[str, ...] = ()
    control_types: Mapping[str, Control] = field(default_factory=dict)
    control_messages: Mapping[str, Control] = field(default_factory=dict)
    control_in_events: bool = False
    smears: bool = False


@dataclass(frozen=True, slots=True)
class SpanNames:
    """An instrumentation whose spans say by their names alone what they are.

    Args:
        kinds: pattern of the whole name -> kind; the pattern's group names the agent or the tool.
    """

    scope: str
    kinds: tuple[tuple[str, Kind], ...]


ALIASABLE = frozenset(
    one.name
    for one in fields(Dialect)
    if one.type in ("Keys", "tuple[str, ...]") and not one.name.endswith(("_scopes", "_calls"))
)
"""Fields that configuration may give more keys."""


def with_aliases(dialect: Dialect, aliases: Mapping[str, tuple[str, ...]]) -> Dialect:
    """The dialect with more keys for some of its fields, which come before its own.

    Raises: ValueError, for a field that takes no keys.
    """
    unknown = sorted(set(aliases) - ALIASABLE)
    if unknown:
        raise ValueError(f"{unknown[0]!r} takes no attribute keys; those that do: {', '.join(sorted(ALIASABLE))}")
    more: dict[str, Any] = {name: (*keys, *getattr(dialect, name)) for name, keys in aliases.items()}
    return replace(dialect, **more)


def spoken_with(base: Dialect, own: Mapping[str, Any]) -> Dialect:
    """A dialect whose own keys come before those of `base`, which its spans may carry, too; all else is replaced."""
    merged: dict[str, Any] = {
        name: (*value, *getattr(base, name)) if name in ALIASABLE else value for name, value in own.items()
    }
    return replace(base, **merged)
