"""Whether a span failed. An error status is not always a failure, and a failure has not always an error status.

The rule this file keeps: exceptions that steer a graph (a hand-off, a wait) are control, never failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.core.dialects.table import Dialect
from pipeline.core.otlp import wire
from pipeline.core.otlp.values import read_text
from schemas.span import Control

Attributes = Mapping[str, bytes]

CODE_ERROR = 2
FINE = frozenset({b"", b"\x18\x00", b"\x18\x01"})
"""Status messages on the wire: none at all; unset and OK, without a text."""
_NONE = Control.NONE


def failure_of(table: Dialect, status: bytes, attributes: Attributes, events: Any) -> tuple[bool, Control]:
    """Whether a span failed: an error status that is no control flow (DIALECTS.md 6.1) and its own (6.6)."""
    read = wire.Status.FromString(status)
    if read.code != CODE_ERROR:
        return False, _NONE
    control = _control(table, _text_of(attributes, table.error_type), read.message.decode("utf-8", "replace"))
    if control is _NONE:
        control = _control_in(table, events)
    if table.smears and read.message and not any(_is_exception(encoded) for encoded in events):
        return False, control
    return control is _NONE, control


def _control_in(table: Dialect, events: Any) -> Control:
    """What the exceptions among a span's events steer."""
    for encoded in events:
        told = wire.Event.FromString(encoded).attributes.get
        kind, message = told("exception.type") or b"", told("exception.message") or b""
        control = _control(table, read_text(kind), read_text(message))
        if control is not _NONE:
            return control
    return _NONE


def _control(table: Dialect, error_type: str, message: str) -> Control:
    control = table.control_types.get(error_type.rpartition(".")[2], _NONE)
    if control is _NONE:
        for prefix, meaning in table.control_messages.items():
            if message.startswith(prefix):
                return meaning
    return control


def steering_of(table: Dialect, attributes: Attributes, events: Any) -> Control:
    """What a span steers that is no error."""
    message = _text_of(attributes, table.error_message)
    control = _control(table, "", message) if message else _NONE
    return control if control is not _NONE else _control_in(table, events)


def marked_failure(
    table: Dialect, marks: tuple[tuple[str, bytes], ...], attributes: Attributes, events: Any
) -> tuple[bool, Control]:
    """Whether attributes say that a span failed whose status does not, unless it steers."""
    if not any(attributes[key] == value for key, value in marks):
        return False, _NONE
    control = _control(table, _text_of(attributes, table.error_type), _text_of(attributes, table.error_message))
    if control is _NONE:
        control = _control_in(table, events)
    return control is _NONE, control


def _text_of(attributes: Attributes, keys: tuple[str, ...]) -> str:
    """The first of these attributes that is there and not null, as text."""
    for key in keys:
        if key in attributes:
            raw = attributes[key]
            if raw:
                return read_text(raw)
    return ""


def _is_exception(encoded: bytes) -> bool:
    attributes = wire.Event.FromString(encoded).attributes
    return "exception.type" in attributes or "exception.message" in attributes
