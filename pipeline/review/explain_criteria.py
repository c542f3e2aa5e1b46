"""Why one criterion has its status, and who said what it rests on.

The rule this file keeps: the status and its reason are the judge's; evidence is named with who said it and when.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pipeline.review.wording import after, moment, value

Record = Mapping[str, Any]


class Criterion(msgspec.Struct, frozen=True):
    """`why` says what decided it; `asks` is the contract's own text, empty where the worker does not know it."""

    id: str
    status: str
    reason: str
    required: bool
    asks: str
    why: str
    stage: str
    agent: str
    deadline: str | None


def criterion(one: Record, asks: Record, verdict: Record, story: Record, reached: Container[str]) -> Criterion:
    """One criterion, told.

    Args:
        one: its row in the store, with what the newest revision adds.
        asks: the contract's own words; empty where the worker does not know them.
        verdict: of its session, whose conversation is `story`.
        reached: the fields that evidence filled for this session; another session's evidence is not its own.
    """
    return Criterion(
        id=one["criterion"],
        status=one["status"],
        reason=one["reason"],
        required=one["required"],
        asks=asks.get("check", ""),
        why=" ".join([_why(one, asks, verdict), *_proof(one, asks, story, verdict, reached)]),
        stage=one["stage"],
        agent=one["agent"],
        deadline=one["deadline"],
    )


def _why(one: Record, asks: Record, verdict: Record) -> str:
    reads: Mapping[str, Sequence[str]] = asks.get("reads", {})
    deadline = moment(one["deadline"]) if one["deadline"] else ""
    fields = " or ".join(reads.get("evidence", [])) or "it"
    end = verdict["end"]
    match one["reason"]:
        case "met" if one["passed_at"] and one["passed_at"] != end:
            return f"It holds since {moment(one['passed_at'])} ({after(end, one['passed_at'])})."
        case "met":
            return "It holds."
        case "false":
            return f"It was still false at its deadline, {deadline}." if deadline else "It was false at the end."
        case "fails_when":
            at = f" at {moment(one['failed_at'])} ({after(end, one['failed_at'])})" if one.get("failed_at") else ""
            return f"It failed{at}, since {asks.get('fails_when', 'its fails_when')}."
        case "not_reported":
            names = " or ".join(reads.get("state", [])) or "what it reads"
            return f"The agent never reported {names}."
        case "unverified":
            return f"Nobody had said anything about {fields} {f'by {deadline}' if deadline else 'when it ended'}."
        case "waiting" if one.get("raises"):
            when = f"past {deadline}" if deadline else "at the end"
            return f"Its expression raises an error on what is known now; it is decided {when}."
        case "waiting":
            return (
                f"It waits for {fields} until {deadline}." if deadline else "It is decided when the session has ended."
            )
        case "error":
            return "Its expression raises an error: the contract must be repaired."
        case _:
            return f"It does not apply: {asks.get('applies') or 'its condition'} is false."


def _proof(one: Record, asks: Record, story: Record, verdict: Record, reached: Container[str]) -> Iterator[str]:
    """Who said what the criterion reads, the last that counts and whatever came too late to count."""
    end = verdict["end"]
    if one["status"] == "not_applicable":
        return
    for field in asks.get("reads", {}).get("evidence", []):
        if field not in reached and len(story["sessions"]) > 1:
            continue
        said = [
            outcome
            for outcome in story["outcomes"]
            if outcome["kind"] == "evidence"
            and not outcome["from_agent"]
            and (outcome["data"] or {}).get(field) is not None
        ]
        in_time = [outcome for outcome in said if not one["deadline"] or outcome["event_time"] <= one["deadline"]]
        for outcome in in_time[-1:]:
            at = outcome["event_time"]
            told = at in (one["passed_at"], one.get("failed_at"))
            yield f"{_who(outcome, field)}{'' if told else f' at {moment(at)} ({after(end, at)})'}."
        for outcome in said:
            if outcome not in in_time:
                yield f"{_who(outcome, field)} at {moment(outcome['event_time'])}, too late: after the deadline."


def _who(outcome: Record, field: str) -> str:
    return f"{outcome['source']} said {field} is {value(outcome['data'][field])}"
