"""A span's times where its sender's clock cannot be right (RULES.md 3)."""

from __future__ import annotations

from schemas.span import SpanFlag

NO_TIME = -1
MAX_TIME = 2**63 - 1


def span_times(start: int, end: int, record_time: int, max_clock_skew: int) -> tuple[int, int, int]:
    """Start, end and what was done to them as `SpanFlag`s; `NO_TIME` instead where they cannot be known.

    Args:
        start, end: as sent, ns; 0 is missing.
        record_time: ns; 0 or less where it is unknown: then nothing is cut, and a missing start is the end.
    """
    flags = 0
    if start <= 0:
        if record_time > 0:
            start, flags = record_time, int(SpanFlag.RECORD_TIME)
        elif end > 0:
            start = end
        else:
            return 0, 0, NO_TIME
    if record_time > 0 and end > record_time + max_clock_skew:
        start, end, flags = min(start, record_time), record_time, flags | SpanFlag.RECORD_TIME | SpanFlag.CLAMPED
    if end < start:
        end = start
        if not flags & SpanFlag.RECORD_TIME:  # else it is the record's time that does not fit, not the sender's
            flags |= SpanFlag.NEGATIVE_DURATION
    if record_time > 0 and end > record_time + max_clock_skew:  # no end, and a start that is ahead
        start = end = record_time
        flags |= SpanFlag.RECORD_TIME | SpanFlag.CLAMPED
    return (start, end, int(flags)) if end <= MAX_TIME else (0, 0, NO_TIME)
