"""The laws' statistics: printed when they have run, and held to what makes an example worth its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.property.statistics import STATISTICS


@pytest.fixture(autouse=True)
def _a_third_of_the_worlds_hold_what_is_hard() -> Iterator[None]:
    """Two sessions in a conversation, a duplicate, a late outcome and a conflict, all in one world."""
    known = set(STATISTICS.examples)
    yield
    for law in STATISTICS.examples.keys() - known:
        assert STATISTICS.features[law, "all four"] * 3 >= STATISTICS.examples[law], law


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = STATISTICS.lines()
    if lines:
        terminalreporter.section("laws")
        for line in lines:
            terminalreporter.write_line(line)
