"""Plain messages for readers outside the pipeline, and rows for ClickHouse."""

from __future__ import annotations

from typing import Any

import msgspec


class Keyed(msgspec.Struct, array_like=True, frozen=True):
    """One message of its own, with a key: a verdict, a dead letter. An empty value is a tombstone."""

    key: bytes
    value: bytes


class Row(msgspec.Struct, array_like=True, frozen=True):
    """`trueup.rows`: one row of a ClickHouse table; values in the order of `schemas.rows.TABLES[table]`.

    Times are nanoseconds since the epoch (the sink makes `DateTime64` of them); maps and arrays are plain.
    """

    table: str
    values: list[Any]


class DeadLetter(msgspec.Struct, frozen=True):
    """`trueup.dead-letters`, as JSON: what could not be used, where it lies and why.

    Args:
        reason: from a closed list, such as `not_otlp`, `bad_attribute`, `settled`, `sealed`, `no_session`.
        detail: one line for a person, without content.
        trace_id: the first trace id in it, hex, if any.
    """

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    size: int
    record_time: int
    tenant: str = ""
    trace_id: str = ""
    payload: str = ""
