"""`make test-examples`: the agents, the webhook and the Collector of `examples/`, end to end against a running trueup.

    python -m tools.examples environment   examples/.venv, with exactly what examples/requirements.lock pins
    python -m tools.examples collector     the OpenTelemetry Collector, from Go modules, once; minutes the first time
    python -m tools.examples test          both, then the tests

It keeps one rule: what it installs is said, what is missing is named (exit 2), and what stands in for it is named, too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from re import search

from tools.setup import MISSING, Missing, check_disk, make_environment, this_machine

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PYTHON = EXAMPLES / ".venv" / "bin" / "python"
STAMP = EXAMPLES / ".venv" / ".trueup-examples"

PARTS = ROOT / "deploy" / "collector" / "builder.yaml"
BUILT = ROOT / "build" / "collector"  # as PARTS says
COLLECTOR = BUILT / "otelcol-trueup"
PARTS_BUILT = BUILT / "parts"
BUILDER = "go.opentelemetry.io/collector/cmd/builder"
OLDEST_GO = (1, 21)  # from here on Go fetches the newer Go that a module asks for
NO_GO = "examples: there is no Go 1.21 or newer here to build the OpenTelemetry Collector with; rotel stands in for it"


def environment() -> int:
    """Bring `examples/.venv` to what its lock says.

    Raises:
        Missing: no Python that suits, or no room.
    """
    lock = EXAMPLES / "requirements.lock"
    wanted = digest(lock)
    if STAMP.exists() and STAMP.read_text("ascii") == wanted:
        return 0
    machine = this_machine()
    check_disk(machine, EXAMPLES)
    python = make_environment(machine, EXAMPLES)
    print(f"examples: installing the packages of {lock.relative_to(ROOT)} (a minute the first time)", flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if status := machine.run([*pip, "--require-hashes", "-r", str(lock)]):
        print("examples: that failed; what pip says above is why. Run this again", file=sys.stderr)
        return status
    STAMP.write_text(wanted, "ascii")
    return 0


def collector() -> int:
    """Build the Collector, unless the one that is there has the parts that are asked for."""
    wanted = digest(PARTS)
    if COLLECTOR.exists() and PARTS_BUILT.exists() and PARTS_BUILT.read_text("ascii") == wanted:
        return 0
    go = suitable_go()
    if go is None:
        print(NO_GO, flush=True)
        return 0
    found = search(r"/otlpreceiver (v\S+)", PARTS.read_text("utf-8"))
    if found is None:
        raise Missing(f"{PARTS.relative_to(ROOT)} names no otlpreceiver, whose version is the builder's")
    print(f"examples: building {COLLECTOR.name} from Go modules (minutes the first time)", flush=True)
    tools = BUILT / "bin"
    for command in (
        [go, "install", f"{BUILDER}@{found[1]}"],
        [str(tools / "builder"), f"--config={PARTS}"],
    ):
        chosen = {**os.environ, "GOBIN": str(tools), "CGO_ENABLED": "0"}
        done = subprocess.run(command, cwd=ROOT, env=chosen, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}".rstrip(), file=sys.stderr)
            return done.returncode
    PARTS_BUILT.write_text(wanted, "ascii")
    return 0


def suitable_go() -> str | None:
    """Go's path, if it is here and can build a Collector."""
    go = shutil.which("go")
    if go is None:
        return None
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = search(r"go(\d+)\.(\d+)", said)
    return go if found and (int(found[1]), int(found[2])) >= OLDEST_GO else None


def test() -> int:
    """The tests, once all that they need is there."""
    for step in (environment, collector):
        if status := step():
            return status
    command = [sys.executable, "-m", "pytest", "tests/services/examples", "-q"]
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def digest(path: Path) -> str:
    """Changes when the file does."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


STEPS = {"environment": environment, "collector": collector, "test": test}


def main(arguments: list[str]) -> int:
    """Do one of the steps."""
    if len(arguments) != 1 or arguments[0] not in STEPS:
        print(f"usage: python -m tools.examples {'|'.join(STEPS)}", file=sys.stderr)
        return MISSING
    try:
        return STEPS[arguments[0]]()
    except Missing as missing:
        print(f"examples: {missing}", file=sys.stderr)
        return MISSING


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
