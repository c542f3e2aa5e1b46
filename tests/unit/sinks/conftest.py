"""One embedded store for all tests of this run: the engine takes a single path in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.operate.migrate import migrate
from pipeline.sinks.clickhouse import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store.open(f"chdb://{tmp_path_factory.mktemp('store') / 'click house'}")
    migrate(opened)
    # What no merge has brought together must still be read right, so none may help.
    opened.command("SYSTEM STOP MERGES")
    yield opened
    opened.close()
