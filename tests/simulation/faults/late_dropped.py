"""Outcomes that come later than the allowed lateness are dropped, as a stream processor would by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.core.correlating.step import CorrelateStep
from schemas.outcome import OutcomeArrival

_apply = CorrelateStep.apply


def _is_late(step: CorrelateStep, record: Any) -> bool:
    return isinstance(record, OutcomeArrival) and record.outcome.event_time < step.watermark - step.rules.lateness


def apply(self: CorrelateStep, records: Sequence[Any]) -> None:
    _apply(self, [record for record in records if not _is_late(self, record)])


CorrelateStep.apply = apply  # type: ignore[method-assign]
