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


class CriterionVerdict(msgspec.Struct, frozen=True):
    """One criterion of one session.

    Args:
        passed_at: since when the check has held, ns; 0 when it did not pass.
        failed_at: since when the failure stands, ns; 0 when it did not fail.
        deadline: until when evidence counts, ns; 0 without one.
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
        evidence: what the criteria read, by name: (value, event time).
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
