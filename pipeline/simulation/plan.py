"""What happens in a simulated world, before any span of it exists.

The plan is the only thing the ledger of truth reads; the spans and outcome events are made from the same plan.
Times are nanoseconds of the epoch (`_ns`), as OpenTelemetry counts; a span's are relative to its conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS

# The pipeline's documented defaults, stated again here on purpose: the simulated customers keep well away from each.
RESUME_WINDOW_NS = 2 * HOUR_NS
LATENESS_NS = 5 * MINUTE_NS
CLOCK_SKEW_NS = 5 * MINUTE_NS


Value = bool | int | str | tuple[str, ...]


class Ending(StrEnum):
    """How the last working run of a session ends."""

    CLAIMS_COMPLETED = "claims_completed"
    CLAIMS_FAILED = "claims_failed"
    CLAIMS_ESCALATED = "claims_escalated"
    CLAIMS_REFUSED = "claims_refused"
    ANSWERS = "answers"
    CRASHES = "crashes"
    WAITS_FOR_CUSTOMER = "waits_for_customer"
    WAITS_FOR_PERSON = "waits_for_person"


class HandOff(StrEnum):
    """What became of the agent's call for a person."""

    NONE = "none"
    ACCEPTED = "accepted"
    FAILED = "failed"


class Shape(StrEnum):
    """How the runs of a session follow each other."""

    ONE_TURN = "one_turn"
    SEVERAL_TURNS = "several_turns"
    RESUMED = "resumed"  # quiet for longer than the session gap, back within the resume window
    INTERRUPTED = "interrupted"  # stopped to ask the customer, who answers hours later
    THANKED = "thanked"  # a bare "thanks" after the claim's grace
    AFTERWORD = "afterword"  # another question within the claim's grace
    SECOND_THOUGHT = "second_thought"  # claims failure, and completion within the grace


class Standing(StrEnum):
    """Whether the session counts at all."""

    VALID = "valid"
    TEST = "test"
    GUARDED = "guarded"  # a guardrail stopped it: refused, and independently so


class Kind(StrEnum):
    """How the sessions of a conversation relate."""

    SINGLE = "single"
    UNATTRIBUTED = "unattributed"
    RETURNS_SAME_ISSUE = "returns_same_issue"
    RETURNS_WITHOUT_ISSUE = "returns_without_issue"
    RETURNS_OTHER_ISSUE = "returns_other_issue"
    RETURNS_TOO_LATE = "returns_too_late"
    RETURNS_TO_SAME_ORDER = "returns_to_same_order"
    TURNS_TO_OTHER_TASK = "turns_to_other_task"
    THERE_AND_BACK = "there_and_back"


class FactKind(StrEnum):
    EVIDENCE = "evidence"
    ESCALATION = "escalation"
    REOPEN = "reopen"
    RESOLUTION = "resolution"


@dataclass(frozen=True, slots=True)
class SpanPlan:
    """One span; times are relative to the start of its conversation."""

    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Value]
    error: str | None = None
    children: tuple[SpanPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One trace. `id_on_root_only`: the conversation id is on the root, else on every span."""

    root: SpanPlan
    id_on_root_only: bool
    test: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """What one outcome event says in the end, after all its versions. A withdrawn one is no fact."""

    kind: FactKind
    name: str
    value: bool | str
    at_ns: int
    by_key: bool
    event_id: str


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Everything that happened in and about one session."""

    family: str
    key: str
    issue: str | None
    ending: Ending
    hand_off: HandOff
    shape: Shape
    standing: Standing
    runs: tuple[RunPlan, ...]
    start_ns: int
    end_ns: int
    tool_calls: int
    tool_calls_ok: int
    passed: frozenset[str]  # the state criteria that what the agent reported satisfies
    exempt: frozenset[str]  # the criteria that do not apply, as the agent reported
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversationPlan:
    """The sessions of one conversation, in order. `base_ns` is what relative span times start from."""

    name: str
    kind: Kind
    base_ns: int
    sessions: tuple[SessionPlan, ...]

    @property
    def attributed(self) -> bool:
        return self.kind is not Kind.UNATTRIBUTED


@dataclass(frozen=True, slots=True)
class Report:
    """One version of an outcome event on its way: when it reaches the gateway, and how it reads."""

    arrival_ns: int
    at_ns: int
    event: Mapping[str, object] = field(hash=False)
