"""What is settled stays as it is: a span that would change it is refused, with its reason (RULES.md 48)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.state import Conversation
from pipeline.core.timeline import TimeRules

SpanKey = tuple[bytes, bytes]
Fingerprint = tuple[int, int, frozenset[tuple[bytes, int]]]


def settles_after(book: ContractBook, rules: TimeRules) -> int:
    """How long after a bucket's end it settles, ns: the longest of gap, windows and H, plus lateness."""
    return (
        max(
            rules.session_gap,
            book.longest("resume_window", rules.resume_window),
            book.longest("wait_window", rules.wait_window),
            book.longest_horizon(rules.reopen_window),
        )
        + rules.lateness
    )


class SettledGuard:
    """Finds the fresh spans of a conversation that would join, re-cut or open a settled session."""

    def __init__(self, book: ContractBook, rules: TimeRules) -> None:
        self._after = settles_after(book, rules)
        self._width = rules.bucket

    def is_settled(self, end: int, watermark: int) -> bool:
        bucket_end = end // self._width * self._width + self._width
        return watermark > bucket_end + self._after

    def applies(self, sessions: Iterable[Session], watermark: int) -> bool:
        """Whether there is anything to refuse for: some session of the present cut is, or would be, settled."""
        return any(self.is_settled(session.end, watermark) for session in sessions)

    def refuse(
        self,
        conversation: Conversation,
        fresh: Sequence[SpanKey],
        recut: Callable[[Conversation], list[Session]],
        watermark: int,
    ) -> list[SpanKey]:
        """Take the offending spans out again and return them; traces are tried in order of arrival."""
        groups: dict[bytes, dict[bytes, tuple[int, bytes]]] = {}
        for trace_id, span_id in fresh:
            held = conversation.traces[trace_id].spans
            if span_id in held:
                groups.setdefault(trace_id, {})[span_id] = held.pop(span_id)
        known = {_fingerprint(one): one for one in recut(conversation)}
        refused: list[SpanKey] = []
        for trace_id, spans in groups.items():
            conversation.traces[trace_id].spans.update(spans)
            after = {_fingerprint(one): one for one in recut(conversation)}
            lost = [one for mark, one in known.items() if mark not in after and self.is_settled(one.end, watermark)]
            opened = [one for mark, one in after.items() if mark not in known and self.is_settled(one.end, watermark)]
            if lost or opened:
                for span_id in spans:
                    del conversation.traces[trace_id].spans[span_id]
                refused.extend((trace_id, span_id) for span_id in spans)
            else:
                known = after
        return refused


def _fingerprint(session: Session) -> Fingerprint:
    return session.start, session.end, frozenset((trace.trace_id, len(trace.spans)) for trace in session.traces)
