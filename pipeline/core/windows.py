"""Which cohort buckets a rolling window holds: one answer for the gauges, the read API and the store.

The newest sessions are left out, since they may still be continued: a window ends max(session gap, resume window)
before the watermark. Old buckets are folded to hours, so a range of time that begins or ends among them does so at an
hour: what it holds is the same before and after they were folded.
"""

from __future__ import annotations

from pipeline.core.timeline import DAY, SECOND, TimeRules
from schemas.segment import WINDOWS


def window_bounds(watermark: int, window: int, rules: TimeRules) -> tuple[int, int]:
    """The bounds [start, end) of the buckets of a window; all in ns.

    A bucket belongs to it if it begins there. Before there was a watermark the window is empty, at 0. One that begins
    among folded buckets begins at an hour, so it may be longer by up to an hour less a bucket.

    Args:
        watermark: how far event time has come.
        window: its length, whole buckets.

    Raises:
        ValueError: the window is not made of whole buckets.
    """
    if window <= 0 or window % rules.bucket:
        raise ValueError(f"a window of {window} ns is not made of whole buckets of {rules.bucket} ns")
    end = (watermark - max(rules.session_gap, rules.resume_window)) // rules.bucket * rules.bucket
    if end <= 0:
        return (0, 0)
    return at_a_bucket(max(0, end - window), watermark, rules), at_a_bucket(end, watermark, rules)


def folded_before(watermark: int, rules: TimeRules) -> int:
    """Buckets that begin before this, ns, are folded: their hour ended `fold_after` or more before the watermark."""
    return max(0, hour_of(watermark - rules.fold_after, rules))


def hour_of(moment: int, rules: TimeRules) -> int:
    """The start of the folded bucket in which a moment lies."""
    return moment // rules.folded_bucket * rules.folded_bucket


def at_a_bucket(moment: int, watermark: int, rules: TimeRules) -> int:
    """The moment; the start of its hour where that is folded, or may be in a partition of stage 4 that is ahead.

    Args:
        moment: a bound of a range of time, at a bucket's start.
        watermark: of who asks; a partition may be ahead of it by an hour.
    """
    return hour_of(moment, rules) if moment < folded_before(watermark + rules.folded_bucket, rules) else moment


def forgotten_before(watermark: int, rules: TimeRules, longest_horizon: int) -> int:
    """Buckets that begin before this, ns, are forgotten: they are sealed, and no window at any age looks at them.

    It moves a day at a time.

    Args:
        longest_horizon: the largest H of the contracts, ns: the oldest age.
    """
    quiet = max(rules.session_gap, rules.resume_window)
    looked_at = max(WINDOWS.values()) * SECOND + longest_horizon + quiet
    return (watermark - rules.retention - looked_at - rules.bucket) // DAY * DAY
