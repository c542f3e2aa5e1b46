"""Evaluations that spans carry: events `gen_ai.evaluation.result`, and OpenInference's flattened lists.

The rule this file keeps: name, score and label are kept, the explanation is not: it is content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.core.otlp import wire
from pipeline.core.otlp.values import read_text, read_value
from schemas.span import Evaluation, Scope

PARTS = ("score", "label", "annotator_kind")
EVENT_PARTS = {"score": "gen_ai.evaluation.score.value", "label": "gen_ai.evaluation.score.label"}
LATEST = 2**63 - 1
EVENT = b"gen_ai.evaluation.result"
MAX_TEXT = 256
FLATTENED = re.compile(r"(session\.annotations|trace\.evaluations|evaluations)\.\d+\.(annotation|evaluation)\.name")
SCOPES = {
    "session.annotations": Scope.SESSION,
    "trace.evaluations": Scope.TRACE,
    "evaluations": Scope.SPAN,
}


def evaluation_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys under which OpenInference names evaluations, in order."""
    return tuple(sorted(key for key in keys if FLATTENED.fullmatch(key)))


def flattened(attributes: Mapping[str, bytes], keys: Iterable[str], time: int) -> list[Evaluation]:
    """OpenInference's evaluations and annotations of a span, of its trace and of its session."""
    found = []
    for key in keys:
        match = FLATTENED.fullmatch(key)
        name = _text(attributes[key])
        if match is not None and name:
            stem = key.removesuffix("name")
            told = {part: attributes[stem + part] for part in PARTS if stem + part in attributes}
            found.append(_evaluation(name, told, SCOPES[match[1]], time))
    return found


def in_events(events: Iterable[bytes], end: int) -> list[Evaluation]:
    """The evaluations among a span's events; one without a time that can be has the span's end."""
    found = []
    for encoded in events:
        if EVENT not in encoded:
            continue
        event = wire.Event.FromString(encoded)
        time = event.time_unix_nano
        one = evaluation_of(event.attributes, time if 0 < time <= LATEST else end) if event.name == EVENT else None
        if one is not None:
            found.append(one)
    return found


def evaluation_of(told: Mapping[str, bytes], time: int) -> Evaluation | None:
    """What the attributes of such an event say, on a span or in a log record; None where they name nothing."""
    name = _text(told.get("gen_ai.evaluation.name") or b"")
    held = {part: told[key] for part, key in EVENT_PARTS.items() if key in told}
    return _evaluation(name, held, Scope.SPAN, time) if name else None


def _evaluation(name: str, told: Mapping[str, bytes], scope: Scope, time: int) -> Evaluation:
    return Evaluation(
        name=name,
        score=_number(read_value(told.get("score") or b"")),
        label=_text(told.get("label") or b""),
        annotator=_text(told.get("annotator_kind") or b"").lower(),
        scope=scope,
        time=time,
    )


def _text(raw: bytes) -> str:
    return read_text(raw).strip()[:MAX_TEXT]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return number if abs(number) < float("inf") else None
