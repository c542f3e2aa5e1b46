"""`make test-monitoring`: alert rules, dashboards, runbooks and metric names, held against a running demo.

It keeps one rule: what it needs is installed and said, or named with exit status 2; it is never left out in silence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "grafana" / "alerts"
PACKAGE = "prometheus"  # Debian's package of Prometheus and promtool
MISSING = 2


def main() -> int:
    promtool = shutil.which("promtool") or installed_promtool()
    if promtool is None:
        return MISSING
    rules = sorted(RULES.glob("*.rules.yml"))
    rule_tests = sorted(RULES.glob("*.rules_test.yml"))
    if not rules or not rule_tests:  # promtool itself only warns when a pattern matches nothing
        print(f"no rules or no rule tests in {RULES.relative_to(ROOT)}", file=sys.stderr)
        return 1
    steps = [
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", *map(str, rules)],
        [promtool, "test", "rules", *map(str, rule_tests)],
        [sys.executable, "-m", "pytest", "tests/monitoring", "-q"],
    ]
    failed = [step for step in steps if not succeeds(step)]
    for step in failed:
        print(f"failed: {' '.join(step)}", file=sys.stderr)
    return 1 if failed else 0


def installed_promtool() -> str | None:
    """Install Debian's package as root; otherwise name it."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        print(f"promtool is missing: install the package `{PACKAGE}` (Debian, Ubuntu) or a Prometheus release")
        return None
    print(f"promtool is missing: installing the package `{PACKAGE}`", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([apt, "update", "-qq"], [apt, "install", "-y", "-qq", "--no-install-recommends", PACKAGE]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"`{' '.join(command)}` failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
    return shutil.which("promtool")


def succeeds(command: list[str]) -> bool:
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
