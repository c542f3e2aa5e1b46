"""What the demo shows: a live table on a terminal, plain lines elsewhere, and the tables at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pipeline.demo.compare import Comparison, Row
from pipeline.demo.sources import Counts
from pipeline.demo.verdicts import Difference

SHOWN = ("completion", "verified_completion", "resolution", "reopen", "escalation", "tool_success")
LINE_SECONDS = 5.0
SHOWN_SESSIONS = 20
SYSTEM = "all families"


class Screen:
    """Use it as a context: the live table is there inside it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """One line, above the live table."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, phase: str, share: float, counts: Counts) -> None:
        """The numbers as they are now.

        Args:
            share: of the world that is sent, 0 to 1.
        """
        elapsed = time.monotonic() - self._began
        if self._live is not None:
            self._live.update(_live_table(f"{phase}, {elapsed:.0f} s, {share:.0%} sent", counts))
        elif time.monotonic() - self._told >= LINE_SECONDS:
            self._told = time.monotonic()
            system = "; ".join(f"{rate} {_told(counts.get(('', rate)))}" for rate in SHOWN)
            self.say(f"{elapsed:4.0f} s  {phase}, {share:4.0%} sent: {system}")

    def comparison(self, comparison: Comparison, window: str) -> None:
        """Measured beside truth, every family and rate."""
        sources = sorted({source for row in comparison.rows for source in row.measured})
        table = Table(title=f"measured and true, window {window}, read by {', '.join(sources)}", title_justify="left")
        for name in ("family", "rate"):
            table.add_column(name, no_wrap=True)
        for name in ("measured", "true", "ratio"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        before = None
        for row in comparison.rows:
            if before is not None and row.family != before:
                table.add_section()
            table.add_row("" if row.family == before else row.family or SYSTEM, row.rate, *_cells(row))
            before = row.family
        self.console.print(table)

    def differences(self, rows: Sequence[Row]) -> None:
        """The rows that are wrong, one line each."""
        for row in rows:
            seen = ", ".join(f"{source} {_counts(counts)}" for source, counts in row.measured.items())
            self.say(f"differs: {row.family or SYSTEM} {row.rate}: true {_counts(row.truth)}; {seen or 'not measured'}")

    def session_differences(self, differences: Mapping[str, Sequence[Difference]]) -> None:
        """The first sessions that each source has otherwise."""
        for source, found in differences.items():
            for one in found[:SHOWN_SESSIONS]:
                self.say(f"differs: {source}: {one}")
            if len(found) > SHOWN_SESSIONS:
                self.say(f"differs: {source}: {len(found) - SHOWN_SESSIONS} more facts of sessions")


def _cells(row: Row) -> tuple[str, str, str, str]:
    seen = sorted(set(row.measured.values()))
    good, n = row.truth
    ratio = f"{good / n:.1%}" if n else "-"
    return " or ".join(map(_counts, seen)), _counts(row.truth), ratio, "exact" if row.exact else "DIFFERS"


def _live_table(title: str, counts: Counts) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("family", no_wrap=True)
    for rate in SHOWN:
        table.add_column(rate.replace("_", " "), justify="right", no_wrap=True)
    families = sorted({family for family, _ in counts})
    for family in [*(one for one in families if one), ""]:
        table.add_row(family or SYSTEM, *(_told(counts.get((family, rate))) for rate in SHOWN))
    return table


def _told(counts: tuple[int, int] | None) -> str:
    if counts is None or not counts[1]:
        return "-"
    return f"{_counts(counts)} {counts[0] / counts[1]:.1%}"


def _counts(counts: tuple[int, int]) -> str:
    return f"{counts[0]}/{counts[1]}"
