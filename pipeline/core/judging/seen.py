"""The traces of conversations as the rules look at them, kept for a while: an unchanged trace is not decoded again."""

from __future__ import annotations

import msgspec

from pipeline.core.judging.state import Conversation
from pipeline.core.judging.views import TraceView, view_trace
from schemas.span import Span

MOST = 4096

_decode_span = msgspec.msgpack.Decoder(Span).decode


class SeenTraces:
    """Views by conversation and trace.

    Args:
        most_spans: of a trace (rule 8).
    """

    def __init__(self, most_spans: int) -> None:
        self._most_spans = most_spans
        self._seen: dict[tuple[bytes, bytes], TraceView] = {}

    def views(self, key: bytes, conversation: Conversation, anew: bool = False) -> list[TraceView]:
        """Of a conversation's traces; `key` is that of its state."""
        if anew or len(self._seen) > MOST:
            self._seen.clear()
        views: list[TraceView] = []
        for trace_id, held in conversation.traces.items():
            if not held.spans or held.gone:
                continue
            view = self._seen.get((key, trace_id))
            if view is None:
                spans = [_decode_span(body) for _, body in held.spans.values()]
                view = self._seen[key, trace_id] = view_trace(trace_id, spans, self._most_spans, held.lead)
            views.append(view)
        return views

    def forget(self, key: bytes, trace_id: bytes) -> None:
        """The trace has changed."""
        self._seen.pop((key, trace_id), None)

    def clear(self) -> None:
        self._seen.clear()
