"""`trueup migrate`: the schema of ClickHouse, up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import Config, DataDir, Debug, quiet_libraries, settings
from pipeline.embedded.folder import make_folder
from pipeline.errors import StoreUnavailable
from pipeline.operate import migrate as migrations
from pipeline.settings import SettingsError
from pipeline.sinks.clickhouse import Store
from pipeline.sinks.connection import EMBEDDED


def migrate(
    config: Config = None,
    data_dir: DataDir = None,
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="ClickHouse; a folder of the data folder if not given.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Brings the schema of ClickHouse to the newest version; safe to run again.

    Example: trueup migrate --dsn https://trueup:secret@clickhouse:8443/trueup
    """
    quiet_libraries()
    chosen = settings(config, data_dir=data_dir, dsn=dsn)
    if chosen.store_dsn.startswith(EMBEDDED):
        make_folder(Path(chosen.store_dsn.removeprefix(EMBEDDED)))
    try:
        store = Store.open(chosen.store_dsn)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    try:
        applied = migrations.migrate(store, retention_days=chosen.store_days)
    except StoreUnavailable as error:
        raise StoreUnavailable(f"{error}; see that it runs, and that --dsn or TRUEUP_DSN names it") from error
    finally:
        store.close()
    print(f"applied {', '.join(applied)}" if applied else "the schema is up to date")
