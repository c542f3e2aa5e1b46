"""A user's own attribute names, by what they say: a field of the dialects' tables, or an attribute of ours.

The rule this file keeps: what cannot be meant is refused, with what can; an alias never hides an attribute of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.core.dialects.otel_genai import CONVENTIONS, OTEL_GENAI
from pipeline.core.dialects.said import CLAIM, FAMILY, ISSUE, KEY, OURS, STATE, SUBJECT
from pipeline.core.dialects.table import ALIASABLE, Dialect, spoken_with
from schemas.span import Kind

CONVERSATION = "conversation"
KIND = "kind"
WHOLE = (FAMILY, CLAIM, SUBJECT, ISSUE)
NAMED = (STATE, KEY)
"""Attributes of ours that go on with a name."""

Given = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Aliases:
    """Keys of attributes, those that hold first.

    Args:
        conversation: where conversation ids are, before the configured keys.
        kinds: dialects that are asked last what a span is.
        fields: of the dialects' tables, before those of every dialect.
        ours: key -> the attribute of ours that it stands for.
    """

    conversation: tuple[str, ...] = ()
    kinds: tuple[Dialect, ...] = ()
    fields: Given = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)


def read_aliases(given: Given) -> Aliases:
    """
    Raises:
        ValueError: with what is wrong and what is allowed.
    """
    ours: dict[str, str] = {}
    for meaning, keys in given.items():
        if not _is_known(meaning):
            raise ValueError(f"{meaning!r} takes no attribute keys; those that do: {', '.join(_known())}")
        if not keys:
            raise ValueError(f"{meaning!r} is given no attribute keys")
        for key in keys:
            if not key.strip():
                raise ValueError(f"{meaning!r} is given a blank attribute key")
            if key.startswith(OURS):
                raise ValueError(f"{key!r} is an attribute of ours already; it cannot stand for {meaning!r}")
            if meaning.startswith(OURS) and ours.setdefault(key, meaning) != meaning:
                raise ValueError(f"{key!r} cannot stand for both {ours[key]!r} and {meaning!r}")
    return Aliases(
        conversation=given.get(CONVERSATION, ()),
        kinds=tuple(_kinds_by(key) for key in given.get(KIND, ())),
        fields={meaning: keys for meaning, keys in given.items() if meaning in ALIASABLE},
        ours=ours,
    )


def _kinds_by(key: str) -> Dialect:
    """A dialect whose spans say by that attribute what they are: in our words or in those of the conventions."""
    words = {kind.value: kind for kind in Kind if kind is not Kind.TOLD}
    return spoken_with(OTEL_GENAI, {"kind": key, "kinds": {**CONVENTIONS, **words}})


def _is_known(meaning: str) -> bool:
    named = any(meaning.startswith(start) and meaning != start for start in NAMED)
    return named or meaning in (CONVERSATION, KIND, *WHOLE) or meaning in ALIASABLE


def _known() -> list[str]:
    return [*sorted({CONVERSATION, KIND} | ALIASABLE), *WHOLE, *(f"{start}<name>" for start in NAMED)]
