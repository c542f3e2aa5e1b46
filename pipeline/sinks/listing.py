"""The list behind a number: which sessions a rate counts, as the store has them.

The rule this file keeps: what a rate counts is said here as conditions on a verdict's columns, and means what the fold
of stage 4 means, so that the length of a list is the number it stands behind. A page begins after the last session of
the page before, in an order that a revision seldom changes: newest end first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline.sinks.connection import Connection
from pipeline.sinks.conversation import Record, readable
from schemas.segment import Rate

COLUMNS = (
    "tenant", "conversation", "ordinal", "revision", "reason", "start", "end", "family", "contract_version", "claim",
    "claimed", "terminal_reason", "completion", "verified", "escalated", "reopened", "confirmed", "refused", "invalid",
    "eligible", "resolved", "turns", "tool_calls", "tool_calls_ok", "agents", "as_of", "score", "goal_achievement",
    "coherence", "coherence_state", "feedback", "memory", "knowledge", "tool", "prompt", "system", "failure_stage",
    "failure_cause", "failure_agent", "scenario", "trial", "reliability",
)  # fmt: skip

OUTCOMES = ("good", "rest", "bad", "pending")
"""In the numerator / in the denominator alone / of that rest: decided / not decided yet."""

_JUDGED_FALSE = (
    "(tenant, conversation, ordinal, version) IN (SELECT tenant, conversation, ordinal, version FROM criteria FINAL "
    "WHERE independent AND status IN ('failed', 'error'))"
)
_NOT_YET = "completion = 'pending'"


@dataclass(frozen=True, slots=True)
class Counted:
    """What a rate counts, as conditions on `verdicts`: `denominator`, `numerator`, and what may still come in."""

    denominator: str
    numerator: str
    pending: str = "0"


COUNTED: dict[str, Counted] = {
    Rate.COMPLETION: Counted("eligible", "completion = 'complete'", _NOT_YET),
    Rate.CLAIMED_COMPLETION: Counted("eligible", "claimed != ''"),
    Rate.VERIFIED_COMPLETION: Counted(
        "eligible AND isNotNull(verified)", "verified", f"completion != 'incomplete' AND NOT {_JUDGED_FALSE}"
    ),
    Rate.RESOLUTION: Counted(
        "eligible", "resolved", f"{_NOT_YET} AND NOT escalated AND NOT reopened AND ifNull(confirmed, true)"
    ),
    Rate.CONFIRMED_RESOLUTION: Counted("eligible AND isNotNull(confirmed)", "confirmed"),
    Rate.REOPEN: Counted("eligible AND claimed != ''", "reopened"),
    Rate.ESCALATION: Counted("eligible", "escalated"),
    Rate.CONTAINMENT: Counted("eligible", "NOT handoff_attempted AND terminal_reason != 'abandoned'"),
    Rate.TOOL_SUCCESS: Counted("terminal_reason != '' AND NOT invalid AND tool_calls > 0", "tool_calls_ok > 0"),
    Rate.ATTRIBUTION: Counted("terminal_reason != '' AND NOT invalid", "attributed"),
}


class Place(msgspec.Struct, array_like=True, frozen=True):
    """The last session of a page; `end` in ms."""

    end: int
    tenant: str
    conversation: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sessions.

    Args:
        start, end: only of cohort buckets that begin in [start, end), ns; None is no bound.
        rate: only those in its denominator; of them by `outcome`, where it is given.
    """

    family: str | None = None
    agent: str | None = None
    rate: str | None = None
    outcome: str | None = None
    start: int | None = None
    end: int | None = None
    tenant: str | None = None


class Page(msgspec.Struct, frozen=True):
    """Args:
    total: of the whole list: sessions, or tool calls where the rate counts those.
    after: where the next page begins; None on the last.
    """

    total: int
    sessions: list[Record]
    after: Place | None


def read_page(store: Connection, wanted: Wanted, after: Place | None, limit: int) -> Page:
    """
    Raises:
        StoreUnavailable: the store is away.
    """
    conditions, values = _conditions(wanted)
    [(total,)] = store.query(f"SELECT {_total(wanted)} FROM verdicts FINAL WHERE {conditions}", values)
    if after is not None:
        conditions += (
            " AND (toUnixTimestamp64Milli(end) < {end_ms:Int64} OR (toUnixTimestamp64Milli(end) = {end_ms:Int64} AND "
            "(tenant, conversation, ordinal) > ({tenant:String}, {conversation:String}, {ordinal:UInt32})))"
        )
        values |= {
            "end_ms": after.end,
            "tenant": after.tenant,
            "conversation": after.conversation,
            "ordinal": after.ordinal,
        }
    rows = store.records(
        f"SELECT {', '.join(COLUMNS)} FROM verdicts FINAL WHERE {conditions} "
        f"ORDER BY end DESC, tenant, conversation, ordinal LIMIT {limit + 1:d}",
        values,
    )
    last = rows[limit - 1] if len(rows) > limit else None
    place = Place(last["end"], last["tenant"], last["conversation"], last["ordinal"]) if last is not None else None
    return Page(int(total or 0), [readable(row) for row in rows[:limit]], place)


def _total(wanted: Wanted) -> str:
    """The number itself; tool success counts calls, and lists the sessions that made them."""
    if wanted.rate != Rate.TOOL_SUCCESS:
        return "count()"
    return {None: "sum(tool_calls)", "good": "sum(tool_calls_ok)"}.get(
        wanted.outcome, "sum(tool_calls - tool_calls_ok)"
    )


def _conditions(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    found = ["1"]
    values: dict[str, Any] = {}
    if wanted.rate is not None:
        counted = COUNTED[wanted.rate]
        found.append(counted.denominator)
        if wanted.outcome == "good":
            found.append(counted.numerator)
        elif wanted.outcome is not None:
            of_calls = wanted.rate == Rate.TOOL_SUCCESS  # a session may have calls of both kinds
            found.append("tool_calls_ok < tool_calls" if of_calls else f"NOT ({counted.numerator})")
            if wanted.outcome != "rest":
                found.append(f"{'' if wanted.outcome == 'pending' else 'NOT '}({counted.pending})")
    for condition, name, value in (
        ("tenant = {of_tenant:String}", "of_tenant", wanted.tenant),
        ("family = {family:String}", "family", wanted.family),
        ("has(agents, {agent:String})", "agent", wanted.agent),
        ("bucket >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')", "from", _up(wanted.start)),
        ("bucket < fromUnixTimestamp64Milli({to:Int64}, 'UTC')", "to", _up(wanted.end)),
    ):
        if value is not None:
            found.append(condition)
            values[name] = value
    return " AND ".join(f"({one})" for one in found), values


def _up(ns: int | None) -> int | None:
    """To whole milliseconds, as a bound: what begins before it still begins before it."""
    return None if ns is None else -(-ns // 1_000_000)
