from __future__ import annotations

import re

import pytest

from pipeline.operate.migrate import Migration, MigrationError, migrate, packaged
from pipeline.sinks.clickhouse import Store
from schemas.rows import TABLES


def test_migrating_again_does_nothing(store: Store) -> None:
    assert migrate(store) == []


def test_a_run_that_stopped_before_it_was_noted_is_repeated(store: Store) -> None:
    store.command("DROP TABLE schema_migrations")

    assert migrate(store) == [migration.name for migration in packaged()]
    assert migrate(store) == []


def test_a_changed_file_is_refused(store: Store) -> None:
    first, *others = packaged()
    changed = Migration(first.name, first.text + "-- and a word more\n")

    with pytest.raises(MigrationError, match=r"0001_sessions\.sql was changed"):
        migrate(store, [changed, *others])


def test_a_store_newer_than_the_program_is_refused(store: Store) -> None:
    with pytest.raises(MigrationError, match=packaged()[-1].name):
        migrate(store, packaged()[:-1])


def test_retention_is_a_setting_of_each_table(store: Store) -> None:
    migrate(store, retention_days={"agent_steps": 30})

    days = {}
    for table in TABLES:
        engine = store.query("SELECT engine_full FROM system.tables WHERE name = {t:String}", {"t": table})[0][0]
        days[table] = int(re.findall(r"TTL written_at \+ toIntervalDay\((\d+)\)", engine)[0])
    assert days == {table: 30 if table == "agent_steps" else 400 for table in TABLES}
    with pytest.raises(MigrationError, match="tables are"):
        migrate(store, retention_days={"verdict": 1})


@pytest.mark.parametrize("table", TABLES)
def test_what_is_older_than_the_retention_goes_and_what_is_younger_stays(store: Store, table: str) -> None:
    migrate(store, retention_days={table: 30})
    name = TABLES[table][0]
    values = {"version": "1"} if "version" in TABLES[table] else {}
    store.command(f"SYSTEM START MERGES {table}")
    try:
        for days in (29, 31):
            row = {name: f"'{days} days'", "written_at": f"now() - INTERVAL {days} DAY", **values}
            store.command(f"INSERT INTO {table} ({', '.join(row)}) SELECT {', '.join(row.values())}")
        store.command(f"OPTIMIZE TABLE {table} FINAL")
        left = [one for (one,) in store.query(f"SELECT {name} FROM {table} WHERE endsWith({name}, ' days')")]
    finally:
        store.command(f"ALTER TABLE {table} DELETE WHERE endsWith({name}, ' days')", settings={"mutations_sync": 1})
        store.command(f"SYSTEM STOP MERGES {table}")

    assert left == ["29 days"]


def test_ids_lead_no_sort_key_and_versions_cannot_part(store: Store) -> None:
    mutable = {"start", "end", "bucket", "family", "as_of", "version", "is_deleted", "written_at", "event_time"}
    keys = {
        name: (sorting, partition)
        for name, sorting, partition in store.query(
            "SELECT name, sorting_key, partition_key FROM system.tables "
            "WHERE database = 'trueup' AND engine LIKE '%MergeTree'"
        )
    }
    assert keys.keys() == TABLES.keys() | {"schema_migrations", "erased"}
    for table in TABLES.keys() - {"segment_metrics", "dead_letters", "erasures"}:
        sorting, partition = keys[table]
        assert sorting.startswith("tenant, cityHash64(conversation), conversation")
        assert not mutable & set(re.findall(r"\w+", sorting))
        assert partition == ""
    assert keys["segment_metrics"] == ("cube, rate, bucket, segment", "toYYYYMM(bucket)")
