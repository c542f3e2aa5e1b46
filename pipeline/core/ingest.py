"""Stage 1: records of the input topics become spans and outcomes, each on its way to the partition of its key.

The rule this file keeps: every span and outcome is used or dead-lettered with a reason, alone, and counted; so is every
attribute that had to be repaired, and every log record (`ingest_logs.py`). `received` = `used` + `dead_lettered` +
`dropped`, and there are as many dead letters as the counts say. No state, no clock: a record gives the same whenever it
is read (RULES.md 1 to 4 and 32 to 34).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace
from pydantic import TypeAdapter

from pipeline.core.dialects.engine import Reader
from pipeline.core.dialects.evaluated import outcomes_of
from pipeline.core.dialects.evaluations import EVENT
from pipeline.core.dialects.otel_genai import CONVERSATION_KEYS
from pipeline.core.dialects.registry import DIALECTS
from pipeline.core.dialects.resources import RESOURCE_KEYS, kept_of
from pipeline.core.dialects.session_like import SessionLike
from pipeline.core.effects import Outbox, Result
from pipeline.core.ids import normalise_id
from pipeline.core.ingest_letters import BAD_TENANT, Place, in_words
from pipeline.core.ingest_logs import Logs
from pipeline.core.ingest_outcomes import DEFAULT_TENANT, BadOutcome, OutcomeRules, numbers, read_outcome
from pipeline.core.ingest_times import NO_TIME, span_times
from pipeline.core.otlp import wire
from pipeline.core.otlp.parsing import parse
from pipeline.core.otlp.read_json import read_json
from pipeline.core.otlp.read_protobuf import read_protobuf
from pipeline.core.otlp.reading import Batch, NotOtlp, Reading
from pipeline.core.otlp.sampling import of_a_sample
from pipeline.core.otlp.span_ids import SPAN_BYTES, TRACE_BYTES, repaired
from pipeline.core.otlp.values import Memo, read_value
from pipeline.core.timeline import TimeRules, from_datetime
from schemas.outcome import JOINT, OutcomeArrival, OutcomeKind, unfit
from schemas.span import WORK, Kind, Said, Span, SpanArrival, SpanFlag, Value
from schemas.topics import Topic, partition_of

TENANT_KEY = "trueup.tenant"
END_OF_INPUT = "trueup.end_of_input"
MAX_END_BYTES = 1_000
MEMO = 10_000
SUBJECT_DIGITS = 32
EXPECTED = "an OTLP export request of spans, protobuf or JSON,"

IDLE = tuple(kind for kind in Kind if kind not in WORK)  # a tuple: to hash a member of an enum calls Python
_END = END_OF_INPUT.encode()
_ZERO_TRACE, _ZERO_SPAN = bytes(TRACE_BYTES), bytes(SPAN_BYTES)
_encode = msgspec.msgpack.Encoder().encode
_moment = TypeAdapter(datetime)


def end_of_input(now: datetime) -> bytes:
    """A record's value that says: this partition's input is over, and event time there is `now`."""
    return msgspec.json.encode({END_OF_INPUT: now.isoformat()})


class Ingest:
    """Reads records of `otlp_spans`, `otlp_logs` and `trueup.outcomes`.

    Args:
        partitions: of the topics between the stages.
        tenant_from: a resource attribute that names the tenant where `trueup.tenant` does not.
        agent_sources, outcome_sources: see `OutcomeRules`.
        resource_keys: resource attributes to keep beside the standard ones.
        aliases: what attributes say -> keys of a user's own that say it, see `dialects/aliases.py`.
        subject_key: subjects are kept as a hash by this key; None, for looking at one's own files: as they are.
        dead_letter_payload: dead letters hold what they are about.
    """

    def __init__(
        self,
        partitions: int,
        rules: TimeRules,
        conversation_keys: tuple[str, ...] = CONVERSATION_KEYS,
        tenant_from: str | None = None,
        agent_sources: frozenset[str | tuple[str, str]] = frozenset(),
        resource_keys: frozenset[str] = frozenset(),
        aliases: Mapping[str, tuple[str, ...]] | None = None,
        outcome_sources: Mapping[OutcomeKind, frozenset[str]] | None = None,
        subject_key: bytes | None = None,
        dead_letter_payload: bool = False,
    ) -> None:
        self.outbox = Outbox()
        self._partitions = partitions
        self._rules = rules
        self._outcome_rules = OutcomeRules(rules.max_clock_skew, agent_sources, outcome_sources or {})
        self._hashed = None if subject_key is None else Memo[str](partial(subject_hash, subject_key), MEMO)
        self._with_payload = dead_letter_payload
        self._tenant_keys = (TENANT_KEY, tenant_from) if tenant_from else (TENANT_KEY,)
        self._kept = sorted(RESOURCE_KEYS | resource_keys)
        self._reader = Reader(DIALECTS, conversation_keys, aliases)
        self._resources: Memo[tuple[str, dict[str, Value]]] = Memo(self._resource, MEMO)
        self._logs = Logs(partitions, rules.max_clock_skew, self._outcome_rules, self._reader, self._resources)
        self._watermarks: dict[tuple[Topic, int], int] = {}

    @property
    def session_like(self) -> SessionLike:
        """Unknown keys, of spans without a conversation id, that look as if they held one."""
        return self._reader.session_like

    def watermark(self, topic: Topic, partition: int) -> int:
        """How far event time has come there, ns: the latest span end, for outcomes and logs the latest record."""
        return self._watermarks.get((topic, partition), 0)

    def on_record(
        self, topic: Topic, partition: int, offset: int, record_time: int, key: bytes | None, value: bytes | None
    ) -> None:
        """Read one record; what comes of it is in the outbox.

        Args:
            record_time: when the broker has it written, ns; 0 or less where that is unknown.
            key: not read: senders key as they like, if at all.
        """
        at = Place(
            self.outbox, self._partitions, topic, partition, offset, record_time, value or b"", self._with_payload
        )
        if value and len(value) <= MAX_END_BYTES and _END in value and self._ended(at):
            return
        if not value:
            self.outbox.count(Result.NOTED, "empty_record")
        elif topic is Topic.OTLP_SPANS:
            self._spans(at)
        elif topic is Topic.OUTCOMES:
            self._advance(at, record_time)
            self._outcomes(at)
        else:
            self._advance(at, record_time)
            self._logs.read(at)

    def _advance(self, at: Place, time: int) -> None:
        source = at.topic, at.partition
        if time > self._watermarks.get(source, 0):
            self._watermarks[source] = time

    def _ended(self, at: Place) -> bool:
        try:
            document = parse(at.value)
            if not (isinstance(document, dict) and list(document) == [END_OF_INPUT]):
                return False
            moment = _moment.validate_python(document[END_OF_INPUT])
        except (ValueError, RecursionError):  # pydantic's ValidationError is one
            return False
        if moment.tzinfo is None:
            return False
        self._advance(at, from_datetime(moment))
        self.outbox.count(Result.NOTED, "end_of_input")
        return True

    def _spans(self, at: Place) -> None:
        try:
            reading = self._read(at.value)
        except NotOtlp as error:
            self.outbox.count(Result.RECEIVED, "record")
            at.bury("not_otlp", f"{EXPECTED} was expected; {error}; {in_words(at.value)}")
            return
        for note, n in reading.notes.items():
            self.outbox.count(Result.NOTED, note, n)
        for trouble in reading.troubles:
            self.outbox.count(Result.RECEIVED, trouble.part)
            at.bury(trouble.reason, trouble.detail, trace_id=trouble.trace_id)
        evaluated = EVENT in at.value
        used = latest = 0
        for batch in reading.batches:
            n, end = self._batch(at, batch, evaluated)
            used += n
            latest = max(latest, end)
        self.outbox.count(Result.RECEIVED, "span", used)
        self.outbox.count(Result.USED, "span", used)
        self._advance(at, latest)

    @staticmethod
    def _read(value: bytes) -> Reading:
        """Protobuf or JSON, told apart by the content."""
        if value.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            try:
                return read_json(value)
            except (ValueError, RecursionError):
                pass  # a protobuf message may begin so, too: 0x0a is a line feed, 0x7b a length
        return read_protobuf(value)

    def _batch(self, at: Place, batch: Batch, evaluated: bool) -> tuple[int, int]:
        """Send the spans of a batch. Returns: how many, and the latest end."""
        tenant, resource = self._resources[batch.resource]
        record_time, skew = at.record_time, self._rules.max_clock_skew
        limit = record_time + skew if record_time > 0 else 2**63 - 1
        partitions, read = self._partitions, self._reader.read
        notes, scope = partial(self.outbox.count, Result.NOTED), batch.scope
        boxes: dict[bytes, Callable[[SpanArrival], None]] = {}  # by trace; looking one up costs more than filling it
        used = latest = 0
        for span in batch.spans:
            trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
            if (
                len(trace_id) != TRACE_BYTES
                or len(span_id) != SPAN_BYTES
                or (parent_id and (len(parent_id) != SPAN_BYTES or parent_id == _ZERO_SPAN))
                or trace_id == _ZERO_TRACE
                or span_id == _ZERO_SPAN
            ):
                trace_id, span_id, parent_id, complaint = repaired(trace_id, span_id, parent_id, notes)
                if complaint:
                    self.outbox.count(Result.RECEIVED, "span")
                    at.bury("bad_id", complaint, tenant, trace_id.hex() if any(trace_id) else "")
                    continue
            if JOINT in tenant:
                self.outbox.count(Result.RECEIVED, "span")
                at.bury("bad_tenant", BAD_TENANT, trace_id=trace_id.hex())
                continue
            start, end, flags = span.start_time_unix_nano, span.end_time_unix_nano, batch.flags
            if not 0 < start <= end <= limit:
                start, end, time_flags = span_times(start, end, record_time, skew)
                if time_flags == NO_TIME:
                    self.outbox.count(Result.RECEIVED, "span")
                    at.bury("bad_time", "start and end are missing or out of range", tenant, trace_id.hex())
                    continue
                flags |= time_flags
                for flag in SpanFlag(time_flags):
                    notes(str(flag.name).lower())
            if span.trace_state and of_a_sample(span.trace_state):
                flags |= SpanFlag.SAMPLED
            ids = (trace_id, span_id, parent_id)
            slim = read(span, ids, start, end, flags, tenant, resource, scope, evaluated, notes)
            said = slim.said
            if said is not None and said.subjects and self._hashed is not None:
                hashed = [self._hashed[one.encode("utf-8", "surrogatepass")] for one in said.subjects]
                said = replace(said, subjects=tuple(hashed))
                slim = replace(slim, said=said)
            if said is not None and said.evaluations:
                self._evaluations(at, slim)
            stated = _stated(said) if said is not None and said.keys else ()
            arrival = SpanArrival(
                tenant, trace_id, span_id, parent_id, start, end, record_time,
                slim.ids, slim.kind not in IDLE, stated, _encode(slim), slim.links, slim.response_id,
            )  # fmt: skip
            put = boxes.get(trace_id)
            if put is None:
                target = Topic.SPANS, partition_of(partitions, tenant, trace_id)
                self.outbox.send(*target, arrival)
                boxes[trace_id] = self.outbox.records[target].append
            else:
                put(arrival)
            used += 1
            if end > latest:
                latest = end
        return used, latest

    def _evaluations(self, at: Place, span: Span) -> None:
        for outcome in outcomes_of(span, at.record_time, self._outcome_rules):
            self.outbox.count(Result.RECEIVED, "outcome")
            target = partition_of(self._partitions, outcome.tenant, outcome.source, outcome.event_id)
            self.outbox.send(Topic.CORRELATIONS, target, OutcomeArrival(outcome, at.record_time))
            self.outbox.count(Result.USED, "outcome")

    def _resource(self, raw: bytes) -> tuple[str, dict[str, Value]]:
        """The tenant (RULES.md 2), and the attributes that are kept."""
        try:
            attributes = wire.Resource.FromString(raw).attributes
        except wire.DecodeError:
            return DEFAULT_TENANT, {}
        tenants = (normalise_id(read_value(attributes.get(key) or b"")) for key in self._tenant_keys)
        return next(filter(None, tenants), DEFAULT_TENANT), kept_of(attributes, self._kept)

    def _outcomes(self, at: Place) -> None:
        count = self.outbox.count
        try:
            document = numbers(parse(at.value))
        except (ValueError, RecursionError):
            count(Result.RECEIVED, "record")
            at.bury("bad_outcome", f"JSON, an outcome event or a list of them, was expected; {in_words(at.value)}")
            return
        for event in document if isinstance(document, list) else [document]:
            count(Result.RECEIVED, "outcome")
            tenant = event.get("tenant") if isinstance(event, dict) else None
            try:
                outcome = read_outcome(event, at.record_time, self._outcome_rules)
            except (BadOutcome, RecursionError) as error:
                at.bury("bad_outcome", str(error)[:1000], "" if unfit(tenant) else normalise_id(tenant))
                continue
            if outcome.clock_ahead:
                count(Result.NOTED, "clock_ahead")
            target = partition_of(self._partitions, outcome.tenant, outcome.source, outcome.event_id)
            self.outbox.send(Topic.CORRELATIONS, target, OutcomeArrival(outcome, at.record_time))
            count(Result.USED, "outcome")


def subject_hash(key: bytes, subject: bytes) -> str:
    """What is kept of who is served: enough to know them again, and nothing without the key."""
    return hmac.digest(key, subject, "sha256").hex()[:SUBJECT_DIGITS]


def _stated(said: Said) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, values in said.keys.items() for value in values))
