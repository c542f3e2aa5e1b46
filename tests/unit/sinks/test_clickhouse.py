from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.timeline import DAY, MINUTE, SECOND
from pipeline.errors import StoreUnavailable
from pipeline.sinks.clickhouse import Store
from schemas.rows import TABLES

ROOT = Path(__file__).parents[3]
T = 1_764_000_000_123_456_789
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("start", "end", "bucket", "as_of", "event_time", "record_time"), T),
    **dict.fromkeys(("passed_at", "failed_at", "failure_at", "at", "deadline", "reopened_at", "contradictions"), 0),
    **dict.fromkeys(("goal_achievement", "coherence", "feedback", "normal", "reliability")),
    **dict.fromkeys(("memory", "knowledge", "tool", "prompt", "system")),
    **dict.fromkeys(("tool_name_precision", "tool_name_recall", "tool_argument_precision", "tool_argument_recall")),
    **{column: [] for column in ("models", "tools", "issues", "subjects", "flags")},
    **dict.fromkeys(("score", "confirmed", "first_numerator", "first_denominator")),
    **dict.fromkeys(("changed", "verdict", "data"), "{}"),
    **dict.fromkeys(("attributed", "verified", "escalated", "handoff_attempted", "reopened"), False),
    **dict.fromkeys(("follow_up", "refused", "invalid", "eligible", "resolved", "settled", "required"), False),
    **dict.fromkeys(("independent", "from_agent", "failed", "is_deleted"), False),
    **dict.fromkeys(("ordinal", "revision", "version", "event_version", "weight"), 1),
    **dict.fromkeys(("turns", "runs", "tool_calls", "tool_calls_ok", "errors", "retries", "size"), 2),
    **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "partition", "offset"), 3),
    "began": T,
    **{"agents": ["a"], "dimensions": (("family", "returns"),), "numerator": 1, "denominator": 2},
    **{"trace_id": b"\xab" * 16, "span_id": b"\xcd" * 8, "parent_id": b"", "trace_ids": [b"\xab" * 16]},
}
OF_TABLE: dict[str, dict[str, Any]] = {"agent_steps": {"flags": 0, "tool": ""}, "erasures": {"n": 1}}


def row(table: str, **given: Any) -> list[Any]:
    """A row with defaults; a column that is neither named nor known here is a text."""
    known = DEFAULTS | OF_TABLE.get(table, {}) | given
    return [known.get(column, "") for column in TABLES[table]]


def count(store: Store, table: str, where: str) -> int:
    return int(store.query(f"SELECT count() FROM {table} WHERE {where}")[0][0])


def rate(cube: str, bucket: int = T, **given: Any) -> list[Any]:
    return row("segment_metrics", cube=cube, rate="completion", bucket=bucket, **given)


def write(store: Store, table: str, rows: list[list[Any]], token: str) -> int:
    return asyncio.run(store.write(table, rows, token))


def test_warming_up_leaves_nothing_behind_and_may_be_done_again(store: Store) -> None:
    def tables() -> list[Any]:
        return store.query("SELECT name, total_rows FROM system.tables WHERE database = 'trueup' ORDER BY name")

    before = tables()
    for _ in range(2):
        store.warm_up()

    assert tables() == before
    assert set(store._types) == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_every_table_takes_a_row_in_the_order_of_the_schema(store: Store, table: str) -> None:
    assert write(store, table, [row(table, tenant="order", cube="order")], "order") == 0

    found = store.records(f"SELECT * FROM {table} ORDER BY written_at DESC LIMIT 1")[0]
    assert list(found)[: len(TABLES[table])] == list(TABLES[table])


def test_a_batch_written_twice_is_there_once_and_a_correction_replaces(store: Store) -> None:
    first = [rate("twice", numerator=1, denominator=4), rate("twice", T + MINUTE, numerator=2, denominator=3)]
    for _ in range(2):
        write(store, "segment_metrics", first, "t-0-0-1")
    assert count(store, "segment_metrics", "cube = 'twice'") == 2  # the token saved the work

    write(store, "segment_metrics", [rate("twice", version=2, numerator=4, denominator=4)], "t-0-2-2")
    write(store, "segment_metrics", first, "t-0-0-0")  # a late copy of what was corrected

    assert asyncio.run(store.rates("twice", 0, 2 * T)) == [({"family": "returns"}, "completion", 6, 7)]


def test_the_same_token_for_other_rows_loses_nothing(store: Store) -> None:
    write(store, "segment_metrics", [rate("anew", numerator=1)], "t-0-0-9")
    write(store, "segment_metrics", [rate("anew", version=2, numerator=2)], "t-0-0-9")  # the topic was made anew

    assert asyncio.run(store.rates("anew", 0, 2 * T))[0][2] == 2


def test_a_deleted_row_is_gone_and_an_older_version_does_not_bring_it_back(store: Store) -> None:
    write(store, "segment_metrics", [rate("gone", version=2, is_deleted=True)], "a")
    write(store, "segment_metrics", [rate("gone", version=1)], "b")

    assert asyncio.run(store.rates("gone", 0, 2 * T)) == []


def test_a_session_whose_times_and_family_were_corrected_is_one_row(store: Store) -> None:
    for version, start, family in ((1, T, "returns"), (2, T - 40 * DAY, "order_placement")):
        given = {"version": version, "start": start, "end": start, "bucket": start, "family": family}
        write(store, "verdicts", [row("verdicts", tenant="moved", conversation="c", **given)], f"m{version}")

    assert store.query("SELECT family FROM v_sessions WHERE tenant = 'moved'") == [("order_placement",)]


def test_window_bounds_are_half_open(store: Store) -> None:
    start = 1_764_000_000 * SECOND
    buckets = [rate("edges", start + n * MINUTE, numerator=10**n, denominator=10**n) for n in (0, 5, 10)]
    write(store, "segment_metrics", buckets, "edges")

    def sum_of(begin: int, end: int) -> int:
        return sum(n for *_, n in asyncio.run(store.rates("edges", begin, end)))

    assert sum_of(start, start + 10 * MINUTE) == 10**0 + 10**5
    assert sum_of(start + 1, start + 10 * MINUTE + 1) == 10**5 + 10**10


def test_restatements_are_the_buckets_that_differ_from_what_was_first_published(store: Store) -> None:
    given = {"numerator": 1, "denominator": 2}
    write(
        store,
        "segment_metrics",
        [
            rate("restated", T, **given, first_numerator=1, first_denominator=2),
            rate("restated", T + MINUTE, **given, first_numerator=2, first_denominator=2),
            rate("restated", T + 2 * MINUTE, **given),
        ],
        "r",
    )

    found = store.query("SELECT first_numerator, numerator FROM v_restatements WHERE cube = 'restated'")
    assert found == [(2, 1)]
    total, (told,) = asyncio.run(store.restatements("restated", None, T - SECOND, 10))
    assert total == 1
    assert (told.bucket, told.first_numerator, told.first_denominator) == ((T + MINUTE) // 10**6 * 10**6, 2, 2)
    assert (told.numerator, told.denominator) == (1, 2)
    assert asyncio.run(store.restatements("restated", None, T + MINUTE + SECOND, 10)) == (0, [])
    assert asyncio.run(store.restatements("restated", "reopen", T, 10)) == (0, [])


def test_case_A27_a_version_that_orphans_its_spans_is_told_by_name(store: Store) -> None:
    def step(service: str, trace: int, span: int, parent: int | None) -> list[Any]:
        ids = {"trace_id": f"{trace:032x}", "span_id": f"{span:016x}"}
        above = {"parent_id": "" if parent is None else f"{parent:016x}"}
        return row("agent_steps", tenant="orphans", service=service, **ids, **above)

    whole = [step("voice 1.2", 1, 1, None), step("voice 1.2", 1, 2, 1), step("voice 1.2", 2, 3, None)]
    torn = [step("voice 1.3", 3, 4, 9), step("voice 1.3", 3, 5, 4), step("voice 1.3", 4, 6, None)]
    write(store, "agent_steps", [*whole, *torn], "o")
    found = store.query(
        "SELECT service, traces, with_missing_parents FROM v_orphans WHERE tenant = 'orphans' ORDER BY service"
    )
    assert [tuple(one) for one in found] == [("voice 1.2", 2, 0), ("voice 1.3", 2, 1)]


BAD_ROWS = {
    "a number where a time belongs": {"bucket": "yesterday"},
    "a time after the last": {"bucket": 2**64},
    "a count below zero": {"numerator": -1},
    "a version above 64 bits": {"version": 2**64},
    "a rate above one, which only the server sees": {"numerator": 3, "denominator": 2},
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_one_bad_row_is_isolated_and_reported(store: Store, bad: dict[str, Any]) -> None:
    cube = f"bad {bad}"
    rows = [rate(cube, T + n * MINUTE) for n in range(7)]
    rows[4] = rate(cube, **{"bucket": T + 4 * MINUTE} | bad)

    assert write(store, "segment_metrics", rows, cube) == 1
    assert write(store, "segment_metrics", rows, cube) == 1  # sent again

    assert asyncio.run(store.rates(cube, 0, 2 * T))[0][2:] == (6, 12)
    letters = store.records(
        "SELECT detail FROM dead_letters FINAL WHERE reason = 'bad_row' AND detail LIKE {like:String}",
        {"like": f"segment_metrics, row 4 of {cube}:%"},
    )
    assert len(letters) == 1


def test_a_row_of_wrong_length_is_refused(store: Store) -> None:
    assert write(store, "criteria", [row("criteria", tenant="short")[:-1], row("criteria", tenant="short")], "l") == 1
    assert count(store, "criteria", "tenant = 'short'") == 1


def test_odd_text_survives(store: Store) -> None:
    odd = "a'b\"c\\d\n\t\0 \N{SNOWMAN} ?{x:String} %(y)s"
    write(store, "verdicts", [row("verdicts", tenant=odd, conversation=odd, family="half \ud800 pair")], "odd")

    found = asyncio.run(store.session(odd, odd))
    assert found is not None
    assert found.conversation == odd
    assert found.sessions[0].verdict["family"] == "half ? pair"


def test_a_conversation_is_told_with_all_that_its_sessions_rest_on(store: Store) -> None:
    key = {"tenant": "told", "conversation": "c"}
    traces = [bytes([n]) * 16 for n in (1, 2, 3)]
    late = T + 100 * MINUTE
    write(
        store,
        "verdicts",
        [
            row("verdicts", **key, ordinal=1, start=T, end=T + MINUTE, trace_ids=traces[:2]),
            row("verdicts", **key, ordinal=2, start=late, end=late + MINUTE, trace_ids=[traces[1]], reopened_at=T),
            row("verdicts", **key | {"conversation": "another"}, ordinal=3),
        ],
        "v",
    )
    write(store, "criteria", [row("criteria", **key, ordinal=2, criterion="paid", passed_at=T)], "c")
    changed = json.dumps({"completion": ["pending", "complete"]})
    revisions = [row("revisions", **key, ordinal=2, revision=n, reason=f"r{n}", changed=changed) for n in (2, 1, 2)]
    write(store, "revisions", revisions, "r")
    write(store, "outcomes", [row("outcomes", **key, event_id="e", data='{"x": [1, null]}')], "o")
    steps = [(traces[0], T, "first"), (traces[1], late, "second"), (traces[2], T, "elsewhere")]
    write(store, "agent_steps", [row("agent_steps", **key, trace_id=t, start=s, name=n) for t, s, n in steps], "s")

    story = asyncio.run(store.session("told", "c"))

    assert story is not None
    one, two = story.sessions
    assert (one.ordinal, two.ordinal) == (1, 2)
    assert one.verdict["start"] == "2025-11-24T16:00:00.123Z"
    assert (one.verdict["reopened_at"], two.verdict["reopened_at"]) == (None, "2025-11-24T16:00:00.123Z")
    assert [c["criterion"] for c in two.criteria] == ["paid"]
    assert [(r["revision"], r["reason"]) for r in two.revisions] == [(1, "r1"), (2, "r2")]
    assert two.revisions[0]["changed"] == {"completion": ["pending", "complete"]}
    assert [s["name"] for s in one.spans] == ["first"]
    assert [s["name"] for s in two.spans] == ["second"]
    assert two.spans[0]["trace_id"] == "02" * 16
    assert [s["name"] for s in story.spans] == ["elsewhere"]
    assert story.outcomes[0]["data"] == {"x": [1, None]}
    assert asyncio.run(store.session("told", "unknown")) is None


def test_many_calls_at_once_are_served_one_by_one(store: Store) -> None:
    async def all_at_once() -> None:
        batches = [[rate(f"many {n}", T + n * MINUTE)] for n in range(20)]
        await asyncio.gather(*(store.write("segment_metrics", batch, f"m{n}") for n, batch in enumerate(batches)))
        found = await asyncio.gather(*(store.rates(f"many {n}", 0, 2 * T) for n in range(20)))
        assert [f[0][2] for f in found] == [1] * 20

    asyncio.run(all_at_once())


def test_a_server_that_is_away_is_unavailable_and_nothing_is_dropped() -> None:
    away = Store.open("http://127.0.0.1:1/trueup")

    with pytest.raises(StoreUnavailable):
        asyncio.run(away.write("segment_metrics", [rate("away")], "t"))
    with pytest.raises(StoreUnavailable):
        asyncio.run(away.ping())


@pytest.mark.parametrize("dsn", ["chdb://relative", "mysql://host", "host:8123"])
def test_a_dsn_that_is_none_is_refused_at_once(dsn: str) -> None:
    with pytest.raises(ValueError, match=r"dsn|absolute"):
        Store.open(dsn)


def test_times_do_not_shift_with_the_zone_of_the_machine(tmp_path: Path) -> None:
    program = """
        import asyncio, sys
        from pipeline.operate.migrate import migrate
        from pipeline.sinks.clickhouse import Store
        store = Store.open("chdb://" + sys.argv[1])
        migrate(store)
        t = 1_764_547_200_001_000_000  # 2025-12-01 at midnight and a millisecond: still November in New York
        row = ["c", {}, "completion", t, 1, 0, 1, 2, None, None, t]
        asyncio.run(store.write("segment_metrics", [row], "t"))
        columns = "toString(bucket), toUnixTimestamp64Milli(bucket), bucket, _partition_id"
        print(store.query(f"SELECT {columns} FROM segment_metrics"))
        print(asyncio.run(store.rates("c", t, t + 1_000_000)), asyncio.run(store.rates("c", t + 1_000_000, 2 * t)))
        store.close()
    """
    for zone in ("Europe/Berlin", "America/New_York"):
        answer = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / zone.replace("/", "-"))],
            env={**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert answer == (
            "[('2025-12-01 00:00:00.001', 1764547200001, 1764547200001, '202512')]\n[({}, 'completion', 1, 2)] []\n"
        )
