"""Evaluations that spans and log records carry, each with the session that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pipeline.review.grouping import Conversation
from schemas.outcome import Outcome


class EvaluationSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One evaluation.

    Args:
        session_id: None where the session that it is about has no conversation id.
        scope: what it is about: span, trace or session.
        source: `spans` or `logs`, whichever carries it.
    """

    session_id: str | None
    name: str
    score: float | None
    label: str
    scope: str
    source: str
    annotator: str = ""


def evaluations_in(
    outcomes: Iterable[Outcome], found: Sequence[Conversation]
) -> tuple[list[EvaluationSeen], list[EvaluationSeen]]:
    """(those of a session here, those of none), as often as they are carried."""
    of_trace = {
        (one.tenant, trace.trace_id): one.conversation_id or None
        for one in found
        for trace in one.traces
        if any(each.work for each in one.traces)
    }
    named = {(one.tenant, one.conversation_id) for one in found}
    held: list[EvaluationSeen] = []
    lost: list[EvaluationSeen] = []
    for outcome in outcomes:
        at = outcome.tenant, outcome.trace_id
        session = outcome.session_id or of_trace.get(at)
        known = (outcome.tenant, outcome.session_id) in named if outcome.session_id else at in of_trace
        (held if known else lost).append(_seen(outcome, session))
    return held, lost


def _seen(outcome: Outcome, session: str | None) -> EvaluationSeen:
    text = {name: str(outcome.data.get(name) or "") for name in ("name", "label", "scope", "annotator")}
    score = outcome.data.get("score")
    return EvaluationSeen(
        session, text["name"], score if isinstance(score, float) else None, text["label"], text["scope"],
        outcome.source, text["annotator"],
    )  # fmt: skip
