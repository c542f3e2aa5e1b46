"""What the processes of the benchmark tell, and how it is printed.

The rule this file keeps: a figure never stands without the machine that it was measured on.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

from tests.bench.families import Counts


class Cost(msgspec.Struct, frozen=True):
    """Of one item: bytes of checkpoint; bytes of memory of each further one; CPU microseconds to restore it."""

    items: int
    checkpoint: float
    memory: float
    restored: float


class SettledCost(msgspec.Struct, frozen=True):
    """Of a settled session in stage 4, beside 8 bytes a span; of a trace in stage 2; of a stated key in stage 3."""

    session: Cost
    trace: Cost
    key: Cost


class CoreResult(msgspec.Struct, frozen=True):
    """Of the steps without a broker: `seconds` of CPU by part; bytes of checkpoint of an open session of 20 spans."""

    counts: dict[str, Counts]
    steps: int
    seconds: dict[str, float]
    open_size: int


class BaselineResult(msgspec.Struct, frozen=True):
    """Of the hand-written loop: `seconds` of CPU without those until it was `ready`."""

    counts: dict[str, Counts]
    spans: int
    ready: float
    seconds: float


class LineResult(msgspec.Struct, frozen=True):
    """Of the worker; `wall` from the first message sent to the last row written; `peak` memory in bytes."""

    counts: dict[str, Counts]
    steps: int
    dead_letters: dict[str, int]
    ready: float
    seconds: float
    wall: float
    peak: int


def machine() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} x {cpu}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}"
    )


def per_second(spans: int, seconds: float) -> str:
    return f"{spans / seconds:>9,.0f} spans per CPU second"


def core_lines(result: CoreResult, sent: int) -> list[str]:
    whole = sum(result.seconds.values())
    lines = ["CPU seconds by part (the steps in one process, without a broker):"]
    for part, seconds in sorted(result.seconds.items(), key=lambda one: -one[1]):
        lines.append(f"  {part:<12}{seconds:7.2f} s  {seconds / whole:5.0%}  {seconds / sent * 1e6:6.1f} us a span")
    lines.append(f"  {'together':<12}{whole:7.2f} s         {per_second(sent, whole)}")
    lines.append(f"state: {result.open_size:,} bytes of checkpoint for an open session of 20 spans")
    return lines


def settled_lines(cost: SettledCost) -> list[str]:
    named = (
        ("settled session", cost.session, " and 8 a span"),
        ("settled trace", cost.trace, ""),
        ("stated key", cost.key, ""),
    )
    return [
        f"{name + ':':<17}{one.checkpoint:4.0f} bytes of checkpoint, {one.memory:4.0f} of memory{more}; restored in "
        f"{one.restored:.0f} us   ({one.items:,} measured)"
        for name, one, more in named
    ]


def line_lines(line: LineResult, baseline: BaselineResult, sent: int) -> list[str]:
    ratio = baseline.seconds / line.seconds
    return [
        f"whole line        {line.seconds:7.2f} s  {per_second(sent, line.seconds)}"
        f"   (start-up {line.ready:.1f} s more; wall {line.wall:.0f} s, peak {line.peak / 2**20:,.0f} MiB)",
        f"hand-written loop {baseline.seconds:7.2f} s  {per_second(sent, baseline.seconds)}"
        f"   (start-up {baseline.ready:.1f} s more; no contracts, no store, and its state dies with it)",
        f"ratio             {ratio:7.2f}    the line does this share of the loop's spans per CPU second",
    ]
