"""Every fortieth record brings a span that nobody sent, at which stage 2 breaks when it has applied what came with it.

All of the world's sessions must be exact nevertheless: this fault is no fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.core.ingest import Ingest
from pipeline.core.resolving.step import ResolveStep
from schemas.span import SpanArrival
from schemas.topics import Topic

EVERY = 40
UNBEARABLE = b"\xee" * 16

_on_record, _apply = Ingest.on_record, ResolveStep.apply
_read = 0


def on_record(self: Ingest, *given: Any) -> None:
    global _read
    _on_record(self, *given)
    _read += 1
    if _read % EVERY == 0:
        span = SpanArrival("default", UNBEARABLE, b"\xee" * 8, b"", 1, 1, 1, (), True, (), b"")
        self.outbox.send(Topic.SPANS, 0, span)


def apply(self: ResolveStep, records: Sequence[Any]) -> None:
    _apply(self, [one for one in records if one.trace_id != UNBEARABLE])
    if any(one.trace_id == UNBEARABLE for one in records):
        raise RuntimeError("a span that stage 2 cannot bear")


Ingest.on_record = on_record  # type: ignore[assignment, method-assign]
ResolveStep.apply = apply  # type: ignore[method-assign]
