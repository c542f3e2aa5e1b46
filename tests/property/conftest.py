"""The laws' statistics: printed when they have run, and held to what makes an example worth its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.core.correlating import keys
from tests.property.statistics import STATISTICS
from tests.property.worlds import TOO_BROAD

FEWEST = 100


@pytest.fixture(autouse=True)
def _enough_of_the_worlds_hold_what_is_hard() -> Iterator[None]:
    """A third of them two sessions in a conversation, a duplicate, a late outcome and a conflict, all in one world."""
    known = set(STATISTICS.examples)
    yield
    for law in STATISTICS.examples.keys() - known:
        if STATISTICS.examples[law] >= FEWEST:  # few examples, as where a mutant is hunted, say nothing about shares
            assert not STATISTICS.missed(law), law


@pytest.fixture(autouse=True, scope="module")
def _few_traces_make_a_key_too_broad() -> Iterator[None]:
    """As few as the worlds' oracle is told; the limit in earnest has cases of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "MOST_TRACES", TOO_BROAD)
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = STATISTICS.lines()
    if lines:
        terminalreporter.section("laws")
        for line in lines:
            terminalreporter.write_line(line)
