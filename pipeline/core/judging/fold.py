"""A partition's partials: its verdicts folded into counts per segment and bucket (DESIGN.md 6, RULES.md 45-47).

A verdict's contribution is a function of the verdict alone. Revising it takes the old contribution out and puts the new
one in; what is sent is always the absolute count, so that sending it twice changes nothing. Old buckets are folded to
hours: from then on the partition sends that hour, whatever is revised in it, and stage 5 drops what it replaces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from pipeline.core.contracts.book import CompiledContract
from pipeline.core.judging.measures import ORDER, failures_of, measures_of, scoring_of
from pipeline.core.timeline import TimeRules
from pipeline.core.windows import folded_before, hour_of
from schemas.segment import CUBES, Cell, Dimensions, Partial, Rate, dimensions_of
from schemas.verdict import Completion, Verdict

SYSTEM: tuple[str, Dimensions] = (CUBES[0], ())
BucketKey = tuple[str, Dimensions, int]
SEALED = b"s"
"""Before the key of the state of a bucket that has sealed sessions."""


_encode = msgspec.msgpack.Encoder().encode
_Sealed = tuple[BucketKey, list[tuple[str, str, list[int]]], dict[str, int], dict[int, tuple[int, int]], dict[str, int]]
_decode_sealed = msgspec.msgpack.Decoder(_Sealed).decode


class Count(NamedTuple):
    """What one session adds to one rate: `n` in the denominator, `good` in the numerator, `age` bucket of its event."""

    rate: str
    n: int
    good: int
    age: int | None


class Contribution(msgspec.Struct, array_like=True, frozen=True):
    """What one session adds, to which segments and bucket; kept with the session so that it can be taken out again."""

    bucket: int
    segments: tuple[tuple[str, Dimensions], ...]
    stratum: str
    counts: tuple[tuple[str, int, int, int], ...]  # rate, n, good, age (-1: no event)
    states: tuple[str, ...]
    measures: tuple[int, ...] = ()  # place and millionths, in turn
    failures: tuple[str, ...] = ()


def contribution(
    verdict: Verdict, contract: CompiledContract | None, width: int, cubes: Sequence[str] = CUBES
) -> Contribution:
    """The contribution of a verdict.

    Args:
        width: of the cohort bucket, ns.
        cubes: to whose segments it contributes.
    """
    bucket = verdict.end // width * width
    if verdict.deleted or not verdict.terminal:
        return Contribution(bucket, (SYSTEM,), "", (), ("open",) if not verdict.deleted else ())
    counts = [(one.rate, one.n, one.good, -1 if one.age is None else one.age) for one in _counts(verdict, contract)]
    return Contribution(
        bucket,
        tuple(_segments(verdict, cubes)),
        verdict.contract,
        tuple(counts),
        (*_states(verdict), *scoring_of(verdict)),
        measures_of(verdict),
        tuple(failures_of(verdict)),
    )


def _segments(verdict: Verdict, cubes: Sequence[str]) -> Iterable[tuple[str, Dimensions]]:
    """Of each cube one segment for each combination of the values that the session has."""
    values = {"family": (verdict.family,), "agent": verdict.agents, "model": verdict.models, "tool": verdict.tools}
    for cube in cubes:
        names = dimensions_of(cube)
        for chosen in product(*(dict.fromkeys(filter(None, values[name])) for name in names)):
            yield cube, tuple(zip(names, chosen, strict=True))


def _counts(verdict: Verdict, contract: CompiledContract | None) -> Iterable[Count]:
    if not verdict.invalid:
        yield Count(Rate.TOOL_SUCCESS, verdict.tool_calls, verdict.tool_calls_ok, None)
        yield Count(Rate.ATTRIBUTION, 1, int(verdict.attributed), None)
    if not verdict.eligible or contract is None:
        return
    grid = contract.age_grid

    def age(moment: int) -> int:
        return bisect_left(grid, max(0, moment - verdict.end))

    complete = verdict.completion is Completion.COMPLETE
    yield Count(Rate.COMPLETION, 1, int(complete), age(verdict.completed_at) if complete else None)
    yield Count(Rate.CLAIMED_COMPLETION, 1, int(bool(verdict.claimed)), None)
    if verdict.verified is not None:
        yield Count(
            Rate.VERIFIED_COMPLETION, 1, int(verdict.verified), age(verdict.verified_at) if verdict.verified else None
        )
    failed = verdict.resolution_failed_at
    yield Count(Rate.RESOLUTION, 1, int(verdict.resolved), age(failed) if failed else None)
    if verdict.confirmed is not None:
        yield Count(Rate.CONFIRMED_RESOLUTION, 1, int(verdict.confirmed), None)
    if verdict.claimed:
        yield Count(Rate.REOPEN, 1, int(verdict.reopened), age(verdict.reopened_at) if verdict.reopened else None)
    yield Count(Rate.ESCALATION, 1, int(verdict.escalated), age(verdict.escalated_at) if verdict.escalated else None)
    abandoned = verdict.terminal_reason == "abandoned"
    lost = verdict.end if abandoned else verdict.handoff_at
    yield Count(Rate.CONTAINMENT, 1, int(not lost), age(lost) if lost else None)


def _states(verdict: Verdict) -> Iterable[str]:
    yield "judged"
    if verdict.eligible:
        yield "eligible"
        yield verdict.completion.value
        if verdict.claimed:
            yield f"claimed_{verdict.claimed}"
    yield f"ended_{verdict.terminal_reason}"
    if verdict.family_source in ("no_contract", "ambiguous_contract", "inherited"):
        yield verdict.family_source
    elif not verdict.contract:
        yield "no_contract"
    for name, holds in (("follow_up", verdict.follow_up), ("unattributed", not verdict.attributed)):
        if holds:
            yield name


class BucketCounts(msgspec.Struct):
    """The mutable counts of one (segment, bucket)."""

    cells: dict[tuple[str, str], list[int]] = {}  # (rate, stratum) -> [n, good, events by age...]
    states: dict[str, int] = {}
    means: dict[int, tuple[int, int]] = {}  # place of the measure -> (sessions, sum in millionths)
    failures: dict[str, int] = {}


class Fold:
    """All partials of one partition; `changed` are those that differ from what was sent.

    It is rebuilt from the contributions that sessions keep; those of sealed sessions, which left the state, are kept
    apart as `sealed`, already summed.
    """

    __slots__ = ("_begins", "_folded", "_rules", "buckets", "changed", "cubes", "sealed", "sealed_changed")

    def __init__(self, rules: TimeRules) -> None:
        self._rules = rules
        self.cubes: Sequence[str] = CUBES
        self._folded = 0  # what began before counts by the hour
        self.buckets: dict[BucketKey, BucketCounts] = {}
        self.sealed: dict[BucketKey, BucketCounts] = {}
        self.sealed_changed: set[BucketKey] = set()
        self.changed: set[BucketKey] = set()
        self._begins = 0  # what counted before is forgotten

    def forget(self, before: int) -> list[bytes]:
        """Forget the buckets that begin before, ns, all of them sealed. Returns: the keys of their state."""
        if before <= self._begins:
            return []
        self._begins = before
        for key in [key for key in self.buckets if key[2] < before]:
            del self.buckets[key]
            self.changed.discard(key)
        gone = [key for key in self.sealed if key[2] < before]
        for key in gone:
            del self.sealed[key]
            self.sealed_changed.discard(key)
        return [SEALED + _encode(key) for key in gone]

    def to_hours(self, watermark: int) -> list[bytes]:
        """Fold the buckets of hours that are old enough. Returns: the keys of state that is gone with them."""
        before = folded_before(watermark, self._rules)
        since, self._folded = self._folded, max(self._folded, before)
        if before <= since:
            return []
        gone = []
        for counts, news in ((self.buckets, self.changed), (self.sealed, self.sealed_changed)):
            for key in [key for key in counts if since <= key[2] < before]:
                home = self._key(*key)
                news.add(home)
                if key != home:
                    _merge(counts.setdefault(home, BucketCounts()), counts.pop(key))
                    news.discard(key)
                    if counts is self.sealed:
                        gone.append(SEALED + _encode(key))
        return gone

    def _key(self, cube: str, dimensions: Dimensions, bucket: int) -> BucketKey:
        """Of the bucket, or of its hour once that is folded."""
        return cube, dimensions, hour_of(bucket, self._rules) if bucket < self._folded else bucket

    def add(self, one: Contribution, sign: int) -> None:
        """Put a contribution in (+1) or take it out (-1)."""
        if one.bucket < self._begins:
            return
        for cube, dimensions in one.segments:
            key = self._key(cube, dimensions, one.bucket)
            self.changed.add(key)
            _count_in(self.buckets.setdefault(key, BucketCounts()), one, sign)

    def seal(self, one: Contribution) -> None:
        """Its session leaves the state; what it counts stays."""
        if one.bucket < self._begins:
            return
        for cube, dimensions in one.segments:
            key = self._key(cube, dimensions, one.bucket)
            self.sealed_changed.add(key)
            _count_in(self.sealed.setdefault(key, BucketCounts()), one, +1)

    def dump(self) -> list[tuple[bytes, bytes]]:
        """The sealed buckets that changed since the last call, as state."""
        changed, self.sealed_changed = self.sealed_changed, set()
        return [(SEALED + _encode(key), self._dump(key)) for key in changed]

    def _dump(self, key: BucketKey) -> bytes:
        counts = self.sealed[key]
        cells = [(*name, cell) for name, cell in sorted(counts.cells.items())]
        return _encode((key, cells, counts.states, counts.means, counts.failures))

    def load_sealed(self, state: bytes) -> None:
        (cube, dimensions, bucket), cells, states, means, failures = _decode_sealed(state)
        loaded = BucketCounts({(rate, stratum): cell for rate, stratum, cell in cells}, states, means, failures)
        for store in (self.sealed, self.buckets):
            _merge(store.setdefault((cube, dimensions, bucket), BucketCounts()), loaded)

    def partial(self, key: BucketKey, owner: int, version: int) -> Partial:
        """The absolute counts of one bucket; empty cells are left out, so an emptied bucket is sent as zeros."""
        cube, dimensions, bucket = key
        width = self._rules.folded_bucket if bucket < self._folded else self._rules.bucket
        counts = self.buckets[key]
        cells = tuple(
            Cell(rate, stratum, cell[0], cell[1], tuple(cell[2:]))
            for (rate, stratum), cell in sorted(counts.cells.items())
            if any(cell)
        )
        states = {name: n for name, n in sorted(counts.states.items()) if n}
        means = tuple((ORDER[place].value, n, total) for place, (n, total) in sorted(counts.means.items()) if n)
        failures = {name: n for name, n in sorted(counts.failures.items()) if n}
        return Partial(cube, dimensions, bucket, width, owner, version, cells, states, means=means, failures=failures)

    def open_sessions(self) -> int:
        return sum(counts.states.get("open", 0) for (cube, _, _), counts in self.buckets.items() if cube == SYSTEM[0])

    def forget_empty(self, key: BucketKey) -> bool:
        """Drop a bucket in which nothing counts any more, after its zeros were sent."""
        counts = self.buckets[key]
        if any(any(cell) for cell in counts.cells.values()) or any(counts.states.values()):
            return False
        del self.buckets[key]
        return True


def _add_cell(into: list[int], cell: list[int]) -> None:
    into.extend([0] * (len(cell) - len(into)))
    for index, n in enumerate(cell):
        into[index] += n


def _add_mean(into: dict[int, tuple[int, int]], place: int, n: int, total: int) -> None:
    known = into.get(place, (0, 0))
    into[place] = known[0] + n, known[1] + total


def _merge(into: BucketCounts, counts: BucketCounts) -> None:
    for name, cell in counts.cells.items():
        _add_cell(into.cells.setdefault(name, []), cell)
    for mine, theirs in ((into.states, counts.states), (into.failures, counts.failures)):
        for what, n in theirs.items():
            mine[what] = mine.get(what, 0) + n
    for place, (n, total) in counts.means.items():
        _add_mean(into.means, place, n, total)


def _count_in(counts: BucketCounts, one: Contribution, sign: int) -> None:
    for rate, n, good, age in one.counts:
        cell = [sign * n, sign * good]
        if age >= 0:
            cell += [0] * age + [sign]
        _add_cell(counts.cells.setdefault((rate, one.stratum), []), cell)
    for state in one.states:
        counts.states[state] = counts.states.get(state, 0) + sign
    for failure in one.failures:
        counts.failures[failure] = counts.failures.get(failure, 0) + sign
    for place, value in zip(one.measures[::2], one.measures[1::2], strict=True):
        _add_mean(counts.means, place, sign, sign * value)
