"""Resolves `requirements.lock` from `pyproject.toml`: every package of run and development, pinned, with its hashes.

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
RESOLVER = "uv==0.13.9"
OLDEST_PYTHON = "3.11"


def command(uv: Path, upgrade: bool) -> list[str]:
    """The resolver's command line; its working directory is the root of the project."""
    options = ["--extra", "dev", "--universal", "--python-version", OLDEST_PYTHON, "--only-binary", ":all:"]
    plain = ["--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet"]
    newest = ["--upgrade"] if upgrade else []
    return [str(uv), "pip", "compile", "pyproject.toml", *options, *plain, *newest, "--output-file", LOCK]


def main() -> int:
    """Resolve anew, with a resolver that lives only as long as this takes."""
    parser = argparse.ArgumentParser(description="Resolve requirements.lock from pyproject.toml.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trueup-lock-") as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / "bin"
        for argv in (
            [str(programs / "python"), "-m", "pip", "install", "--quiet", RESOLVER],
            command(programs / "uv", arguments.upgrade),
        ):
            status = subprocess.run(argv, cwd=ROOT, check=False).returncode
            if status:
                print(f"lock: `{' '.join(argv)}` failed; {LOCK} is as it was", file=sys.stderr)
                return status
    print(f"lock: {LOCK} is resolved; `make setup` installs it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
