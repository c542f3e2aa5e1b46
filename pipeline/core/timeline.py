"""Event time: the watermark of a partition from those of its sources, and units of time.

A receiver's watermark is the minimum over its sources. A source that is idle leaves the minimum; when all are idle it
goes on at the pace of the wall clock, which the caller passes in. It never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from schemas.envelope import Mark

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 24 * HOUR

Source = tuple[str, str, int]


def nanoseconds(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * SECOND + span.microseconds * 1000


def from_datetime(moment: datetime) -> int:
    """Nanoseconds since the epoch of an aware datetime, exact to the microsecond."""
    return nanoseconds(moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC))


def to_datetime(ns: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1000)


def to_text(ns: int) -> str:
    """ISO 8601 with milliseconds and `Z`."""
    return to_datetime(ns).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass(frozen=True, slots=True)
class TimeRules:
    """The limits of time, in nanoseconds of event time (INTERFACES.md, defaults)."""

    session_gap: int = 30 * MINUTE
    closing_grace: int = 5 * MINUTE
    resume_window: int = 2 * HOUR
    wait_window: int = 24 * HOUR
    reopen_window: int = 72 * HOUR
    trace_timeout: int = 10 * MINUTE
    max_clock_skew: int = 5 * MINUTE
    lateness: int = 5 * MINUTE
    retention: int = 35 * DAY
    bucket: int = 5 * MINUTE
    folded_bucket: int = HOUR
    fold_after: int = 48 * HOUR
    max_spans_per_trace: int = 20_000


class Watermarks:
    """The sources of one receiving partition.

    Args:
        expected: sources that must be heard before the watermark moves at all.
    """

    __slots__ = ("_all_idle_since", "sources", "watermark")

    def __init__(self, expected: Iterable[Source] = ()) -> None:
        self.sources: dict[Source, tuple[int, bool]] = dict.fromkeys(expected, (0, False))
        self.watermark = 0
        self._all_idle_since: int | None = None

    def hear(self, marks: Iterable[Mark]) -> None:
        """Take over what a message says; a source's own watermark never goes back."""
        for mark in marks:
            source = (mark.stage, mark.topic, mark.partition)
            known, _ = self.sources.get(source, (0, False))
            self.sources[source] = (max(known, mark.watermark), mark.idle)

    def advance(self, monotonic: int) -> int:
        """The watermark now.

        Args:
            monotonic: the wall clock's reading in ns, from any origin; only differences count.
        """
        busy = [mark for mark, idle in self.sources.values() if not idle]
        if busy:
            self._all_idle_since = None
            self.watermark = max(self.watermark, min(busy))
        elif self.sources:
            known = max(mark for mark, _ in self.sources.values())
            if self._all_idle_since is None:
                self._all_idle_since = monotonic
                self.watermark = max(self.watermark, known)
            elif known:
                self.watermark += monotonic - self._all_idle_since
                self._all_idle_since = monotonic
        return self.watermark

    @property
    def idle(self) -> bool:
        return bool(self.sources) and all(idle for _, idle in self.sources.values())

    def dump(self) -> list[Mark]:
        """For the marker of a checkpoint."""
        return [Mark(*source, watermark, idle) for source, (watermark, idle) in self.sources.items()]

    def restore(self, marks: Iterable[Mark], watermark: int) -> None:
        self.hear(marks)
        self.watermark = max(self.watermark, watermark)
