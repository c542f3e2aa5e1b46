"""What spans change in a trace as they come: copies, the limit of a trace, and the response ids that it has by them.

The rule this file keeps: of copies the better one holds (RULES.md 1), and of spans those that start first (rule 8), in
any order of arrival.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pipeline.core.effects import Outbox, Result
from pipeline.core.resolving.asking import Asking
from pipeline.core.resolving.limit import SpanLimit
from pipeline.core.resolving.membership import Membership
from pipeline.core.resolving.state import Head, TraceState, better, head_of
from schemas.span import SpanArrival, is_told

Fresh = defaultdict[bytes, dict[bytes, Head | None]]
"""By the key of their trace, the spans that are news, each with the copy that held before."""


class Intake:
    """One partition's."""

    def __init__(self, limit: SpanLimit, membership: Membership, asking: Asking, outbox: Outbox) -> None:
        self._limit, self._membership, self._asking, self._outbox = limit, membership, asking, outbox

    def take(self, key: bytes, trace: TraceState, record: SpanArrival, fresh: Fresh, again: bool) -> None:
        """Take a span over, and note it in `fresh` if it, or this copy of it, is news.

        Args:
            again: also if it is none: a dead worker may have read it, too.
        """
        if trace.settled is not None:
            if not self._limit.leaves_out(trace, record):
                self._membership.take_late(trace, record)
            return
        home = trace.spans if record.span_id in trace.spans else trace.spare
        known = home.get(record.span_id)
        head = head_of(record)
        if known is None:
            if not self._limit.leaves_out(trace, record):
                trace.first_end = min(trace.first_end, record.end) if trace.spans else record.end
                trace.spans[record.span_id] = head
                fresh[key][record.span_id] = None
            return
        self._outbox.count(Result.DROPPED, "duplicate")
        if head.body != known.body:
            self._outbox.count(Result.NOTED, "unequal_copy")
        holds = better(known, head)
        if holds is not known:
            home[record.span_id] = holds
            trace.first_end = min(one.end for one in trace.spans.values())
        if holds is not known or again:
            fresh[key].setdefault(record.span_id, known)

    def sort_out(self, key: bytes, trace: TraceState, came: Mapping[bytes, Head | None]) -> None:
        """Of what is known now, which spans count."""
        out = self._limit.keep(trace, {one for one, before in came.items() if before is None})
        out += [before for before in came.values() if before is not None]
        if lost := {head.response_id for head in out if head.response_id}:
            self._asking.has_no_longer(key, trace, lost)
        for span_id in came:
            head = trace.spans.get(span_id)
            if head is not None and head.response_id and not is_told(span_id):
                self._asking.has(key, trace, head.response_id)
