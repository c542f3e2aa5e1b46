"""Erasure in a real ClickHouse: what goes, what stays without a name, and what must not come again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from pipeline.core.erasing import conversation_digest
from pipeline.core.timeline import DAY
from pipeline.sinks import erasing
from pipeline.sinks.clickhouse import Store
from pipeline.sinks.erasing import KEPT, OF_CONVERSATIONS
from pipeline.sinks.listing import Wanted
from schemas.erasing import EraseRows
from schemas.rows import TABLES
from tests.unit.sinks.test_clickhouse import count, row, write

TENANT = "erasing"


@pytest.fixture(autouse=True)
def merging(store: Store) -> Iterator[None]:
    """Rows are deleted by what merges them."""
    store.command("SYSTEM START MERGES")
    yield
    store.command("SYSTEM STOP MERGES")


def order(conversation: str, number: int = 1, until: int | None = None) -> EraseRows:
    digest = conversation_digest(TENANT, conversation)
    ends = time.time_ns() + DAY if until is None else until
    return EraseRows(TENANT, conversation, digest, ends, f"o{number}", f"erased:{conversation}-alias")


def fill(store: Store, conversation: str, token: str, **given: object) -> None:
    for table in OF_CONVERSATIONS:
        write(store, table, [row(table, tenant=TENANT, conversation=conversation, **given)], token)


def left(store: Store, conversation: str) -> dict[str, int]:
    """Physical rows, whatever versions."""
    return {table: count(store, table, f"conversation = '{conversation}'") for table in OF_CONVERSATIONS}


def test_every_table_of_conversations_is_known() -> None:
    assert {"verdicts", "criteria", "revisions", "outcomes", "agent_steps"} <= set(OF_CONVERSATIONS)
    assert not [name for name in TABLES if "conversation" in TABLES[name] and name not in OF_CONVERSATIONS]
    assert set(KEPT) <= set(TABLES["verdicts"])
    assert not {"conversation", "subjects", "issues", "trace_ids", "start", "end", "reason"} & set(KEPT)


def test_the_rows_of_one_conversation_go_and_a_nameless_one_stays_for_each_session(store: Store) -> None:
    said = {"terminal_reason": "completed", "eligible": True, "subjects": ["who"], "issues": ["what"], "flags": ["odd"]}
    fill(store, "gone", "a", **{name: value for name, value in said.items() if name != "flags"})
    fill(store, "stays", "b")
    letter = {"tenant": TENANT, "trace_id": "ab" * 16}
    broke = [f"the step raised E at the key {('c' + TENANT + chr(0) + name)!r}, which stays" for name in ("gone", "on")]
    letters = [letter, *({"tenant": "", "trace_id": "", "detail": detail} for detail in broke)]
    write(store, "dead_letters", [row("dead_letters", **one) for one in letters], "c")
    before = asyncio.run(store.sessions(Wanted(tenant=TENANT), None, 10))

    asyncio.run(store.erase([order("gone")]))

    after = asyncio.run(store.sessions(Wanted(tenant=TENANT), None, 10))
    assert left(store, "gone") == dict.fromkeys(OF_CONVERSATIONS, 0)
    assert left(store, "stays") == dict.fromkeys(OF_CONVERSATIONS, 1)
    assert (before.total, after.total) == (2, 2)
    [kept] = store.records("SELECT * FROM verdicts FINAL WHERE conversation = 'erased:gone-alias'")
    assert (kept["flags"], kept["reason"], kept["terminal_reason"]) == (["erased"], "erased", "completed")
    assert (kept["subjects"], kept["issues"], kept["trace_ids"]) == ([], [], [])
    assert kept["start"] == kept["end"] == kept["bucket"]
    assert count(store, "dead_letters", f"tenant = '{TENANT}'") == 0
    left_letters = store.query("SELECT detail FROM dead_letters WHERE startsWith(detail, 'the step raised E')")
    assert left_letters == [(broke[1],)]
    assert not [text for (text,) in store.query("SELECT command FROM system.mutations") if "gone" in text]


def test_an_order_that_is_carried_out_again_changes_nothing_and_keeps_its_receipts(store: Store) -> None:
    fill(store, "twice", "d")
    for _ in range(2):
        asyncio.run(store.erase([order("twice", 7)]))

    found = {one.what: one.n for one in asyncio.run(store.receipts("o7"))}
    assert {table: found[table] for table in OF_CONVERSATIONS} == dict.fromkeys(OF_CONVERSATIONS, 1)
    assert count(store, "verdicts", "conversation = 'erased:twice-alias'") == 1


def test_rows_that_come_later_are_left_out_here_and_in_another_sink(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(store.erase([order("late")]))
    fill(store, "late", "e", version=99)
    other = Store(store._connect, "trueup", embedded=True)
    other._client = store._connected()
    asyncio.run(other.write("verdicts", [row("verdicts", tenant=TENANT, conversation="late")], "f"))
    assert left(store, "late") == dict.fromkeys(OF_CONVERSATIONS, 0)

    monkeypatch.setattr(erasing, "FRESH_SECONDS", 0.0)
    asyncio.run(other.erase([order("elsewhere")]))
    fill(store, "elsewhere", "g")
    assert left(store, "elsewhere") == dict.fromkeys(OF_CONVERSATIONS, 0)


def test_a_conversation_may_be_used_again_when_all_of_the_old_one_is_too_old_to_come(store: Store) -> None:
    asyncio.run(store.erase([order("again", until=time.time_ns() - DAY)]))
    fill(store, "again", "h")
    assert left(store, "again") == dict.fromkeys(OF_CONVERSATIONS, 1)


def test_what_is_known_of_a_subject_is_found_also_in_old_versions(store: Store) -> None:
    fill(store, "of-subject", "i", subjects=["5ub"], ordinal=3)
    fill(store, "of-subject", "j", subjects=[], ordinal=3, version=2)

    [one] = asyncio.run(store.conversations_of(TENANT, "5ub"))
    assert (one.conversation, one.sessions) == ("of-subject", 3)
    assert asyncio.run(store.sessions_of(TENANT, "of-subject")) == 3
    assert asyncio.run(store.sessions_of(TENANT, "nobody")) == 0


def test_what_others_say_of_it_loses_its_name(store: Store) -> None:
    subject = {"subjects": ["5hared"]}
    document = {"reopened_by": 'na"me]#1', "reopens_elsewhere": ["x#1", 'na"me]#2'], "family": "na"}
    fill(store, 'na"me]', "k", **subject)
    fill(store, "other", "l", verdict=json.dumps(document, separators=(",", ":")), **subject)
    plain = json.dumps({"reopened_by": "x#1", "reopens_elsewhere": []}, separators=(",", ":"))
    fill(store, "third", "m", verdict=plain, **subject)

    asyncio.run(store.erase([order('na"me]')]))

    texts = "SELECT verdict FROM revisions WHERE conversation = {c:String}"
    assert json.loads(store.query(texts, {"c": "other"})[0][0]) == {
        "reopened_by": "erased", "reopens_elsewhere": ["erased"], "family": "na",
    }  # fmt: skip
    assert store.query(texts, {"c": "third"}) == [(plain,)]
