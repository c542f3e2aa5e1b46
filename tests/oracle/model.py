"""What the oracle is given and what it answers. All times are integer nanoseconds since the epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.oracle.parts import NO_CLAIM, NOTHING_USED, OClaim, OEvaluation, OFailure, OTrial, OUsage

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


Expression = str | Callable[[Mapping[str, object]], bool]
"""CEL text, or a Python function of the variables that raises `Unknown` for a missing field."""


class Unknown(Exception):
    """Raised by a Python expression that reads a missing field; its argument is the namespace (`state`, ...)."""


@dataclass(frozen=True)
class OSpan:
    """One span record as it arrived, before any rule."""

    trace_id: str
    span_id: str
    start: int
    end: int
    tenant: str = "default"
    parent_id: str | None = None
    name: str = ""
    kind: str = "step"
    record_time: int | None = None
    conversation_ids: tuple[tuple[int, str | int | float | None], ...] = ()
    links: tuple[str, ...] = ()
    response_id: str | None = None
    agent: str | None = None
    tool: str | None = None
    call_id: str | None = None
    model: str | None = None
    requested_model: str | None = None
    finish_reasons: tuple[str, ...] = ()
    asked_tools: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    failed: bool = False
    interrupted: bool = False
    control_flow: bool = False
    handoff_target: str | None = None
    family: tuple[str, ...] = ()
    claim: str | None = None
    state: Mapping[str, object] = field(default_factory=dict)
    keys: Mapping[str, tuple[str | int | float | None, ...]] = field(default_factory=dict)
    subject: str | tuple[str, ...] | None = None
    issues: tuple[str, ...] = ()
    resource: Mapping[str, object] = field(default_factory=dict)
    guardrail_tripped: bool | None = None
    attribute_count: int = 0
    evaluations: tuple[Mapping[str, object], ...] = ()
    scenario: str | None = None
    trial: str | None = None
    arguments: Mapping[str, str] | None = None
    """Of a tool call in a scenario, each value in one spelling; None where they are not known."""
    flags: frozenset[str] = frozenset()
    """Set by rule 3 alone: `clamped`, `start_from_record`, `negative_duration`."""


@dataclass(frozen=True)
class OOutcome:
    """One outcome event as it arrived."""

    source: str
    event_id: str
    event_time: int
    kind: str
    tenant: str = "default"
    event_version: int = 1
    record_time: int | None = None
    session_id: str | int | float | None = None
    ordinal: int | None = None
    trace_id: str | None = None
    correlation: Mapping[str, str | int | float | None] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    from_agent: bool = False
    came: int | None = None
    """The watermark at which it came, where that matters (rule 48); None: before any bucket sealed."""


@dataclass(frozen=True)
class OCriterion:
    """One check of a contract."""

    id: str
    check: Expression
    fails_when: Expression | None = None
    applies: Expression | None = None
    trust: str = "any"
    deadline: int | None = None
    weight: float = 1.0
    required: bool = True
    stage: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class OContract:
    """One version of a family's contract, as the YAML has it; None is "not given"."""

    family: str
    version: int
    effective_from: int | None = None
    applies_when: Expression | None = None
    criteria: tuple[OCriterion, ...] = ()
    goal_achievement: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Part -> (max, weight)."""
    expected: Mapping[str, tuple[tuple[str, Mapping[str, str | None]], ...]] = field(default_factory=dict)
    """Scenario ("" for any other) -> the calls it expects: tool, and argument -> value; None is any value."""
    claimed_when: Expression | None = None
    assume_claim: bool = True
    escalated_tools: tuple[str, ...] = ()
    escalated_handoffs: tuple[str, ...] = ()
    approval_tools: tuple[str, ...] = ()
    refused_when: Expression | None = None
    invalid_when: Expression | None = None
    reopen_window: int | None = None
    resume_window: int | None = None
    closing_grace: int | None = None
    wait_window: int | None = None


@dataclass(frozen=True)
class OSettings:
    """The settings that decide something, with INTERFACES.md's defaults."""

    session_gap: int = 30 * MINUTE
    closing_grace: int = 5 * MINUTE
    resume_window: int = 2 * HOUR
    wait_window: int = 24 * HOUR
    reopen_window: int = 72 * HOUR
    trace_timeout: int = 10 * MINUTE
    max_clock_skew: int = 5 * MINUTE
    lateness: int = 5 * MINUTE
    retention: int = 35 * DAY
    bucket: int = 5 * MINUTE
    folded_bucket: int = HOUR
    fold_after: int = 48 * HOUR
    max_spans_per_trace: int = 20_000
    agent_sources: frozenset[str] = frozenset()
    outcome_sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Kind -> the only sources that may say it; a kind that is absent is open to all."""
    too_broad_traces: int = 200
    longest_chain: int = 10_000
    most_links: int = 8


@dataclass(frozen=True)
class OTrace:
    """One trace after rules 1, 3 and 8."""

    tenant: str
    trace_id: str
    spans: tuple[OSpan, ...]
    truncated: int = 0


@dataclass(frozen=True)
class ORun:
    """Rule 7: traces that are one run; `name` is the earliest trace's id."""

    name: str
    traces: tuple[OTrace, ...]
    start: int
    end: int

    @property
    def spans(self) -> tuple[OSpan, ...]:
        """All spans of all traces, work or not."""
        return tuple(span for trace in self.traces for span in trace.spans)


@dataclass
class OSession:
    """One session with everything judged about it."""

    tenant: str
    conversation: str
    ordinal: int
    start: int
    end: int
    attributed: bool
    family: str | None
    family_state: str
    contract_version: int | None
    trace_ids: tuple[str, ...] = ()
    runs: int = 0
    turns: int = 0
    flags: frozenset[str] = frozenset()
    claim: OClaim = NO_CLAIM
    claim_by_spans: OClaim = NO_CLAIM
    terminal: bool = False
    terminal_reason: str | None = None
    criteria: dict[str, tuple[str, str, int | None]] = field(default_factory=dict)
    failed_at: dict[str, int] = field(default_factory=dict)
    """Criterion -> since when its failure stands."""
    raising: frozenset[str] = frozenset()
    """Criteria whose check or `fails_when` raises on what is known now."""
    criterion_errors: int = 0
    score: float | None = None
    completion: str | None = None
    completed_at: int | None = None
    verified: bool | None = None
    verified_at: int | None = None
    escalated: bool = False
    escalated_at: int | None = None
    handoff_attempted: bool = False
    handoff_attempted_at: int | None = None
    reopened: bool = False
    reopened_at: int | None = None
    reopens: tuple[tuple[str, int], ...] = ()
    follow_up: bool = False
    answered: bool = False
    confirmed: bool = False
    denied: bool = False
    answered_at: int | None = None
    refused: bool = False
    refused_claimed: bool = False
    invalid: bool = False
    eligible: bool = False
    resolved: bool = False
    resolution_failed_at: int | None = None
    tools_ok: tuple[str, ...] = ()
    tools_failed: tuple[str, ...] = ()
    usage: OUsage = NOTHING_USED
    retries: int = 0
    evaluations: dict[str, OEvaluation] = field(default_factory=dict)
    goal_achievement: float | None = None
    goal_state: str = "missing"
    coherence: float | None = None
    coherence_state: str = "missing"
    contradictions: int = 0
    layers: dict[str, float] = field(default_factory=dict)
    feedback: float | None = None
    failure: OFailure | None = None
    trial: OTrial | None = None
    subjects: frozenset[str] = frozenset()
    issues: frozenset[str] = frozenset()
    keys: frozenset[tuple[str, str]] = frozenset()
    bucket: int = 0
    outcomes: tuple[tuple[str, str], ...] = ()
    """(source, event_id) of what is attached, counted or only shown."""

    @property
    def key(self) -> tuple[str, str, int]:
        """(tenant, conversation, ordinal)."""
        return (self.tenant, self.conversation, self.ordinal)


@dataclass
class World:
    """The answer for one complete set of input at one watermark."""

    sessions: list[OSession]
    dropped: Counter[str]
    """Span records: duplicate, no_work, truncated, bad_time."""
    counted: Counter[str]
    """Outcomes and oddities: superseded, retracted, no_session, too_broad, conflict, unknown_claim, ..."""
    waiting: list[OOutcome]
    rates: dict[tuple[str, str], tuple[int, int]]
    """(family, or "" for the system row; rate) -> (numerator, denominator)."""
    means: dict[tuple[str, str], tuple[int, int]]
    """(family or "", measure) -> (sessions that have it, their sum in millionths)."""
    failures: dict[tuple[str, str], int]
    """(family or "", `stage/<stage>` or `criterion/<id>`) -> eligible sessions."""
    events: dict[str, dict[tuple[str, str, int], int | None]]
    """Delayed rate -> session key of each session in its denominator -> age of its event, None without one."""

    def session(self, conversation: str, ordinal: int = 1, tenant: str = "default") -> OSession:
        """The session `conversation#ordinal`."""
        return next(s for s in self.sessions if s.key == (tenant, conversation, ordinal))
