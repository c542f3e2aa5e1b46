"""Buckets whose counts are no longer those first published: what they were, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.core.timeline import SECOND
from pipeline.sinks.connection import Connection

MILLISECOND = SECOND // 1000


@dataclass(frozen=True, slots=True)
class Restatement:
    """One rate of one segment in one bucket; `bucket` and `as_of` in ns."""

    dimensions: dict[str, str]
    rate: str
    bucket: int
    first_numerator: int
    first_denominator: int
    numerator: int
    denominator: int
    as_of: int


def read_restatements(
    store: Connection, cube: str, rate: str | None, since: int, limit: int
) -> tuple[int, list[Restatement]]:
    """How many there are since then, and the newest of them by bucket.

    Args:
        since: buckets that begin at or after this moment, ns.
    """
    values: dict[str, Any] = {"cube": cube, "since": -(-since // MILLISECOND)}
    conditions = "cube = {cube:String} AND bucket >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
    if rate is not None:
        conditions += " AND rate = {rate:String}"
        values["rate"] = rate
    [(total,)] = store.query(f"SELECT count() FROM v_restatements WHERE {conditions}", values)
    rows = store.query(
        "SELECT dimensions, rate, toUnixTimestamp64Milli(bucket), first_numerator, first_denominator, numerator, "
        f"denominator, toUnixTimestamp64Milli(as_of) FROM v_restatements WHERE {conditions} "
        f"ORDER BY bucket DESC, toString(dimensions), rate LIMIT {limit:d}",
        values,
    )
    return int(total), [
        Restatement(
            dict(dimensions), of, int(bucket) * MILLISECOND, int(k0), int(n0), int(k), int(n), int(at) * MILLISECOND
        )
        for dimensions, of, bucket, k0, n0, k, n, at in rows
    ]
