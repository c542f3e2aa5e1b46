"""Everything judged about a session at one revision: what `trueup.verdicts`, the API and ClickHouse carry."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from schemas.span import Value


class Status(StrEnum):
    """Of a criterion."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"
    ERROR = "error"
    NOT_APPLICABLE = "not_applicable"


class Reason(StrEnum):
    """Why a criterion has its status; a closed list."""

    MET = "met"
    FALSE = "false"
    FAILS_WHEN = "fails_when"
    NOT_REPORTED = "not_reported"
    UNVERIFIED = "unverified"
    WAITING = "waiting"
    ERROR = "error"
    NOT_APPLICABLE = "not_applicable"


class Completion(StrEnum):
    PENDING = "pending"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    NONE = ""  # no contract judges it


class Scoring(StrEnum):
    """What came of asking an evaluator. `MISSING`: nobody was asked, or nobody has answered yet."""

    SCORED = "scored"
    ABSTAINED = "abstained"
    ERROR = "error"
    MISSING = "missing"


class Stage(StrEnum):
    """Where a task broke first."""

    PLANNING = "planning"
    EXECUTION = "execution"
    VERIFICATION = "verification"
    POLICY = "policy"
    INFRASTRUCTURE = "infrastructure"


class EvaluationVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds of one evaluation of a session: of its name the latest that was scored, else the latest.

    Args:
        score: as it was given; None unless it was scored.
        normal: the same on a scale of 0 to 1; None where the scale is not known.
        layer: `memory`, `knowledge`, `tool`, `prompt` or `system`.
        contradictions: how many the evaluator told.
    """

    name: str
    state: Scoring
    score: float | None = None
    normal: float | None = None
    label: str = ""
    layer: str = ""
    source: str = ""
    at: int = 0
    from_agent: bool = False
    contradictions: int = 0


class Quality(msgspec.Struct, frozen=True, omit_defaults=True):
    """How well a session was done, as judges and people scored it; no rate reads any of it.

    Args:
        goal_achievement, coherence: 0 to 10; None unless scored.
        layers: layer -> mean of its scores, 0 to 1.
        feedback: 0 to 1.
    """

    goal_achievement: float | None = None
    goal_state: Scoring = Scoring.MISSING
    coherence: float | None = None
    coherence_state: Scoring = Scoring.MISSING
    contradictions: int = 0
    layers: dict[str, float] = {}
    feedback: float | None = None
    evaluations: tuple[EvaluationVerdict, ...] = ()


class Failure(msgspec.Struct, frozen=True):
    """Why a session is incomplete: its earliest cause.

    Args:
        cause: the criterion, `tool <name>`, `model`, `run` or `refusal`.
        agent: who owns it; empty where nobody is named.
        at: ns.
    """

    stage: Stage
    cause: str
    agent: str
    at: int


class Trial(msgspec.Struct, frozen=True):
    """A session that plays a scenario, and how its tool calls compare with those expected; None: not known.

    Args:
        expected, made: calls.
    """

    scenario: str
    trial: str = ""
    expected: int = 0
    made: int = 0
    name_precision: float | None = None
    name_recall: float | None = None
    argument_precision: float | None = None
    argument_recall: float | None = None
    reliability: float | None = None


class CriterionVerdict(msgspec.Struct, frozen=True):
    """One criterion of one session.

    Args:
        passed_at: since when the check has held, ns; 0 when it did not pass.
        failed_at: since when the failure stands, ns; 0 when it did not fail.
        deadline: until when evidence counts, ns; 0 without one.
        raises: its check or `fails_when` raises on what is known now: told at once, whenever it is decided.
    """

    id: str
    status: Status
    reason: Reason
    required: bool
    independent: bool
    weight: float
    passed_at: int = 0
    failed_at: int = 0
    deadline: int = 0
    stage: str = ""
    agent: str = ""
    raises: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """One session, judged. Times in ns of event time, 0 where there is none.

    Args:
        version: orders upserts; the higher wins.
        revision: the dense count people see; 0 while the session is open and not judged yet.
        claim, claimed: the explicit claim's value / `explicit`, `assumed` or empty: claimed completed.
        verified: None when no independent criterion applies.
        resolved: counts in the numerator of resolution.
        resolution_failed_at: the earliest failure that stands.
        reopens: the ordinal of the earlier session that this one reopened, 0 for none.
        reopened_by: the earliest session of another conversation that took its claim back, as it is printed.
        reopens_elsewhere: sessions of other conversations whose claim this one took back, as they are printed; of each
            of its subjects the latest eight.
        evidence: what the criteria read, by name: (value, event time).
        score: partial credit, 0 to 1; it never makes incomplete complete.
        failure: None unless the session has ended and is incomplete.
    """

    tenant: str
    conversation: str
    ordinal: int
    version: int = 0
    revision: int = 0
    reason: str = ""
    deleted: bool = False
    as_of: int = 0
    trace_ids: tuple[str, ...] = ()
    start: int = 0
    end: int = 0
    attributed: bool = True
    family: str = ""
    family_source: str = ""
    contract: str = ""
    claim: str = ""
    claimed: str = ""
    claimed_at: int = 0
    terminal: bool = False
    terminal_reason: str = ""
    completion: Completion = Completion.NONE
    completed_at: int = 0
    verified: bool | None = None
    verified_at: int = 0
    criteria: tuple[CriterionVerdict, ...] = ()
    score: float | None = None
    escalated: bool = False
    escalated_at: int = 0
    handoff_attempted: bool = False
    handoff_at: int = 0
    reopened: bool = False
    reopened_at: int = 0
    reopens: int = 0
    reopened_by: str = ""
    reopens_elsewhere: tuple[str, ...] = ()
    follow_up: bool = False
    confirmed: bool | None = None
    confirmed_at: int = 0
    refused: bool = False
    refused_claimed: bool = False
    invalid: bool = False
    eligible: bool = False
    resolved: bool = False
    resolution_failed_at: int = 0
    runs: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_calls_ok: int = 0
    errors: int = 0
    retries: int = 0
    tokens: tuple[int, int, int] = (0, 0, 0)
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    evidence: dict[str, tuple[Value, int]] = {}
    quality: Quality = Quality()
    failure: Failure | None = None
    trial: Trial | None = None
    cost_usd: float | None = None
