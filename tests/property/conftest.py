"""The laws' statistics are printed when they have run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.property.statistics import STATISTICS


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = STATISTICS.lines()
    if lines:
        terminalreporter.section("laws")
        for line in lines:
            terminalreporter.write_line(line)
