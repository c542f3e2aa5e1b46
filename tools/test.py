"""`make test`: all that needs nothing but Python, as runs of pytest beside one another.

The laws and the cases keep two cores busy; demos and live tests wait for brokers and clocks most of the time. Each
run's output is shown whole when it ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
LAWS = ("tests/property",)
HALF_OF_THE_LAWS = "test_law_of_[clt]*.py"
MUTANTS = ("tests/mutants",)
DEMOS = ("tests/bench", "tests/simulation")
LIVE = ("tests/live",)
ELSEWHERE = ("tests/services", "tests/monitoring")
"""They need more than Python and have targets of their own."""
LOOK_SECONDS = 0.2
REPEATABLE = {"PYTHONHASHSEED": "0"}
"""Sets are walked in the same order in every run, so that a law that fails fails again."""


def groups(root: Path = ROOT) -> dict[str, list[str]]:
    """What each run is given: every folder below `tests` that holds tests is in exactly one group, or elsewhere."""
    named = {"laws": LAWS, "mutants": MUTANTS, "demos": DEMOS, "live": LIVE}
    others = sorted(
        f"tests/{folder.name}"
        for folder in (root / "tests").iterdir()
        if folder.is_dir()
        and f"tests/{folder.name}" not in (*LAWS, *MUTANTS, *DEMOS, *LIVE, *ELSEWHERE)
        and any(folder.rglob("test_*.py"))
    )
    there = {name: [folder for folder in folders if (root / folder).is_dir()] for name, folders in named.items()}
    return {name: folders for name, folders in {**there, "cases": others}.items() if folders}


def runs() -> dict[str, list[str]]:
    """What pytest is told by run: a group each, the laws in two runs that take about as long."""
    found = groups()
    half = sorted(str(file.relative_to(ROOT)) for folder in LAWS for file in (ROOT / folder).glob(HALF_OF_THE_LAWS))
    laws = [*found.pop("laws"), *(f"--ignore={file}" for file in half)]
    return {"laws": laws, "more laws": half, **found}


def main(more: Sequence[str] = ()) -> int:
    """Run all groups; the status is the first that is not 0."""
    began = time.monotonic()
    with ExitStack() as files:
        outputs = {name: files.enter_context(tempfile.TemporaryFile("w+")) for name in runs()}
        return _run(outputs, more, began)


def _run(outputs: Mapping[str, IO[str]], more: Sequence[str], began: float) -> int:
    running = {}
    for name, told in runs().items():
        print(f"{name}: pytest {' '.join(told)}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", *told, *more]
        running[name] = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **REPEATABLE}, stdout=outputs[name], stderr=subprocess.STDOUT
        )
    statuses: dict[str, int] = {}
    while len(statuses) < len(running):
        time.sleep(LOOK_SECONDS)
        for name, process in running.items():
            if name not in statuses and (status := process.poll()) is not None:
                statuses[name] = status
                outputs[name].seek(0)
                print(f"\n== {name}, after {time.monotonic() - began:.0f} s\n{outputs[name].read()}", flush=True)
    return next((status for status in statuses.values() if status), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
