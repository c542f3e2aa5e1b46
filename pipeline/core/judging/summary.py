"""What judging reads of a session's spans, computed once: all that is kept of them when the session has settled.

The rule this file keeps: whoever judges, attaches an outcome or looks for a reopen reads a summary and no span, so that
a packed session is judged as it was when its spans were there (RULES.md 48).
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.verdict import Trial

Key = tuple[str, str]


class LastRun(msgspec.Struct, array_like=True, frozen=True):
    """How the run that ended last ended (RULES.md 10, 17-19)."""

    waits: bool
    waits_for_person: bool
    error_at_end: bool
    is_answer: bool
    known_answer: bool


class Break(msgspec.Struct, array_like=True, frozen=True):
    """Something that went wrong and stayed so: a tool whose last call failed, or the end of the last run.

    Args:
        what: `tool`, `model` or `run`; `name`: of the tool.
        agent: who did it.
    """

    what: str
    name: str
    agent: str
    at: int


class Summary(msgspec.Struct, array_like=True, frozen=True):
    """One session without its spans. Times in ns.

    Args:
        last_start: when the last of its runs to start did.
        trace_ids: the traces of its runs, by run; the first is that of its first run.
        values: the variables that expressions read (RULES.md 23), without what needs claims.
        resources: each distinct resource (for `invalid_when`).
        handoffs: to people, by start: accepted, failed or attempted.
        keys: correlation keys that its spans state.
        breaks: what went wrong and stayed so, by time.
        trial: the scenario that it plays.
        cost: of its model calls, in billionths of a dollar; None where it is not told of all.
    """

    start: int
    end: int
    last_start: int
    trace_ids: tuple[bytes, ...]
    runs: int
    last_run: LastRun
    has_model: bool
    values: dict[str, dict[str, Any]]
    resources: tuple[dict[str, Any], ...]
    calls: int
    calls_ok: int
    handoffs: tuple[str, ...]
    tokens: tuple[int, int, int]
    subjects: tuple[str, ...]
    issues: tuple[str, ...]
    keys: tuple[Key, ...]
    flags: tuple[str, ...]
    breaks: tuple[Break, ...] = ()
    trial: Trial | None = None
    cost: int | None = None
