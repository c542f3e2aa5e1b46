"""What stage 5 keeps of one bucket of one segment, and its rows in the store."""

from __future__ import annotations

import msgspec

from schemas.rows import TABLES
from schemas.segment import Dimensions, Partial, Rate
from schemas.wire import Row


class BucketState(msgspec.Struct, array_like=True):
    """One bucket of one segment.

    Args:
        owners: stage-4 partition -> its latest partial.
        first: rate -> (numerator, denominator) when the bucket was first published; None before.
    """

    cube: str
    dimensions: Dimensions
    bucket: int
    owners: dict[int, Partial] = {}
    first: dict[str, tuple[int, int]] | None = None


def metric_row(
    state: BucketState, rate: Rate, now: tuple[int, int], first: tuple[int, int] | None, version: int, as_of: int
) -> Row:
    """A row of `segment_metrics`.

    Args:
        now, first: numerator and denominator, now and when the bucket was first published.
    """
    values = {
        "cube": state.cube,
        "dimensions": dict(state.dimensions),
        "rate": rate.value,
        "bucket": state.bucket,
        "version": version,
        "is_deleted": 0,
        "numerator": now[0],
        "denominator": now[1],
        "first_numerator": first[0] if first is not None else None,
        "first_denominator": first[1] if first is not None else None,
        "as_of": as_of,
    }
    return Row("segment_metrics", [values[column] for column in TABLES["segment_metrics"]])
