"""Log records of the input topics: what they tell of a span goes the span's way, evaluations become outcomes.

The rule this file keeps: what a log record tells is known by its content, so that a repeat changes nothing; it is kept
apart from its span, under an id that begins with the span's, so that either may come first. Every log record is used,
dropped or dead-lettered, with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from pipeline.core.dialects.engine import Reader
from pipeline.core.dialects.evaluated import LOGS, outcome_of
from pipeline.core.dialects.log_events import (
    ANSWERS,
    EVALUATION,
    MESSAGES,
    PREFIX,
    answer_in,
    evaluation_in,
    response_of,
)
from pipeline.core.effects import Result
from pipeline.core.ingest_letters import BAD_TENANT, Place, in_words
from pipeline.core.ingest_outcomes import OutcomeRules
from pipeline.core.ingest_times import NO_TIME, span_times
from pipeline.core.otlp.read_logs import event_name, read_logs
from pipeline.core.otlp.reading import NotOtlp
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES, from_bytes
from schemas.outcome import JOINT, OutcomeArrival
from schemas.span import Kind, Scope, Span, SpanArrival, SpanFlag, Value
from schemas.topics import Topic, partition_of

EXPECTED = "an OTLP export request of log records, protobuf or JSON,"
DIGEST_BYTES = 8

_encode = msgspec.msgpack.Encoder().encode
_NO_SPAN = bytes(SPAN_BYTES)


class _Record(NamedTuple):
    """A log record with what is around it. `sent`: when it says it was written, ns; 0 where it does not."""

    log: Any
    event: str
    tenant: str
    trace_id: bytes
    span_id: bytes
    sent: int
    time: int
    flags: int


class Logs:
    """Reads records of `otlp_logs`.

    Args:
        reader: reads attributes by the dialects' tables.
        resources: encoded resource -> tenant, attributes.
    """

    def __init__(
        self,
        partitions: int,
        max_clock_skew: int,
        outcome_rules: OutcomeRules,
        reader: Reader,
        resources: Mapping[bytes, tuple[str, dict[str, Value]]],
    ) -> None:
        self._partitions, self._skew, self._outcome_rules = partitions, max_clock_skew, outcome_rules
        self._reader, self._resources = reader, resources

    def read(self, at: Place) -> None:
        """What comes of the record is in its outbox."""
        count = at.outbox.count
        try:
            reading = read_logs(at.value, PREFIX)
        except NotOtlp as error:
            count(Result.RECEIVED, "record")
            at.bury("not_otlp", f"{EXPECTED} was expected; {error}; {in_words(at.value)}")
            return
        for note, n in reading.notes.items():
            count(Result.NOTED, note, n)
        for trouble in reading.troubles:
            count(Result.RECEIVED, trouble.part)
            at.bury(trouble.reason, trouble.detail, trace_id=trouble.trace_id)
        if reading.others:
            count(Result.RECEIVED, "log", reading.others)
            count(Result.DROPPED, "no_event", reading.others)
        for batch in reading.batches:
            tenant, _ = self._resources[batch.resource]
            for log in batch.spans:
                count(Result.RECEIVED, "log")
                if JOINT in tenant:
                    at.bury("bad_tenant", BAD_TENANT)
                else:
                    self._event(at, log, tenant)

    def _event(self, at: Place, log: Any, tenant: str) -> None:
        count, event = at.outbox.count, event_name(log)
        if event in MESSAGES:
            count(Result.DROPPED, "message")
            return
        trace_id, trace_encoding = from_bytes(log.trace_id, TRACE_BYTES)
        span_id, span_encoding = from_bytes(log.span_id, SPAN_BYTES)
        if "bad" in (trace_encoding, span_encoding):
            at.bury("bad_id", "the trace or span id is no id of the right length in any known encoding", tenant)
            return
        for encoding in filter(None, (trace_encoding, span_encoding)):
            count(Result.NOTED, f"id_{encoding}")
        trace_id, span_id = (one if any(one) else b"" for one in (trace_id, span_id))
        sent = log.time_unix_nano or log.observed_time_unix_nano
        _, time, flags = span_times(sent, sent, at.record_time, self._skew)
        if flags == NO_TIME:
            at.bury("bad_time", "the time is missing or out of range", tenant, trace_id.hex())
            return
        if flags:
            count(Result.NOTED, str(SpanFlag(flags).name).lower())
        one = _Record(log, event, tenant, trace_id, span_id, sent, time, flags)
        if event == EVALUATION:
            self._evaluation(at, one)
        elif event in ANSWERS:
            self._answer(at, one)
        else:
            count(Result.DROPPED, "unknown_event")

    def _answer(self, at: Place, one: _Record) -> None:
        """What is told of a model's answer goes to the trace, as if it were a span below the model's."""
        if not one.trace_id or not one.span_id:
            at.outbox.count(Result.DROPPED, "no_span")
            return
        slim, wanted = answer_in(one.log, one.event, self._reader, one.tenant, partial(at.outbox.count, Result.NOTED))
        content = _encode((one.event, one.sent, slim, wanted))
        told = replace(
            slim,
            trace_id=one.trace_id,
            span_id=one.span_id + _digest(content),
            parent_id=one.span_id,
            start=one.time,
            end=one.time,
            kind=Kind.TOLD,
            name=one.event,
            flags=slim.flags | one.flags,
            said=None,
            asked=slim.asked if wanted is None else len(wanted),
            wanted=wanted or (),
        )
        self._send(at, told)
        at.outbox.count(Result.USED, "log")

    def _evaluation(self, at: Place, one: _Record) -> None:
        """To the trace, else to the conversation, else to whatever trace turns out to have the response."""
        evaluation = evaluation_in(one.log, one.sent)
        if evaluation is None:
            at.bury("bad_evaluation", "an evaluation without a name", one.tenant, one.trace_id.hex())
            return
        slim, _ = answer_in(one.log, one.event, self._reader, one.tenant, partial(at.outbox.count, Result.NOTED))
        response = slim.response_id or response_of(one.log)
        about = {"response_id": response} if response else {}
        if one.trace_id:
            address = {"trace_id": one.trace_id.hex()}
            scope = Scope.SPAN if one.span_id else Scope.TRACE
        elif slim.ids:
            address, scope = {"session_id": slim.ids[0]}, Scope.SESSION
        elif response:
            address, scope = {"trace_id": self._leading_to(at, one, response).hex()}, Scope.SPAN
        else:
            at.outbox.count(Result.DROPPED, "no_address")
            return
        evaluation = replace(evaluation, scope=scope)
        content = _encode((evaluation, sorted(address.items()), response))
        event_id = f"{one.trace_id.hex() or '-'}/{one.span_id.hex() or '-'}/{_digest(content).hex()}"
        outcome = outcome_of(
            evaluation, LOGS, event_id, one.tenant, address, at.record_time, self._outcome_rules, about
        )
        if not one.sent:  # the record's time is no part of what identifies it: a repeat comes in another record
            outcome = replace(outcome, event_time=one.time)
        at.outbox.count(Result.RECEIVED, "outcome")
        target = partition_of(self._partitions, outcome.tenant, outcome.source, outcome.event_id)
        at.outbox.send(Topic.CORRELATIONS, target, OutcomeArrival(outcome, at.record_time))
        at.outbox.count(Result.USED, "outcome")
        at.outbox.count(Result.USED, "log")

    def _leading_to(self, at: Place, one: _Record, response: str) -> bytes:
        """A trace of our own that has the response's id: it leads to the trace whose span has it (RULES.md 5)."""
        trace_id = sha256(_encode(("response", one.tenant, response))).digest()[:TRACE_BYTES]
        span_id = _NO_SPAN + _digest(_encode(one.sent))
        self._send(
            at,
            Span(
                one.tenant, trace_id, span_id, b"", one.time, one.time, Kind.TOLD, one.event,
                flags=one.flags, response_id=response,
            ),
        )  # fmt: skip
        return trace_id

    def _send(self, at: Place, told: Span) -> None:
        arrival = SpanArrival(
            told.tenant, told.trace_id, told.span_id, told.parent_id, told.start, told.end, at.record_time,
            told.ids, False, (), _encode(told), (), "" if told.parent_id else told.response_id,
        )  # fmt: skip
        at.outbox.send(Topic.SPANS, partition_of(self._partitions, told.tenant, told.trace_id), arrival)


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()[:DIGEST_BYTES]
