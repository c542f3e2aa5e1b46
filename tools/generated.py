"""Files made from code: how each is made, and whether the committed one is still what the code says.

The rule: what can be generated is, and nobody edits it. `python -m tools.generated` rewrites all of them; `--check`
rewrites none and fails if one is stale (`make check`). A command writes to the path that takes `{out}`'s place.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Generated:
    """One file or folder: `command` are arguments to this Python, `output` is relative to the root."""

    name: str
    command: tuple[str, ...]
    output: str


DASHBOARDS = (
    "import pathlib, sys, grafana.build.__main__ as b; b.FOLDER = pathlib.Path(sys.argv[1]); sys.exit(b.main([]))"
)

GENERATED: tuple[Generated, ...] = (Generated("dashboards", ("-c", DASHBOARDS, "{out}"), "grafana/dashboards"),)


class GeneratorError(Exception):
    """A generator failed; the text is what it said."""


def make(entry: Generated, out: Path, root: Path = ROOT) -> None:
    """Run one generator.

    Raises:
        GeneratorError: it failed, or made nothing.
    """
    arguments = [argument.replace("{out}", str(out)) for argument in entry.command]
    done = subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GeneratorError(f"`python {' '.join(entry.command)}` failed:\n{done.stdout}{done.stderr}".rstrip())
    if not out.exists():
        raise GeneratorError(f"`python {' '.join(entry.command)}` wrote nothing to {{out}}")


def contents(path: Path) -> dict[str, bytes]:
    """The files at or below a path by their relative names; empty if there is nothing."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def stale(entry: Generated, root: Path = ROOT, rewrite: bool = False) -> list[str]:
    """The files of one entry that are not what its generator makes now; `rewrite` puts them right."""
    target = root / entry.output
    with tempfile.TemporaryDirectory(prefix="trueup-generated-") as folder:
        out = Path(folder) / target.name
        make(entry, out, root)
        fresh, committed = contents(out), contents(target)
    wrong = [name for name in sorted(fresh.keys() | committed.keys()) if fresh.get(name) != committed.get(name)]
    for name in wrong if rewrite else ():
        path = target / name
        if name in fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fresh[name])
        else:
            path.unlink()
    return [str(Path(entry.output) / name) for name in wrong]


def run(entries: Iterable[Generated], check: bool, root: Path = ROOT) -> bool:
    """Check or rewrite all, and say what was stale; whether all is well."""
    well = True
    for entry in entries:
        try:
            names = stale(entry, root, rewrite=not check)
        except GeneratorError as error:
            print(f"{entry.name}: {error}")
            well = False
            continue
        for name in names:
            print(f"{entry.name}: {name} {'is stale' if check else 'rewritten'}")
        well = well and not (check and names)
    return well


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite all, or check all; status 1 if one is stale or failed."""
    parser = argparse.ArgumentParser(description="Rewrite the generated files.")
    parser.add_argument("--check", action="store_true", help="rewrite none; fail if one is stale")
    return 0 if run(GENERATED, parser.parse_args(arguments).check) else 1


if __name__ == "__main__":
    sys.exit(main())
