"""What is understood of files of spans, and what is not: the sessions that they hold, and what is lost and why.

The rule this file keeps: pure, and by the code that the pipeline runs. A file is read as stage 1 reads a record whose
time is not known, its traces are grouped by RULES.md 4 to 8, and nothing of what people or models wrote is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pipeline.core.effects import Result
from pipeline.core.ingest import Ingest
from pipeline.core.timeline import TimeRules
from pipeline.review.grouping import conversations
from pipeline.review.requests import requests_in
from pipeline.review.sessions import SessionSeen, sessions_of
from schemas.span import Span, SpanArrival
from schemas.topics import Topic
from schemas.wire import DeadLetter, Keyed

LOST = {
    "conflicting_ids": "a span has several conversation ids; the first of the configured keys holds",
    "missing_id": "a conversation id is blank",
    "record_time": "a span's time is missing",
    "negative_duration": "a span ends before it starts",
    "unknown_claim": "trueup.task.outcome has a value that is none of completed, escalated, refused, failed",
}
"""Notes of stage 1 that mean a loss, in words."""
SESSION_LIKE = "looks_like_session_id"
REMEDY = "name the attribute among the conversation keys"
NO_WORK = "no_work"
NO_ID = "no_conversation_id"

_span = msgspec.msgpack.Decoder(Span).decode
_letter = msgspec.json.Decoder(DeadLetter).decode


class Lost(msgspec.Struct, frozen=True):
    """Something that is not understood, how often, and why."""

    reason: str
    count: int
    why: str


class FileSeen(msgspec.Struct, frozen=True):
    """What one file holds. `spans`: those that are understood as spans."""

    file: str
    spans: int
    sessions: list[SessionSeen]
    lost: list[Lost]


class Report(msgspec.Struct, frozen=True):
    files: list[FileSeen]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


def inspect(
    files: Iterable[tuple[str, bytes]],
    rules: TimeRules | None = None,
    conversation_keys: tuple[str, ...] | None = None,
    aliases: Mapping[str, tuple[str, ...]] | None = None,
) -> Report:
    """Read files of spans, each on its own.

    Args:
        files: (name, content): OTLP export requests of spans, protobuf or JSON, one or several (see `requests_in`).
        conversation_keys, aliases: as configured, see `Ingest`.
    """
    options: dict[str, Any] = {"aliases": aliases}
    if conversation_keys is not None:
        options["conversation_keys"] = conversation_keys
    rules = rules or TimeRules()
    return Report([_inspect(name, content, rules, options) for name, content in files])


def _inspect(name: str, content: bytes, rules: TimeRules, options: dict[str, Any]) -> FileSeen:
    ingest = Ingest(1, rules, **options)
    for number, request in enumerate(requests_in(content)):
        ingest.on_record(Topic.OTLP_SPANS, 0, number, 0, None, request)
    records, counts = ingest.outbox.take()
    sent = [record for batch in records.values() for record in batch]
    spans = [_span(record.body) for record in sent if isinstance(record, SpanArrival)]
    letters = [_letter(record.value) for record in sent if isinstance(record, Keyed) and record.value]
    sessions, idle = [], 0
    for conversation in conversations(spans, rules.max_spans_per_trace):
        session = sessions_of(conversation, rules.session_gap)
        if session is None:
            idle += len(conversation.traces)
        else:
            sessions.append(session)
    unattributed = sum(session.session_id is None for session in sessions)
    lost = [
        Lost(reason, counts[Result.NOTED, reason], why) for reason, why in LOST.items() if counts[Result.NOTED, reason]
    ]
    if unattributed and ingest.session_like:
        keys = ", ".join(sorted(ingest.session_like))
        lost.append(Lost(SESSION_LIKE, counts[Result.NOTED, SESSION_LIKE], f"an id may stand in {keys}: {REMEDY}"))
    lost += [Lost(reason, n, why) for (reason, why), n in sorted(_buried(letters).items())]
    if idle:
        lost.append(Lost(NO_WORK, idle, "traces without model, tool, agent or hand-off spans open no session"))
    if unattributed:
        lost.append(Lost(NO_ID, unattributed, "no span of the run has a conversation id: each run is its own session"))
    return FileSeen(name, len(spans), sessions, lost)


def _buried(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str]]:
    return Counter((letter.reason, letter.detail) for letter in letters)
