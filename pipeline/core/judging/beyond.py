"""Spans above the limit of a trace, in stage 4 (RULES.md 8): rows about them are taken back, and few of them are kept.

The rule this file keeps: it depends on the spans that came before and since the last publication alone, so that no row
of a span that was pushed out stays, in any order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pipeline.core.judging.state import FreshSpan, HeldTrace
from pipeline.core.judging.views import TraceView, started_first
from schemas.span import Kind, Span, is_told

_decode_span = msgspec.msgpack.Decoder(Span).decode


def pushed_out(
    traces: Mapping[bytes, HeldTrace], fresh: Iterable[FreshSpan], views: Iterable[TraceView], most: int
) -> Iterator[Span]:
    """The spans of which a row may have been written, and that do not count now.

    That is those that counted before the fresh ones came, and the fresh ones themselves: a worker that died may have
    published when they still counted.
    """
    before: dict[bytes, dict[bytes, tuple[int, bytes] | None]] = {}
    for one in fresh:
        before.setdefault(one.trace_id, {}).setdefault(one.span_id, one.before)
    for view in views:
        if not view.truncated or view.trace_id not in before:
            continue
        came = before[view.trace_id]
        spans = {one: _decode_span(body) for one, (_, body) in traces[view.trace_id].spans.items()}
        earlier = {one: span for one, span in spans.items() if one not in came}
        earlier |= {one: _decode_span(held[1]) for one, held in came.items() if held is not None}
        counted = sorted((one for one in earlier.values() if one.kind is not Kind.TOLD), key=started_first)[:most]
        suspects = {one.span_id for one in counted} | came.keys()
        yield from (spans[one] for one in sorted(suspects & spans.keys() - view.by_id.keys()) if not is_told(one))


def forget(held: HeldTrace, most: int) -> None:
    """Keep of a trace that has many more than count those that start first: as many again, as stage 2 does."""
    if len(held.spans) <= 4 * most:
        return
    starts = {one: _decode_span(body).start for one, (_, body) in held.spans.items()}
    kept: set[bytes] = set()
    for told in (False, True):
        order = sorted((start, one) for one, start in starts.items() if is_told(one) is told)
        kept.update(one for _, one in order[: 2 * most])
    held.spans = {one: content for one, content in held.spans.items() if one in kept}
