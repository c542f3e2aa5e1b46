"""`make check`: everything that can be known without running the pipeline, in under a minute.

The rule: every step runs, even after one failed, and only those that failed speak.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Step:
    """One check: arguments to this Python, and what to do when it fails."""

    name: str
    command: tuple[str, ...]
    advice: str


STEPS: tuple[Step, ...] = (
    Step("format", ("-m", "ruff", "format", "--check", "."), "`make fix` formats"),
    Step("lint", ("-m", "ruff", "check", "."), "`make fix` repairs most"),
    Step("types", ("-m", "mypy"), "strict types, see pyproject.toml"),
    Step("layers", ("-m", "tools.layers"), "imports point right, see tools/layers.py"),
    Step("hygiene", ("-m", "tools.hygiene"), "see tools/hygiene.py"),
    Step("generated", ("-m", "tools.generated", "--check"), "`make fix` rewrites"),
)


def run(step: Step, root: Path = ROOT) -> bool:
    """Whether the step passed; prints one line, and all it said if it did not."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, *step.command],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        print(f"FAILED {step.name} ({seconds:.1f} s): {step.advice}\n{done.stdout.rstrip()}", flush=True)
        return False
    print(f"ok     {step.name} ({seconds:.1f} s)", flush=True)
    return True


def main() -> int:
    """Run all; status 1 if one failed."""
    passed = [run(step) for step in STEPS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
