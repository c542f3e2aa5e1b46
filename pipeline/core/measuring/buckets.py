"""What stage 5 keeps of one bucket of one segment, and its rows in the store.

The rule this file keeps: of partials of one partition that cover the same time, the one with the highest version holds.
So an hour replaces the buckets that it was folded from, and nothing of an hour is counted twice while some partitions
of stage 4 have folded it and others have not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from schemas.rows import TABLES
from schemas.segment import Dimensions, Partial, Rate
from schemas.wire import Row

Counts = dict[str, tuple[int, int]]
"""rate -> (numerator, denominator)."""


class BucketState(msgspec.Struct, array_like=True):
    """One bucket of one segment.

    Args:
        bucket: its start, ns; `width` ns.
        owners: stage-4 partition -> its latest partials: one, or those of an hour that it has not folded yet.
        first: what was counted when the bucket was first published; None before.
    """

    cube: str
    dimensions: Dimensions
    bucket: int
    width: int
    owners: dict[int, list[Partial]] = {}
    first: Counts | None = None

    def partials(self) -> Iterator[Partial]:
        """Of all owners, in their order."""
        for owner in sorted(self.owners):
            yield from self.owners[owner]

    def take(self, partial: Partial) -> bool:
        """Put it in the place of those that cover its time. Returns: whether it is news."""
        known = self.owners.get(partial.owner, [])
        replaced = [one for one in known if _overlap(one, partial)]
        if any(one.version >= partial.version for one in replaced):
            return False
        kept = [one for one in known if one not in replaced]
        self.owners[partial.owner] = sorted([*kept, partial], key=lambda one: one.bucket)
        return True

    def void(self, owner: int, version: int) -> int:
        """Take out what an owner sent before `version`. Returns: how many partials that were."""
        known = self.owners.pop(owner, [])
        kept = [one for one in known if one.version >= version]
        if kept:
            self.owners[owner] = kept
        return len(known) - len(kept)


def folded(parts: Iterable[BucketState], into: BucketState, counted: Mapping[int, Counts]) -> BucketState:
    """Put parts of an hour together: what each owner sent of them, and what was counted when they were published.

    Args:
        parts: at least one.
        counted: start of a part -> what it counts now, for those that are not published yet: beside others that are,
            they count as first published so.
    """
    parts = list(parts)
    for part in parts:
        for owner, partials in part.owners.items():
            into.owners[owner] = sorted([*into.owners.get(owner, []), *partials], key=lambda one: one.bucket)
    if any(part.first is not None for part in parts):
        into.first = {}
        for part in parts:
            for rate, (good, n) in (counted[part.bucket] if part.first is None else part.first).items():
                known_good, known_n = into.first.get(rate, (0, 0))
                into.first[rate] = known_good + good, known_n + n
    return into


def _overlap(one: Partial, other: Partial) -> bool:
    return one.bucket < other.bucket + other.width and other.bucket < one.bucket + one.width


def metric_row(
    state: BucketState,
    rate: Rate,
    now: tuple[int, int],
    first: tuple[int, int] | None,
    version: int,
    as_of: int,
    deleted: bool = False,
) -> Row:
    """A row of `segment_metrics`.

    Args:
        now, first: numerator and denominator, now and when the bucket was first published.
        deleted: the bucket was folded into an hour.
    """
    values = {
        "cube": state.cube,
        "dimensions": dict(state.dimensions),
        "rate": rate.value,
        "bucket": state.bucket,
        "version": version,
        "is_deleted": int(deleted),
        "numerator": now[0],
        "denominator": now[1],
        "first_numerator": first[0] if first is not None else None,
        "first_denominator": first[1] if first is not None else None,
        "as_of": as_of,
    }
    return Row("segment_metrics", [values[column] for column in TABLES["segment_metrics"]])
