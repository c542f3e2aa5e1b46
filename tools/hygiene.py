"""What no other tool looks for: modules too long to read, and words that belong to one machine.

The rule: no module of ours has more than 300 lines, and no file names a path of somebody's machine or the address of a
package registry, so that a clone works wherever it lies and whatever mirror it installs from.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 300

MACHINE_PATH = re.compile(r"(?<![\w.~}/-])/(?:root|work|home/\w+|Users/\w+)/[\w.]|\.\./shared\b")
REGISTRY = re.compile(
    r"\b(?:pypi\.(?:org|python\.org)|(?:files|test)\.pythonhosted\.org|registry\.(?:npmjs|yarnpkg)\.(?:org|com)"
    r"|(?:static\.|index\.)?crates\.io|proxy\.golang\.org|repo1?\.maven(?:\.apache)?\.org|deb\.debian\.org)\b"
)


def too_long(path: str, text: str) -> Iterator[str]:
    """A module of the pipeline or the schemas that must be split."""
    lines = text.count("\n")
    if path.startswith(("pipeline/", "schemas/")) and path.endswith(".py") and lines > MOST_LINES:
        yield f"{path}: {lines} lines, at most {MOST_LINES}: split it"


def of_one_machine(path: str, text: str) -> Iterator[str]:
    """Lines that name a machine's own path, or a registry."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in ((MACHINE_PATH, "a path of one machine"), (REGISTRY, "the address of a registry")):
            if found := pattern.search(line):
                yield f"{path}:{number}: {what}: {found.group()}"


def project_files(root: Path) -> list[str]:
    """What is committed or would be: ignored files are nobody's business."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=root, capture_output=True, check=True).stdout.decode()
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def check(root: Path) -> list[str]:
    """Every objection; binary files are not read."""
    objections: list[str] = []
    for name in project_files(root):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        objections.extend(too_long(name, text))
        objections.extend(of_one_machine(name, text))
    return objections


def main() -> int:
    """Print the objections; status 1 if there is one."""
    objections = check(ROOT)
    print("\n".join(objections), end="\n" if objections else "")
    return 1 if objections else 0


if __name__ == "__main__":
    sys.exit(main())
