"""Makes `.venv` with exactly the packages of `requirements.lock`: what `make setup` runs, and what works without make.

The rule: look first, then touch. What is missing is named in one line with the package that brings it (status 2), an
environment that is up to date is left alone, and none is ever deleted. Needs only the standard library, and is written
in the syntax of Python 3.9 so that an old Python can still say what it lacks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("python3.11", "python3.12", "python3.13")
DISK_NEEDED_BYTES = 2 * 10**9
STAMP = ".trueup-setup"
PROBE = (
    "import importlib.util as u, sys;"
    "print(sys.version_info[0], sys.version_info[1], int(bool(u.find_spec('venv') and u.find_spec('ensurepip'))))"
)
MISSING = 2


class Version(NamedTuple):
    """Of a Python: 3 and 11 are 3.11."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Interpreter(NamedTuple):
    """A Python found on this machine, and whether it can make environments (Debian splits that off)."""

    command: str
    version: Version
    makes_environments: bool


class Machine(NamedTuple):
    """What the checks look at; the tests put their own in its place."""

    running: str
    which: Callable[[str], Optional[str]]
    probe: Callable[[str], Optional[Interpreter]]
    free_bytes: Callable[[Path], int]
    run: Callable[[list[str]], int]


class Missing(Exception):
    """The one thing this machine lacks; its text says what to do."""


def probe(command: str) -> Optional[Interpreter]:
    """Ask a Python for its version; `None` if it does not run (a shim without a version behind it, say)."""
    try:
        answer = subprocess.run([command, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        major, minor, makes = answer.stdout.decode().split()
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None
    return Interpreter(command, Version(int(major), int(minor)), makes == "1")


def this_machine() -> Machine:
    """The real one."""

    def run(argv: list[str]) -> int:
        return subprocess.run(argv, cwd=str(ROOT), check=False).returncode

    def free_bytes(path: Path) -> int:
        return shutil.disk_usage(str(path)).free

    return Machine(sys.executable, shutil.which, probe, free_bytes, run)


def suits(version: Version) -> bool:
    """Whether the lock has wheels for this Python."""
    return Version(3, 11) <= version <= Version(3, 13)


def choose_interpreter(machine: Machine) -> Interpreter:
    """The running Python if it suits, else the first that does.

    Raises:
        Missing: none suits, or those that do cannot make environments.
    """
    found = [machine.probe(machine.running)]
    found += [machine.probe(path) for path in map(machine.which, NAMES) if path]
    suitable = [python for python in found if python is not None and suits(python.version)]
    for python in suitable:
        if python.makes_environments:
            return python
    if suitable:
        name = f"python{suitable[0].version}"
        raise Missing(
            f"{name} is here, but not the part that makes environments (venv, ensurepip). "
            f"Debian/Ubuntu: apt-get install python3-venv (or {name}-venv, where {name} is not the system's own)"
        )
    running = f"this is {found[0].version}" if found[0] else "this one does not run"
    raise Missing(
        f"Python 3.11, 3.12 or 3.13 is needed, and {running}. "
        "Debian/Ubuntu: apt-get install python3.11-venv; Fedora: dnf install python3.11"
    )


def check_disk(machine: Machine, root: Path) -> None:
    """
    Raises:
        Missing: too little free space for the packages.
    """
    free = machine.free_bytes(root)
    if free < DISK_NEEDED_BYTES:
        raise Missing(
            f"{DISK_NEEDED_BYTES / 1e9:.0f} GB of free disk are needed at {root}, and {free / 1e9:.1f} GB are free: "
            "make room, or clone to a larger disk"
        )


def wanted_stamp(root: Path) -> str:
    """Changes when the packages do, or how the project itself is installed."""
    digest = hashlib.sha256()
    for name in ("requirements.lock", "pyproject.toml"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def make_environment(machine: Machine, root: Path) -> Path:
    """Find or make `.venv`; the path of its Python.

    Raises:
        Missing: see `choose_interpreter`; or the `.venv` that is there is not usable.
    """
    folder = root / ".venv"
    inside = folder / "bin" / "python"
    if folder.exists():
        python = machine.probe(str(inside))
        if python is None or not suits(python.version):
            was = "does not run" if python is None else f"is Python {python.version}"
            raise Missing(f"the environment {folder} {was}: remove that folder, then run this again")
        print(f"setup: using {folder} (Python {python.version})", flush=True)
        return inside
    python = choose_interpreter(machine)
    print(f"setup: making {folder} with {python.command} ({python.version})", flush=True)
    if machine.run([python.command, "-m", "venv", str(folder)]):
        raise Missing(f"{python.command} could not make {folder}. Debian/Ubuntu: apt-get install python3-venv")
    return inside


def set_up(machine: Machine, root: Path) -> int:
    """Bring `.venv` to what the lock says; 0 when it is there, 1 when installing failed, 2 when something lacks."""
    stamp = root / ".venv" / STAMP
    wanted = wanted_stamp(root)
    if (
        stamp.exists()
        and stamp.read_text(encoding="ascii") == wanted
        and os.access(str(stamp.parent / "bin/python"), os.X_OK)
    ):
        return 0
    try:
        check_disk(machine, root)
        python = make_environment(machine, root)
    except Missing as missing:
        print(f"setup: {missing}", file=sys.stderr)
        return MISSING
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for what, arguments in (
        (
            "installing the packages of requirements.lock (a few minutes the first time)",
            ["--require-hashes", "-r", "requirements.lock"],
        ),
        ("installing trueup itself, editable", ["--no-index", "--no-deps", "--no-build-isolation", "--editable", "."]),
    ):
        print(f"setup: {what}", flush=True)
        if machine.run([*pip, *arguments]):
            print(
                "setup: that failed; what pip says above is why. Nothing was deleted: run this again", file=sys.stderr
            )
            return 1
    stamp.write_text(wanted, encoding="ascii")
    print("setup: done; `make demo` shows it at work", flush=True)
    return 0


def main() -> int:
    """Set this work tree up."""
    return set_up(this_machine(), ROOT)


if __name__ == "__main__":
    sys.exit(main())
