"""The slim span record, and what stages 1 to 4 say to each other about spans and traces.

Ids are raw bytes (16 and 8 bytes); times are integer nanoseconds since the epoch, after the rules for bad clocks.
"""

from __future__ import annotations

from enum import IntFlag, StrEnum

import msgspec

Scalar = str | int | float | bool
Value = Scalar | list[Scalar] | None


class Kind(StrEnum):
    AGENT = "agent"
    TOOL = "tool"
    HANDOFF = "handoff"
    INFERENCE = "inference"
    EMBEDDING = "embedding"
    GUARDRAIL = "guardrail"
    STEP = "step"
    TOLD = "told"  # no span: what a log record tells of the span that is its parent


WORK = frozenset({Kind.AGENT, Kind.TOOL, Kind.HANDOFF, Kind.INFERENCE, Kind.EMBEDDING})


SPAN_ID_BYTES = 8
DOLLAR = 1_000_000_000
"""Costs are whole billionths of one, so that sums do not depend on the order of adding."""


def is_told(span_id: bytes) -> bool:
    """Whether it is no span's id but a log record's, which begins with that of the span that it tells of."""
    return len(span_id) > SPAN_ID_BYTES


class Control(StrEnum):
    """Exceptions that steer a graph: an error status that is no failure."""

    NONE = ""
    INTERRUPT = "interrupt"
    HANDOFF = "handoff"


class SpanFlag(IntFlag):
    NONE = 0
    NEGATIVE_DURATION = 1
    RECORD_TIME = 2  # start or end had to be taken from, or cut to, the record's time
    BAD_UTF8 = 4
    CUT = 8
    CLAMPED = 16  # the end was further ahead of the record's time than any clock may be
    SAMPLED = 32  # its trace was kept, and others like it were not


class Scope(StrEnum):
    """What an evaluation that a span carries is about."""

    SPAN = "span"
    TRACE = "trace"
    SESSION = "session"


class Evaluation(msgspec.Struct, array_like=True, frozen=True):
    """An evaluation that a span carries: an agent's own word, whoever is said to have given it.

    Args:
        annotator: `human`, `llm` or `code`, where it is told.
        time: ns.
    """

    name: str
    score: float | None
    label: str
    annotator: str
    scope: Scope
    time: int


class Said(msgspec.Struct, array_like=True, frozen=True):
    """What few spans carry: attributes of our own, guardrails, who is served, evaluations.

    Args:
        families: stated task families, the first counts.
        claim: `trueup.task.outcome` as stated, lower case.
        state: `trueup.state.<name>`, what the agent reports.
        keys: `trueup.correlation.<name>` -> values.
        subjects: whom it serves, hashed; issues, keys and subjects are sets, each element of an array is a value.
        tripped: None where the span is no guardrail check.
        scenario, trial: what is played, as `trueup.scenario` and `trueup.trial` state it, on the span or its resource.
        arguments: of a tool call that plays a scenario, each value in one spelling; None where they are not kept.
    """

    families: tuple[str, ...] = ()
    claim: str = ""
    state: dict[str, Value] = {}
    keys: dict[str, tuple[str, ...]] = {}
    issues: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    tripped: bool | None = None
    evaluations: tuple[Evaluation, ...] = ()
    scenario: str = ""
    trial: str = ""
    arguments: dict[str, str] | None = None


class Span(msgspec.Struct, array_like=True, frozen=True):
    """One span, normalised.

    Args:
        ids: conversation ids found on it, in the order of the configured keys, normalised; empty when there is none.
        attributes: how many attributes the span had (which of two unequal copies is the fuller one).
        asked: tool calls that a model span's output asks for; -1 where it does not say.
        tokens: input, output, cached input.
        resource: the few resource attributes that contracts and segments read.
        links: trace ids that the span links to.
        group: the graph, crew or workflow that a step is, where its instrumentation calls it an agent.
        requested: a tool call that was asked for and not made: it waits for an approval.
        provider: who serves the model, lower case, without the kind of the service.
        wanted: tools that a model's answer asked for, where log records tell their names.
        cost: of a model's call, in billionths of a dollar; 0 where it is not told.
    """

    tenant: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    start: int
    end: int
    kind: Kind
    name: str
    failed: bool = False
    control: Control = Control.NONE
    flags: int = 0
    attributes: int = 0
    ids: tuple[str, ...] = ()
    agent: str = ""
    tool: str = ""
    call_id: str = ""
    handoff_to: str = ""
    model: str = ""
    response_id: str = ""
    finish: tuple[str, ...] = ()
    asked: int = -1
    tokens: tuple[int, int, int] = (0, 0, 0)
    resource: dict[str, Value] = {}
    links: tuple[bytes, ...] = ()
    said: Said | None = None
    group: str = ""
    requested: bool = False
    provider: str = ""
    wanted: tuple[str, ...] = ()
    cost: int = 0

    @property
    def is_work(self) -> bool:
        return self.kind in WORK


class SpanArrival(msgspec.Struct, array_like=True, frozen=True, tag="s"):
    """`trueup.spans`: a span on its way to its trace. Stage 2 reads the head and passes the body on unread.

    Args:
        record_time: when the Kafka record that brought it was written, ns.
        stated: the correlation keys that it states: (name, value).
        body: the encoded `Span`.
    """

    tenant: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    start: int
    end: int
    record_time: int
    ids: tuple[str, ...]
    work: bool
    stated: tuple[tuple[str, str], ...]
    body: bytes
    links: tuple[bytes, ...] = ()
    response_id: str = ""


class Asked(msgspec.Struct, array_like=True, frozen=True, tag="q"):
    """`trueup.spans`: a trace without an id asks where another trace leads, or who shares a response id.

    Args:
        trace_id: who asks.
        at: when its trace started, ns.
        about: the trace asked about; empty when it asks for `response_id`.
    """

    tenant: str
    trace_id: bytes
    at: int
    about: bytes = b""
    response_id: str = ""


class Answer(msgspec.Struct, array_like=True, frozen=True, tag="w"):
    """`trueup.spans`: where a trace leads now, told to one that asked; told again whenever it changes.

    Args:
        trace_id: who asked.
        about, response_id: what was asked, as in `Asked`.
        target: the trace that the answer is about; `start` its start, `own_id` whether it states a conversation itself.
        stamp: of the answers by one target the highest holds.
        conversation, end, length: where the chain from it ends; how many steps on.
        earliest: (start, trace id) of the earliest trace on that way.
        erased: where it leads to something erased: until when that must not come again, ns.
        withdrawn: it has the response id no longer.
    """

    tenant: str
    trace_id: bytes
    about: bytes
    response_id: str
    target: bytes
    stamp: int
    start: int
    own_id: bool
    conversation: str
    end: bytes
    length: int
    earliest: tuple[int, bytes]
    erased: int = 0
    withdrawn: bool = False


class TraceSpans(msgspec.Struct, array_like=True, frozen=True, tag="t"):
    """`trueup.session-events`: spans of a trace that belongs to this conversation as of `stamp`.

    Of one trace the highest stamp heard says whether the conversation holds it, and which trace it leads to (`lead`,
    empty for itself); spans of equal or lower stamps add up.
    """

    tenant: str
    conversation: str
    trace_id: bytes
    stamp: int
    spans: list[tuple[bytes, int, bytes]]  # span id, record time, encoded Span
    lead: bytes = b""


class TraceGone(msgspec.Struct, array_like=True, frozen=True, tag="g"):
    """`trueup.session-events`: the trace no longer belongs to this conversation, as of `stamp`."""

    tenant: str
    conversation: str
    trace_id: bytes
    stamp: int


class Stated(msgspec.Struct, array_like=True, frozen=True, tag="k"):
    """`trueup.correlations`: a trace of a conversation states a business key; `trace_id` itself is a key, too.

    Args:
        start: the trace's start (rule 6), ns; what is latest and what had begun is decided by it.
        conversation: empty when the trace belongs to no session any more.
        erased: the trace is erased: until when it must not come again, ns.
    """

    tenant: str
    name: str
    value: str
    trace_id: bytes
    stamp: int
    start: int
    conversation: str
    erased: int = 0
