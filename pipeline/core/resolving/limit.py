"""Which spans of a trace count where it has more than are kept (RULES.md 8), with no more memory for a longer trace.

```
spans that are known, by (start, span id):  | count: `spans` | wait: `spare` | forgotten ...
```
The rule this file keeps: what counts is a function of the set of spans. A span is pushed out by one that comes later
and starts earlier. As many as count are kept beside them, since a better copy of one that counts may start later and
let the next one in; of what lies beyond these nothing is kept but where that is. What log records tell is limited by
itself, as it is no span.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.core.effects import Outbox, Result
from pipeline.core.resolving.state import Head, TraceState
from schemas.span import SpanArrival, is_told

TRUNCATED = "truncated"


class SpanLimit:
    """Args:
    most: spans of a trace that count.
    """

    def __init__(self, most: int, outbox: Outbox) -> None:
        self._most, self._outbox = most, outbox

    def leaves_out(self, trace: TraceState, record: SpanArrival) -> bool:
        """Whether it lies beyond all that is kept; then it is counted, each copy of it, as none is known again."""
        beyond = trace.beyond
        out = beyond is not None and not is_told(record.span_id) and (record.start, record.span_id) > beyond
        if out:
            self._outbox.count(Result.DROPPED, TRUNCATED)
        return out

    def keep(self, trace: TraceState, new: set[bytes]) -> list[Head]:
        """Sort out what counts, and count the spans that are `new`. Returns: what does not count, or no longer."""
        out: list[Head] = []
        forgotten: set[bytes] = set()
        if trace.spare or len(trace.spans) > self._most:
            known = trace.spans | trace.spare
            before, trace.spans, trace.spare = trace.spans, {}, {}
            for told in (False, True):
                order = sorted((head.start, one) for one, head in known.items() if is_told(one) is told)
                trace.spans |= {one: known[one] for _, one in order[: self._most]}
                trace.spare |= {one: known[one] for _, one in order[self._most : 2 * self._most]}
                if not told and len(order) >= 2 * self._most:
                    trace.beyond = order[2 * self._most - 1]
            out = [head for one, head in before.items() if one not in trace.spans]
            forgotten = known.keys() - trace.spans.keys() - trace.spare.keys()
            trace.first_end = min(head.end for head in trace.spans.values())
        self._outbox.count(Result.DROPPED, TRUNCATED, len(forgotten & new if trace.used else forgotten))
        if trace.used:
            self._outbox.count(Result.USED, "span", len(new - forgotten))
        return out


def last_that_counts(spans: Mapping[bytes, Head]) -> tuple[int, bytes] | None:
    """Of the spans that count: whatever comes beyond it does not."""
    return max(((head.start, one) for one, head in spans.items() if not is_told(one)), default=None)
