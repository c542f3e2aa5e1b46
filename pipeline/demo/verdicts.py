"""Each session's verdict beside the truth: the same sums may come of errors that cancel out, the same sessions may not.

What is compared are the facts that the rates are made of, session by session; a session that should not be there, or is
missing, is a difference, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.demo.sources import Counts
from pipeline.simulation.hard.scene import Where
from pipeline.simulation.ledger import Account

Facts = dict[str, Any]
Sessions = Mapping[Where, Facts]
VERDICTS = "verdicts"
"""The source that tells every fact: the topic."""
ABSENT: Facts = {"session": "absent"}
PRESENT = "present"
FOLLOW_UP, ELSEWHERE = "follow_up", "reopen_elsewhere"


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
        "goal": account.goal,
    }


def facts_of_verdict(verdict: Mapping[str, Any]) -> Facts:
    """The facts as a verdict of the topic has them."""
    contained = not verdict["handoff_attempted"] and verdict["terminal_reason"] != "abandoned"
    return {
        **facts_of_row(verdict),
        "attributed": bool(verdict["attributed"]),
        "contained": bool(verdict["eligible"]) and contained,
        "reopened_elsewhere": bool(verdict["reopened_by"]),
        "follow_up": bool(verdict["follow_up"]),
        "goal": verdict["quality"].get("goal_achievement"),
    }


def facts_of_row(row: Mapping[str, Any]) -> Facts:
    """Those of them that the API's list of sessions has."""
    confirmed, verified = row["confirmed"], row["verified"]
    return {
        "session": PRESENT,
        "family": row["family"],
        "invalid": bool(row["invalid"]),
        "eligible": bool(row["eligible"]),
        "complete": row["completion"] == "complete",
        "claimed": bool(row["claimed"]),
        "verified": None if verified is None else bool(verified),
        "escalated": bool(row["escalated"]),
        "reopened": bool(row["reopened"]),
        "confirmed": None if confirmed is None else bool(confirmed),
        "resolved": bool(row["resolved"]),
        "tool_calls": row["tool_calls"],
        "tool_calls_ok": row["tool_calls_ok"],
    }


def place_of(row: Mapping[str, Any]) -> Where:
    """Which session it is."""
    return row["tenant"], row["conversation"], row["ordinal"]


def differences(truth: Mapping[Where, Account], measured: Sessions) -> list[Difference]:
    """Every fact of every session that differs, in order; a fact that was not measured is none."""
    found = []
    for where in sorted({*truth, *measured}):
        true = facts_of_account(truth[where]) if where in truth else ABSENT
        seen = measured.get(where, ABSENT)
        names = [name for name in true if name in seen]
        found += [Difference(where, name, true[name], seen[name]) for name in names if true[name] != seen[name]]
    return found


def tally(facts: Iterable[Facts]) -> Counts:
    """What no rate tells: follow-ups of all sessions, and claims taken back elsewhere of all claims that count."""
    numerators: Counter[tuple[str, str]] = Counter()
    denominators: Counter[tuple[str, str]] = Counter()
    for one in facts:
        for family in {one["family"], ""}:
            claimed = one["eligible"] and one["claimed"]
            for rate, good, of in (
                (FOLLOW_UP, one["follow_up"], True),
                (ELSEWHERE, one["reopened_elsewhere"], claimed),
            ):
                numerators[family, rate] += good and of
                denominators[family, rate] += of
    return {place: (numerators[place], n) for place, n in denominators.items()}
