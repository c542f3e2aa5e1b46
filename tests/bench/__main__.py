"""`make bench`: spans per CPU second of the whole line, beside a hand-written loop in the same run.

The rule this file keeps: a wrong result prints no figure and ends with 1.
"""

from __future__ import annotations

import argparse
import pstats
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from pipeline.embedded import Broker
from tests.bench import live
from tests.bench.families import Counts, differences
from tests.bench.report import (
    BaselineResult,
    CoreResult,
    SettledCost,
    core_lines,
    line_lines,
    machine,
    settled_lines,
)
from tests.bench.workload import Workload, generate

ALL = ("sessions", "claimed", "completed", "escalated", "reopened")
WITHOUT_CONTRACTS = tuple(name for name in ALL if name != "completed")
TOP = 40


def _child(module: str, *arguments: str) -> bytes:
    """Run a module of the benchmark in a process of its own; returns the last line that it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments], cwd=live.ROOT, capture_output=True
    )
    if ran.returncode:
        raise live.BenchFailed(f"{module} ended with {ran.returncode}: {ran.stderr.decode().strip()[-1500:]}")
    return ran.stdout.strip().splitlines()[-1]


def _check(
    who: str,
    counts: dict[str, Counts],
    spans: int,
    workload: Workload,
    names: tuple[str, ...],
    dead_letters: dict[str, int] | None = None,
) -> None:
    wrong = differences(counts, workload.truth, names)
    if spans != workload.distinct:
        wrong.append(f"{spans:,} spans, in truth {workload.distinct:,}")
    if wrong:
        wrong += [f"dead letters: {n:,} {reason}" for reason, n in (dead_letters or {}).items()]
        raise live.BenchFailed(f"{who} is wrong:\n  " + "\n  ".join(wrong))


def _core(workload: Workload, given: argparse.Namespace, profile: Path | None) -> list[str]:
    arguments = ["--sessions", str(given.sessions), "--seed", str(given.seed)]
    if profile is not None:
        arguments += ["--profile", str(profile)]
    result = msgspec.json.decode(_child("core_line", *arguments), type=CoreResult)
    _check("the line without a broker", result.counts, result.steps, workload, ALL)
    cost = msgspec.json.decode(_child("settled", "--seed", str(given.seed)), type=SettledCost)
    return core_lines(result, workload.sent) + settled_lines(cost)


def _line(workload: Workload, folder: Path, profile: Path | None) -> list[str]:
    with Broker() as broker:
        line = live.measure(broker.address, workload, folder, profile)
        _check("the line", line.counts, line.steps, workload, ALL, line.dead_letters)
        baseline = msgspec.json.decode(_child("baseline", broker.address), type=BaselineResult)
        _check("the hand-written loop", baseline.counts, baseline.spans, workload, WITHOUT_CONTRACTS)
    return line_lines(line, baseline, workload.sent)


def _profile(path: Path) -> None:
    pstats.Stats(str(path)).sort_stats("tottime").print_stats(TOP)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--core", action="store_true", help="without broker, worker and hand-written loop")
    parser.add_argument("--profile", action="store_true", help=f"the {TOP} functions that cost most; slows the run")
    given = parser.parse_args()
    print(machine())
    workload = generate(given.sessions, given.seed)
    print(
        f"{given.sessions:,} sessions, {workload.sent:,} spans sent in {len(workload.spans):,} messages "
        f"({workload.size / 2**20:,.0f} MiB), {len(workload.outcomes)} outcomes",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="trueup-bench-") as name:
        folder = Path(name)
        profile = folder / "profile" if given.profile else None
        try:
            if not given.core:
                print("\n".join(_line(workload, folder, profile)), flush=True)
            print("\n".join(_core(workload, given, profile if given.core else None)), flush=True)
        except live.BenchFailed as failed:
            print(f"no figure: {failed}", file=sys.stderr)
            return 1
        if profile is not None:
            _profile(profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
