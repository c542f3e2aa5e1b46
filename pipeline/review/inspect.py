"""What is understood of files of spans and log records, and what is not: their sessions, and what is lost and why.

The rule this file keeps: pure, and by the code that the pipeline runs. A file is read as stage 1 reads a record whose
time is not known, its traces are grouped by RULES.md 4 to 8, and nothing of what people or models wrote is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pipeline.core.effects import Result
from pipeline.core.ingest import Ingest
from pipeline.core.judging.oddities import MISSING_PARENTS, SEVERAL_SUBJECTS, TRUNCATED, flags_of, subjects_of
from pipeline.core.otlp.read_logs import holds_logs
from pipeline.core.timeline import TimeRules
from pipeline.review.evaluations import EvaluationSeen, evaluations_in
from pipeline.review.foreign import what_it_is
from pipeline.review.grouping import Conversation, conversations
from pipeline.review.requests import requests_in
from pipeline.review.sessions import SessionSeen, sessions_of
from schemas.outcome import MOST_KEYS, OutcomeArrival
from schemas.span import Kind, Span, SpanArrival
from schemas.topics import Topic
from schemas.wire import DeadLetter, Keyed

LOST = {
    "conflicting_ids": "a span has several conversation ids; the first of the configured keys holds",
    "missing_id": "a conversation id is blank",
    "record_time": "a span's time is missing",
    "negative_duration": "a span ends before it starts",
    "unknown_claim": "trueup.task.outcome has a value that is none of completed, escalated, refused, failed",
    "bad_key": "a key of trueup.correlation has no name, or one with a zero character",
    "keys_cut": f"a span states more than {MOST_KEYS} business keys; the first by name hold",
}
"""Notes of stage 1 that mean a loss, in words."""
NO_ADDRESS = "no_address"
LEFT_OUT = {
    "no_event": "log records that are no event of an agent",
    "message": "log records of what was said, which is content",
    "unknown_event": "events of log records that tell nothing of how a session went",
    "no_span": "log records of a model's answer that do not say which span they tell of",
    NO_ADDRESS: "evaluations that name no trace, conversation or response",
}
"""Log records that stage 1 drops, in words."""
NO_SPAN = "log_without_span"
NO_SESSION = "no_session"
TOGETHER = "; --together reads several files as one"
ODD = {
    SEVERAL_SUBJECTS: "one conversation id serves several users: if all have the same, name another conversation key",
    MISSING_PARENTS: "spans name parents that are not here: sampled out, never exported, or in another file",
    TRUNCATED: "a trace has more spans than are kept; those that start last do not count",
}
"""Flags of sessions that mean a loss, in words."""
SESSION_LIKE = "looks_like_session_id"
REMEDY = 'if it does, name the attribute: TRUEUP_ALIASES="conversation=..."'
NO_WORK = "no_work"
NOT_OTLP = "not_otlp"
NO_ID = "no_conversation_id"

_span = msgspec.msgpack.Decoder(Span).decode
_letter = msgspec.json.Decoder(DeadLetter).decode


class Lost(msgspec.Struct, frozen=True):
    """Something that is not understood, how often, and why."""

    reason: str
    count: int
    why: str


class FileSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one file holds.

    Args:
        spans: those that are understood as spans.
        log_records: all; `answers`: those that tell of a model's answer.
        evaluations: that spans or log records carry.
        unreadable: what the file is instead, where it holds no OTLP at all.
    """

    file: str
    spans: int
    sessions: list[SessionSeen]
    lost: list[Lost]
    log_records: int = 0
    answers: int = 0
    evaluations: list[EvaluationSeen] = []
    unreadable: str = ""


class Report(msgspec.Struct, frozen=True):
    files: list[FileSeen]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


def inspect(
    files: Iterable[tuple[str, bytes]],
    rules: TimeRules | None = None,
    conversation_keys: tuple[str, ...] | None = None,
    aliases: Mapping[str, tuple[str, ...]] | None = None,
    together: bool = False,
) -> Report:
    """Read files of spans or log records.

    Args:
        files: (name, content): OTLP export requests, protobuf or JSON, one or several (see `requests_in`).
        conversation_keys, aliases: as configured, see `Ingest`.
        together: all files as one; else each on its own.
    """
    options: dict[str, Any] = {"aliases": aliases}
    if conversation_keys is not None:
        options["conversation_keys"] = conversation_keys
    rules = rules or TimeRules()
    given = list(files)
    if not together:
        return Report([_inspect([one], rules, options) for one in given])
    readings = {name: _inspect([(name, content)], rules, options) for name, content in given}
    sound = [(name, content) for name, content in given if not readings[name].unreadable]
    foreign = [one for one in readings.values() if one.unreadable]
    return Report([*([_inspect(sound, rules, options)] if sound else []), *foreign])


def unreadable(file: str, why: str, requests: int = 0) -> FileSeen:
    """A file of which nothing is known but why; `requests` is how many it was taken for."""
    return FileSeen(file, 0, [], [Lost(NOT_OTLP, requests, why)] if requests else [], unreadable=why)


def _inspect(files: Sequence[tuple[str, bytes]], rules: TimeRules, options: dict[str, Any]) -> FileSeen:
    name = " + ".join(name for name, _ in files)
    requests = [request for _, content in files for request in requests_in(content)]
    ingest = Ingest(1, rules, **options)
    for number, request in enumerate(requests):
        topic = Topic.OTLP_LOGS if holds_logs(request) else Topic.OTLP_SPANS
        ingest.on_record(topic, 0, number, 0, None, request)
    counts = ingest.outbox.counts
    if counts[Result.RECEIVED, "record"] + counts[Result.NOTED, "empty_record"] == len(requests):
        return unreadable(name, what_it_is(files[0][1]), len(requests))
    records, counts = ingest.outbox.take()
    sent = [record for batch in records.values() for record in batch]
    spans = [_span(record.body) for record in sent if isinstance(record, SpanArrival)]
    letters = [_letter(record.value) for record in sent if isinstance(record, Keyed) and record.value]
    found = conversations(spans, rules.max_spans_per_trace)
    seen = [(conversation, sessions_of(conversation, rules.session_gap)) for conversation in found]
    sessions = [session for _, session in seen if session is not None]
    odd = Counter(flag for one, session in seen if session is not None for flag in _flags(one))
    idle = sum(_traces(conversation) for conversation, session in seen if session is None)
    evaluations, homeless = evaluations_in(
        (record.outcome for record in sent if isinstance(record, OutcomeArrival)), found
    )
    unattributed = sum(session.session_id is None for session in sessions)
    lost = [
        Lost(reason, counts[Result.NOTED, reason], why) for reason, why in LOST.items() if counts[Result.NOTED, reason]
    ]
    lost += [Lost(flag, odd[flag], why) for flag, why in ODD.items() if odd[flag]]
    if ingest.session_like and (unattributed or counts[Result.DROPPED, NO_ADDRESS]):
        keys = ", ".join(sorted(ingest.session_like.keys_noted()))
        lost.append(Lost(SESSION_LIKE, counts[Result.NOTED, SESSION_LIKE], f"an id may stand in {keys}: {REMEDY}"))
    lost += [Lost(reason, n, why) for (reason, why), n in sorted(_buried(letters).items())]
    lost += [
        Lost(reason, counts[Result.DROPPED, reason], why)
        for reason, why in LEFT_OUT.items()
        if counts[Result.DROPPED, reason]
    ]
    alone = _alone(spans)
    if alone:
        lost.append(Lost(NO_SPAN, alone, f"log records that tell of spans that are not here{TOGETHER}"))
    if homeless:
        lost.append(Lost(NO_SESSION, len(homeless), f"evaluations of sessions that are not here{TOGETHER}"))
    if idle:
        lost.append(Lost(NO_WORK, idle, "traces without model, tool, agent or hand-off spans open no session"))
    if unattributed:
        lost.append(Lost(NO_ID, unattributed, "no span of the run has a conversation id: each run is its own session"))
    answers = {(span.trace_id, span.span_id) for span in spans if span.kind is Kind.TOLD and span.parent_id}
    return FileSeen(
        file=name,
        spans=sum(span.kind is not Kind.TOLD for span in spans),
        sessions=sessions,
        lost=lost,
        log_records=counts[Result.RECEIVED, "log"],
        answers=len(answers),
        evaluations=evaluations,
    )


def _traces(conversation: Conversation) -> int:
    """How many have spans, and not only what log records tell."""
    return sum(any(span.kind is not Kind.TOLD for span in trace.spans) for trace in conversation.traces)


def _alone(spans: Iterable[Span]) -> int:
    """What log records tell of spans that are not among these."""
    told: set[tuple[str, bytes, bytes, bytes]] = set()
    real: set[tuple[str, bytes, bytes]] = set()
    for span in spans:
        if span.kind is not Kind.TOLD:
            real.add((span.tenant, span.trace_id, span.span_id))
        elif span.parent_id:
            told.add((span.tenant, span.trace_id, span.parent_id, span.span_id))
    return sum(one[:3] not in real for one in told)


def _flags(conversation: Conversation) -> tuple[str, ...]:
    return flags_of(conversation.traces, subjects_of(conversation.traces))


def _buried(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str]]:
    return Counter((letter.reason, letter.detail) for letter in letters)
