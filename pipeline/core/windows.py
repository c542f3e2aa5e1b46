"""Which cohort buckets a rolling window holds: one answer for the gauges, the read API and the store.

The newest sessions are left out, since they may still be continued: a window ends max(session gap, resume window)
before the watermark.
"""

from __future__ import annotations

from pipeline.core.timeline import DAY, SECOND, TimeRules
from schemas.segment import WINDOWS


def window_bounds(watermark: int, window: int, rules: TimeRules) -> tuple[int, int]:
    """The bounds [start, end) of the buckets of a window; all in ns.

    A bucket belongs to it if it begins there. Before there was a watermark the window is empty, at 0.

    Args:
        watermark: how far event time has come.
        window: its length, whole buckets.

    Raises:
        ValueError: the window is not made of whole buckets.
    """
    if window <= 0 or window % rules.bucket:
        raise ValueError(f"a window of {window} ns is not made of whole buckets of {rules.bucket} ns")
    end = (watermark - max(rules.session_gap, rules.resume_window)) // rules.bucket * rules.bucket
    return (0, 0) if end <= 0 else (max(0, end - window), end)


def forgotten_before(watermark: int, rules: TimeRules, longest_horizon: int) -> int:
    """Buckets that begin before this, ns, are forgotten: they are sealed, and no window at any age looks at them.

    It moves a day at a time.

    Args:
        longest_horizon: the largest H of the contracts, ns: the oldest age.
    """
    quiet = max(rules.session_gap, rules.resume_window)
    looked_at = max(WINDOWS.values()) * SECOND + longest_horizon + quiet
    return (watermark - rules.retention - looked_at - rules.bucket) // DAY * DAY
