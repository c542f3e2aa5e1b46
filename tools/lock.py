"""Resolves the locks: every package of run and development, and those of the examples, pinned, with their hashes.

`requirements.lock` from `pyproject.toml`, `examples/requirements.lock` from `examples/requirements.txt`; `--only` one.
The rule: one lock for every supported Python and platform, wheels only, and no word on where they came from.
`--upgrade` takes the newest versions; without it, pins that still fit stay.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"
EXAMPLES_LOCK = "examples/requirements.lock"
LOCKS = {LOCK: "pyproject.toml", EXAMPLES_LOCK: "examples/requirements.txt"}
"""Lock -> what it pins."""
RESOLVER = "uv==0.13.9"
OLDEST_PYTHON = "3.11"


def command(uv: Path, upgrade: bool, lock: str = LOCK) -> list[str]:
    """The resolver's command line; its working directory is the root of the project."""
    asked = LOCKS[lock]
    extra = ["--extra", "dev"] if asked.endswith(".toml") else []
    options = [*extra, "--universal", "--python-version", OLDEST_PYTHON, "--only-binary", ":all:"]
    plain = ["--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet"]
    newest = ["--upgrade"] if upgrade else []
    return [str(uv), "pip", "compile", asked, *options, *plain, *newest, "--output-file", lock]


def main() -> int:
    """Resolve anew, with a resolver that lives only as long as this takes."""
    parser = argparse.ArgumentParser(description="Resolve the locks of the project and of its examples.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    parser.add_argument("--only", choices=LOCKS, help="leave the other as it is")
    arguments = parser.parse_args()
    locks = [arguments.only] if arguments.only else list(LOCKS)
    with tempfile.TemporaryDirectory(prefix="trueup-lock-") as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        for argv in (
            [str(programs / "python"), "-m", "pip", "install", "--quiet", RESOLVER],
            *(command(programs / "uv", arguments.upgrade, lock) for lock in locks),
        ):
            status = subprocess.run(argv, cwd=ROOT, check=False).returncode
            if status:
                print(f"lock: `{' '.join(argv)}` failed", file=sys.stderr)
                return status
    print(f"lock: {' and '.join(locks)} resolved; `make setup` and `make test-examples` install them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
