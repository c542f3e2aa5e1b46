"""A span that comes twice counts twice: every further arrival of a span gets an id of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pipeline.core.resolving.step import ResolveStep
from schemas.span import Span, SpanArrival

_apply = ResolveStep.apply
_decode, _encode = msgspec.msgpack.Decoder(Span).decode, msgspec.msgpack.encode
_arrivals: dict[tuple[bytes, bytes], int] = {}


def _renamed(record: Any) -> Any:
    if not isinstance(record, SpanArrival):
        return record
    place = record.trace_id, record.span_id
    _arrivals[place] = _arrivals.get(place, 0) + 1
    if _arrivals[place] == 1:
        return record
    span_id = bytes([_arrivals[place]]) + record.span_id[1:]
    body = _encode(msgspec.structs.replace(_decode(record.body), span_id=span_id))
    return msgspec.structs.replace(record, span_id=span_id, body=body)


def apply(self: ResolveStep, records: Sequence[Any]) -> None:
    _apply(self, [_renamed(record) for record in records])


ResolveStep.apply = apply  # type: ignore[method-assign]
