"""The story of a conversation as the store tells it: its sessions, what each was judged by, and every revision.

Of a conversation that was forgotten and began anew it tells the newest life alone: what is left of an earlier one are
other sessions of the same numbers (docs/adr/0007).

Every read says FINAL, so it is right before any merge. All conditions are on the leading columns of the sort key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from pipeline.core.timeline import to_text
from pipeline.sinks.connection import Connection

Record = dict[str, Any]

TIMES = frozenset({"start", "end", "bucket", "as_of", "event_time", "at", "began"})
TIMES_OR_NONE = frozenset({"reopened_at", "passed_at", "failed_at", "failure_at", "deadline"})
JSON_TEXT = frozenset({"data", "changed", "verdict"})
PLUMBING = ("tenant", "conversation", "version", "is_deleted", "written_at")
PARTS = ("criteria", "evaluations")
"""Rows that belong to one version of a verdict; what it no longer has keeps its old row, and is no part of it."""
OF_CONVERSATION = (
    "cityHash64(conversation) = cityHash64({conversation:String}) AND conversation = {conversation:String}"
)
OF_NEWEST_LIFE = (
    "AND began = (SELECT argMax(began, version) FROM verdicts FINAL WHERE tenant = {tenant:String} AND "
    f"{OF_CONVERSATION})"
)
OF_VERDICT = (
    "AND (ordinal, version) IN (SELECT ordinal, version FROM verdicts FINAL WHERE tenant = {tenant:String} AND "
    f"{OF_CONVERSATION} {OF_NEWEST_LIFE})"
)
ORDER = {
    "verdicts": "ordinal",
    "criteria": "ordinal, criterion",
    "evaluations": "ordinal, evaluation",
    "revisions": "ordinal, revision",
    "outcomes": "event_time, source, event_id, via",
    "agent_steps": "start, trace_id, span_id",
}


class StoredSession(msgspec.Struct, frozen=True):
    """One session: the newest verdict by column, and what belongs to it."""

    ordinal: int
    verdict: Record
    criteria: list[Record]
    evaluations: list[Record]
    revisions: list[Record]
    spans: list[Record]


class Conversation(msgspec.Struct, frozen=True):
    """Args:
    outcomes: all that reached the conversation, by event time.
    spans: those that lie in no session.
    """

    tenant: str
    conversation: str
    sessions: list[StoredSession]
    outcomes: list[Record]
    spans: list[Record]


def read_conversation(store: Connection, tenant: str, conversation: str) -> Conversation | None:
    """None where the store has no session of it.

    Raises:
        StoreUnavailable: the store is away.
    """

    def rows(table: str) -> list[Record]:
        statement = (
            f"SELECT * EXCEPT ({', '.join(PLUMBING)}) FROM {table} FINAL WHERE tenant = {{tenant:String}} AND "
            f"{OF_CONVERSATION} {OF_VERDICT if table in PARTS else OF_NEWEST_LIFE} ORDER BY {ORDER[table]}"
        )
        return store.records(statement, {"tenant": tenant, "conversation": conversation})

    verdicts = rows("verdicts")
    if not verdicts:
        return None
    criteria, revisions = _by_ordinal(rows("criteria")), _by_ordinal(rows("revisions"))
    evaluations = _by_ordinal(rows("evaluations"))
    spans, outside = _placed(rows("agent_steps"), verdicts)
    sessions = [
        StoredSession(
            ordinal=verdict["ordinal"],
            verdict=readable(verdict),
            criteria=criteria.get(verdict["ordinal"], []),
            evaluations=evaluations.get(verdict["ordinal"], []),
            revisions=revisions.get(verdict["ordinal"], []),
            spans=spans[verdict["ordinal"]],
        )
        for verdict in verdicts
    ]
    return Conversation(tenant, conversation, sessions, [readable(o) for o in rows("outcomes")], outside)


def _placed(steps: Iterable[Record], verdicts: list[Record]) -> tuple[dict[int, list[Record]], list[Record]]:
    """Each span with the session that holds its trace; where several do, with the one in whose time it began."""
    placed: dict[int, list[Record]] = {verdict["ordinal"]: [] for verdict in verdicts}
    outside: list[Record] = []
    for step in steps:
        holders = [v for v in verdicts if step["trace_id"] in v["trace_ids"]]
        if len(holders) > 1:
            holders = [v for v in holders if v["start"] <= step["start"] <= v["end"]] or holders
        (placed[holders[0]["ordinal"]] if holders else outside).append(readable(step))
    return placed, outside


def _by_ordinal(records: Iterable[Record]) -> dict[int, list[Record]]:
    grouped: dict[int, list[Record]] = {}
    for record in records:
        grouped.setdefault(record["ordinal"], []).append(readable(record))
    return grouped


def readable(record: Record) -> Record:
    return {name: _value(name, value) for name, value in record.items()}


def _value(name: str, value: Any) -> Any:
    """Times as ISO 8601, JSON as what it says; a time that is not known is null."""
    if name in TIMES:
        return to_text(value * 1_000_000)
    if name in TIMES_OR_NONE:
        return to_text(value * 1_000_000) if value else None
    if name in JSON_TEXT and value:
        return json.loads(value)
    return value
