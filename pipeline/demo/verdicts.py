"""Each session's verdict beside the truth: the same sums may come of errors that cancel out, the same sessions may not.

What is compared are the facts that the rates are made of, session by session; a session that should not be there, or is
missing, is a difference, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.simulation.hard.scene import Where
from pipeline.simulation.ledger import Account

Facts = dict[str, Any]
ABSENT: Facts = {"session": "absent"}
PRESENT = "present"


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact of one session that is not as it should be."""

    where: Where
    fact: str
    true: Any
    measured: Any

    def __str__(self) -> str:
        tenant, conversation, ordinal = self.where
        return f"{tenant}/{conversation}#{ordinal} {self.fact}: true {self.true}, measured {self.measured}"


def facts_of_account(account: Account) -> Facts:
    """The facts as they should be."""
    eligible = account.eligible
    return {
        "session": PRESENT,
        "family": account.family,
        "attributed": account.attributed,
        "invalid": account.invalid,
        "eligible": eligible,
        "complete": account.complete,
        "claimed": account.claimed,
        "verified": account.verified,
        "escalated": account.escalated,
        "contained": eligible and not account.attempted and not account.abandoned,
        "reopened": account.reopened,
        "reopened_elsewhere": account.across,
        "follow_up": account.follow_up,
        "confirmed": account.answer,
        "resolved": eligible and account.resolved,
        "tool_calls": account.tool_calls,
        "tool_calls_ok": account.tool_calls_ok,
    }


def facts_of_verdict(verdict: Mapping[str, Any]) -> Facts:
    """The facts as a verdict has them, as JSON of the topic or of the API."""
    eligible = bool(verdict["eligible"])
    abandoned = verdict["terminal_reason"] == "abandoned"
    confirmed, verified = verdict["confirmed"], verdict["verified"]
    return {
        "session": PRESENT,
        "family": verdict["family"],
        "attributed": bool(verdict["attributed"]),
        "invalid": bool(verdict["invalid"]),
        "eligible": eligible,
        "complete": verdict["completion"] == "complete",
        "claimed": bool(verdict["claimed"]),
        "verified": None if verified is None else bool(verified),
        "escalated": bool(verdict["escalated"]),
        "contained": eligible and not verdict["handoff_attempted"] and not abandoned,
        "reopened": bool(verdict["reopened"]),
        "reopened_elsewhere": bool(verdict["reopened_by"]),
        "follow_up": bool(verdict["follow_up"]),
        "confirmed": None if confirmed is None else bool(confirmed),
        "resolved": bool(verdict["resolved"]),
        "tool_calls": verdict["tool_calls"],
        "tool_calls_ok": verdict["tool_calls_ok"],
    }


def differences(truth: Mapping[Where, Account], measured: Mapping[Where, Facts]) -> list[Difference]:
    """Every fact of every session that differs, in order."""
    found = []
    for where in sorted({*truth, *measured}):
        true = facts_of_account(truth[where]) if where in truth else ABSENT
        seen = measured.get(where, ABSENT)
        names = true if "family" in true and "family" in seen else ABSENT
        found += [Difference(where, name, true[name], seen[name]) for name in names if true[name] != seen[name]]
    return found
