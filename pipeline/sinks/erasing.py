"""Erasure in the store: rows of a conversation go, what its sessions count stays without a name, no row comes again.

The rule this file keeps: what is done twice is done once, so that a crash between any two steps is cured by the next
try; and no statement names what it erases, since ClickHouse keeps the text of mutations.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from pipeline.core.erasing import conversation_digest
from pipeline.logs import Log
from pipeline.sinks.connection import Connection
from schemas.erasing import EraseRows
from schemas.rows import ERASURES, TABLES
from schemas.topics import Stage

log = Log("sinks.erasing")

OF_CONVERSATIONS = tuple(name for name, columns in TABLES.items() if columns[:2] == ("tenant", "conversation"))
"""Tables whose rows begin with tenant and conversation."""
KEPT = (
    "tenant", "ordinal", "version", "is_deleted", "revision", "bucket", "attributed", "family", "family_source",
    "contract_version", "claim", "claimed", "terminal_reason", "completion", "verified", "escalated",
    "handoff_attempted", "reopened", "follow_up", "confirmed", "refused", "invalid", "eligible", "resolved", "score",
    "turns", "runs", "tool_calls", "tool_calls_ok", "errors", "retries", "input_tokens", "output_tokens",
    "cached_tokens", "agents", "settled", "as_of", "goal_achievement", "goal_state", "coherence", "coherence_state",
    "contradictions", "feedback", "memory", "knowledge", "tool", "prompt", "system", "failure_stage", "failure_cause",
    "failure_agent", "reliability",
)  # fmt: skip
"""What stays of a session, so that lists go on being as long as the numbers behind which they stand; the rest is empty.
"""
DONE: dict[str, Any] = {"mutations_sync": 1}
FRESH_SECONDS = 10.0  # another sink may have erased what is on its way to this one


class ErasedConversations:
    """What must not be written any more; read from the store now and then."""

    def __init__(self, store: Connection) -> None:
        self._store = store
        self._until: dict[bytes, int] = {}
        self._read_at: float | None = None

    def without(self, table: str, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """The rows that may be written."""
        if table not in OF_CONVERSATIONS or not self._known():
            return rows
        now = time.time_ns()
        kept = [row for row in rows if self._until.get(conversation_digest(row[0], row[1]), 0) <= now]
        if len(kept) < len(rows):
            log.info("rows of erased conversations left out", table=table, rows=len(rows) - len(kept))
        return kept

    def add(self, order: EraseRows) -> None:
        self._until[order.digest] = max(order.until, self._until.get(order.digest, 0))

    def _known(self) -> dict[bytes, int]:
        if self._read_at is None or time.monotonic() - self._read_at > FRESH_SECONDS:
            found = self._store.query("SELECT digest, max(toUnixTimestamp64Milli(until)) FROM erased GROUP BY digest")
            self._until |= {bytes.fromhex(digest): int(until) * 1_000_000 for digest, until in found}
            self._read_at = time.monotonic()
        return self._until


def erase(store: Connection, orders: Sequence[EraseRows]) -> None:
    """Carry orders out.

    Raises:
        StoreUnavailable: do it again later.
    """
    for one in orders:
        _erase(store, one)


def _erase(store: Connection, order: EraseRows) -> None:
    [places] = store.query(
        "SELECT cityHash64({conversation:String}), sipHash64({conversation:String})",
        {"conversation": order.conversation},
    )
    values = {"tenant": order.tenant, "place": places[0], "check": places[1], "alias": order.alias}
    where = (
        "tenant = {tenant:String} AND cityHash64(conversation) = {place:UInt64} "
        "AND sipHash64(conversation) = {check:UInt64}"
    )
    counts = {table: _count(store, table, where, values) for table in OF_CONVERSATIONS}
    traces = store.query(
        f"SELECT DISTINCT cityHash64(trace_id) FROM (SELECT trace_id FROM agent_steps WHERE {where} "
        f"UNION ALL SELECT arrayJoin(trace_ids) FROM verdicts WHERE {where})",
        values,
    )
    if order.alias:
        _keep_nameless(store, where, values)
    _erase_mentions(store, where, values)
    for table in OF_CONVERSATIONS:
        if counts[table]:
            store.command(f"ALTER TABLE {table} DELETE WHERE {where}", values, DONE)
    _erase_letters(store, order, traces, counts)
    store.command(
        "INSERT INTO erased (tenant, digest, place, until) VALUES "
        "({tenant:String}, {digest:String}, {place:UInt64}, fromUnixTimestamp64Milli({until:Int64}, 'UTC'))",
        values | {"digest": order.digest.hex(), "until": order.until // 1_000_000},
    )
    if order.order:
        _receipts(store, order, counts)


def _keep_nameless(store: Connection, where: str, values: dict[str, Any]) -> None:
    """A row for each session that counts."""
    store.command(
        f"INSERT INTO verdicts (conversation, reason, start, end, flags, {', '.join(KEPT)}) "
        f"SELECT {{alias:String}}, 'erased', bucket, bucket, ['erased'], {', '.join(KEPT)} "
        f"FROM verdicts FINAL WHERE {where} AND revision > 0",
        values,
    )


def _erase_mentions(store: Connection, where: str, values: dict[str, Any]) -> None:
    """Sessions elsewhere of the same subjects may say that they were taken back by this one, or took it back."""
    elsewhere = store.query(
        "SELECT DISTINCT cityHash64(conversation) FROM verdicts WHERE tenant = {tenant:String} AND hasAny(subjects, "
        f"(SELECT groupUniqArrayArray(subjects) FROM verdicts WHERE {where}))",
        values,
    )
    mentions = (
        "tenant = {tenant:String} AND cityHash64(conversation) IN {elsewhere:Array(UInt64)} AND "
        "arrayExists(one -> cityHash64(replaceRegexpOne(one, '#[0-9]+$', '')) = {place:UInt64}, arrayPushBack("
        "JSONExtract(verdict, 'reopens_elsewhere', 'Array(String)'), JSONExtractString(verdict, 'reopened_by')))"
    )
    told = values | {"elsewhere": [place for (place,) in elsewhere]}
    if elsewhere and _count(store, "revisions", mentions, told):
        text = r"verdict, '\"reopened_by\":\"(?:[^\"\\\\]|\\\\.)+\"', '\"reopened_by\":\"erased\"'"
        texts = r"'\"reopens_elsewhere\":\\[\"(?:[^\"\\\\]|\\\\.|\",\")*\"\\]', '\"reopens_elsewhere\":[\"erased\"]'"
        nameless = f"replaceRegexpAll(replaceRegexpAll({text}), {texts})"
        store.command(f"ALTER TABLE revisions UPDATE verdict = {nameless} WHERE {mentions}", told, DONE)


def _erase_letters(store: Connection, order: EraseRows, traces: list[tuple[Any, ...]], counts: dict[str, int]) -> None:
    """The dead letters about its traces, and those that name it as what a step broke at."""
    named = store.query(
        "SELECT DISTINCT cityHash64(detail) FROM dead_letters WHERE position(detail, {mention:String}) > 0",
        {"mention": f"{order.tenant}\\x00{order.conversation}'"},
    )
    letters = (
        "(tenant = {tenant:String} AND cityHash64(trace_id) IN {traces:Array(UInt64)}) "
        "OR cityHash64(detail) IN {named:Array(UInt64)}"
    )
    values = {"tenant": order.tenant, "traces": [one for (one,) in traces], "named": [one for (one,) in named]}
    if traces or named:
        counts["dead_letters"] = _count(store, "dead_letters", letters, values)
    if counts.get("dead_letters"):
        store.command(f"ALTER TABLE dead_letters DELETE WHERE {letters}", values, DONE)


def _count(store: Connection, table: str, where: str, values: dict[str, Any]) -> int:
    [(n,)] = store.query(f"SELECT count() FROM {table} WHERE {where}", values)
    return int(n)


def _receipts(store: Connection, order: EraseRows, counts: dict[str, int]) -> None:
    columns = ", ".join(TABLES[ERASURES])
    for table, n in counts.items():
        store.command(
            f"INSERT INTO {ERASURES} ({columns}) VALUES "
            "({order:String}, {stage:String}, 0, {alias:String}, {table:String}, {n:UInt64})",
            {"order": order.order, "stage": Stage.SINK.value, "alias": order.alias, "table": table, "n": n},
        )


class Receipt(msgspec.Struct, frozen=True):
    """What an order found in one place."""

    stage: str
    partition: int
    alias: str
    what: str
    n: int


def receipts(store: Connection, order: str) -> list[Receipt]:
    """All that has come so far.

    Raises:
        StoreUnavailable: the store is away.
    """
    found = store.query(
        f"SELECT stage, partition, alias, what, n FROM {ERASURES} FINAL WHERE order_id = {{order:String}}",
        {"order": order},
    )
    return [Receipt(*row) for row in found]


class StoredSessions(msgspec.Struct, frozen=True):
    """A conversation that the store has, and how many sessions of it."""

    conversation: str
    sessions: int


def conversations_of(store: Connection, tenant: str, subject: str) -> list[StoredSessions]:
    """Those that served a subject, by its keyed hash."""
    found = store.query(
        "SELECT conversation, max(ordinal) FROM verdicts "
        "WHERE tenant = {tenant:String} AND has(subjects, {subject:String}) GROUP BY conversation",
        {"tenant": tenant, "subject": subject},
    )
    return [StoredSessions(conversation, int(n)) for conversation, n in found]


def sessions_of(store: Connection, tenant: str, conversation: str) -> int:
    """How many sessions of a conversation the store has or had."""
    found = store.query(
        "SELECT max(ordinal) FROM verdicts WHERE tenant = {tenant:String} "
        "AND cityHash64(conversation) = cityHash64({conversation:String}) AND conversation = {conversation:String}",
        {"tenant": tenant, "conversation": conversation},
    )
    return int(found[0][0] or 0) if found else 0
