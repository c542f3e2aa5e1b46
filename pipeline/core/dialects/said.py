"""The attributes of our own, `trueup.`: what an agent states about its task.

The rule this file keeps: a value that is not understood is counted and ignored, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipeline.core.ids import normalise_id
from pipeline.core.otlp.values import flat, read_python
from schemas.outcome import JOINT, MOST_KEYS
from schemas.span import Said, Value

OURS = "trueup."
FAMILY = "trueup.task.family"
CLAIM = "trueup.task.outcome"
STATE = "trueup.state."
KEY = "trueup.correlation."
SUBJECT = "trueup.subject"
ISSUE = "trueup.issue"
CLAIMS = frozenset({"completed", "escalated", "refused", "failed"})


def read_said(
    own: Sequence[tuple[str, str]], attributes: Mapping[str, bytes], said: Said | None, notes: Callable[[str], None]
) -> Said | None:
    """What a span states; `said` where it states nothing.

    Args:
        own: keys, and the attribute of ours that each is; of several for one the last that says something holds.
        said: what is known of it already: that it is a guardrail's.
    """
    families: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    claim = ""
    state: dict[str, Value] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for key, name in own:
        value = read_python(attributes[key])
        if name.startswith(STATE):
            state[name[len(STATE) :]] = flat(value)
        elif name.startswith(KEY):
            values = _ids(value)
            if not _is_name(name[len(KEY) :]):
                notes("bad_key")
            elif values:
                keys[name[len(KEY) :]] = values
        elif name == FAMILY:
            families = _ids(value) or families
        elif name == ISSUE:
            issues = _ids(value) or issues
        elif name == SUBJECT:
            subjects = _ids(value) or subjects
        elif name == CLAIM:
            stated = value.strip().lower() if isinstance(value, str) else ""
            if stated in CLAIMS:
                claim = stated
            else:
                notes("unknown_claim")
    if sum(map(len, keys.values())) > MOST_KEYS:
        notes("keys_cut")
        keys = _first(keys)
    if not (families or claim or state or keys or issues or subjects):
        return said
    return Said(families, claim, state, keys, issues, subjects, said.tripped if said else None)


def _is_name(name: str) -> bool:
    """What outcomes cannot name is no key."""
    return bool(name) and JOINT not in name


def _first(keys: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """As many as may be, by name and value."""
    kept: dict[str, tuple[str, ...]] = {}
    for name, value in sorted((name, value) for name, values in keys.items() for value in values)[:MOST_KEYS]:
        kept[name] = (*kept.get(name, ()), value)
    return kept


def _ids(value: object) -> tuple[str, ...]:
    """Each element of an array is a value; missing ones and repetitions are left out."""
    given = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for item in given if (text := normalise_id(item))))
