"""The schema of ClickHouse: numbered files, applied once, in order, checksummed, forward only; safe to run again.

A file that was interrupted half way runs again from its start, so every statement in it says IF NOT EXISTS.
Retention is no migration: it is a setting, and each run brings it up to date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from pipeline.errors import TrueupError
from pipeline.sinks.clickhouse import Store
from schemas.rows import TABLES

RETENTION_DAYS = 400
COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
NAME = re.compile(r"^(\d{4})_[a-z_]+\.sql$")


class MigrationError(TrueupError):
    """The schema of the store is not what the migrations say, and running them would not mend it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def statements(self) -> list[str]:
        """A statement ends with a semicolon at the end of a line."""
        plain = COMMENT.sub("", self.text)
        return [part.strip() for part in re.split(r";\s*\n", plain + "\n") if part.strip()]


def packaged() -> list[Migration]:
    """The migrations of this version of trueup, in order.

    Raises:
        MigrationError: the numbers are not 1, 2, 3 without a gap.
    """
    folder = files("pipeline.sinks") / "migrations"
    found = sorted((f for f in folder.iterdir() if NAME.match(f.name)), key=lambda f: f.name)
    numbers = [int(f.name[:4]) for f in found]
    if numbers != list(range(1, len(found) + 1)):
        raise MigrationError(f"the migrations are numbered {numbers}, not 1 to {len(found)}")
    return [Migration(f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in found]


def migrate(
    store: Store, migrations: list[Migration] | None = None, retention_days: Mapping[str, int] | None = None
) -> list[str]:
    """Bring the store up to the newest version.

    Args:
        migrations: those of this version of trueup, if not given.
        retention_days: per table, from when a row was written; 400 where a table is not named.

    Returns:
        The names of the migrations that were applied now.

    Raises:
        MigrationError: an applied file was changed, or the store is newer than this trueup.
        StoreUnavailable: the store is away.
    """
    known = packaged() if migrations is None else migrations
    store.create_database()
    store.command(
        "CREATE TABLE IF NOT EXISTS schema_migrations (name String, checksum String, applied_at DateTime('UTC') "
        "DEFAULT now()) ENGINE = ReplacingMergeTree(applied_at) ORDER BY name"
    )
    applied = dict(store.query("SELECT name, checksum FROM schema_migrations FINAL"))
    newer = sorted(applied.keys() - {m.name for m in known})
    if newer:
        raise MigrationError(
            f"the store has migrations that this trueup does not know: {', '.join(newer)}; update trueup"
        )
    ran = []
    for migration in known:
        if migration.name in applied:
            if applied[migration.name] != migration.checksum:
                raise MigrationError(f"{migration.name}.sql was changed after it was applied; write a new migration")
            continue
        for statement in migration.statements:
            store.command(statement)
        store.command(
            "INSERT INTO schema_migrations (name, checksum) VALUES ({name:String}, {checksum:String})",
            {"name": migration.name, "checksum": migration.checksum},
        )
        ran.append(migration.name)
    _keep(store, retention_days or {})
    return ran


def _keep(store: Store, retention_days: Mapping[str, int]) -> None:
    """Rows are kept from when they were written, not by event time: history that is replayed is not gone at once, and a
    newer version, which is written later, never goes before the older one that it hides."""
    unknown = sorted(retention_days.keys() - TABLES.keys())
    if unknown:
        raise MigrationError(f"retention is set for {', '.join(unknown)}; the tables are {', '.join(TABLES)}")
    for table in TABLES:
        days = retention_days.get(table, RETENTION_DAYS)
        store.command(
            f"ALTER TABLE {table} MODIFY TTL written_at + INTERVAL {int(days)} DAY",
            settings={"materialize_ttl_after_modify": 0},
        )
