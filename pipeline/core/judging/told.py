"""What log records tell of a model's answer, put where the model's span does not say it itself.

The rule this file keeps: a function of the set of records; the span's own word holds, and what tells of a span that is
not there changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from schemas.span import Kind, Span

UNTOLD = (0, 0, 0)
_TOLD, _INFERENCE = Kind.TOLD, Kind.INFERENCE
"""Looked up here: to get a member of its enum is slow, and every span of every trace is looked at."""


def limited(spans: Sequence[Span], most: int) -> tuple[Sequence[Span], int]:
    """(what counts, how many spans are left out); what log records tell is limited by itself, as in stage 2 (rule 8).

    Args:
        spans: of one trace, by start and id.
    """
    if len(spans) <= most:
        return spans, 0
    left = {True: most, False: most}
    counted = []
    for span in spans:
        told = span.kind is _TOLD
        if left[told] > 0:
            counted.append(span)
        left[told] -= 1
    return counted, max(0, -left[False])


def with_told(spans: Sequence[Span]) -> Sequence[Span]:
    """The spans, completed, without what told of them; where nothing else is there, what is told stands for itself.

    Args:
        spans: of one trace, by start and id.
    """
    real = [span for span in spans if span.kind is not _TOLD]
    if not real or len(real) == len(spans):
        return spans
    told: dict[bytes, list[Span]] = {}
    for span in spans:
        if span.kind is _TOLD:
            told.setdefault(span.parent_id, []).append(span)
    return [
        _completed(span, told[span.span_id]) if span.kind is _INFERENCE and span.span_id in told else span
        for span in real
    ]


def _completed(span: Span, told: Sequence[Span]) -> Span:
    """Of several records, as for several choices, the first that says it holds; names and reasons add up."""
    finish = tuple(dict.fromkeys(reason for one in told for reason in one.finish))
    return replace(
        span,
        ids=span.ids or next((one.ids for one in told if one.ids), ()),
        agent=span.agent or _first(told, "agent"),
        model=span.model or _first(told, "model"),
        provider=span.provider or _first(told, "provider"),
        response_id=span.response_id or _first(told, "response_id"),
        finish=span.finish or finish,
        asked=span.asked if span.asked >= 0 else max(one.asked for one in told),
        tokens=next((one.tokens for one in (span, *told) if one.tokens != UNTOLD), UNTOLD),
        cost=next((one.cost for one in (span, *told) if one.cost), 0),
        wanted=tuple(dict.fromkeys(name for one in told for name in one.wanted)),
    )


def _first(told: Sequence[Span], field: str) -> str:
    return next((value for one in told if (value := getattr(one, field))), "")
