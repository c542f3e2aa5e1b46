"""Every listed mistake in core makes a case fail, and without one all of them pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from tests.mutants.contract_mutants import CONTRACT_MUTANTS
from tests.mutants.mutants import MUTANTS, Mutant
from tests.mutants.outcome_mutants import OUTCOME_MUTANTS
from tests.mutants.revision_mutants import REVISION_MUTANTS
from tests.thorough import THOROUGH

EVERY = (*MUTANTS, *CONTRACT_MUTANTS, *OUTCOME_MUTANTS, *REVISION_MUTANTS)
ALL = EVERY if THOROUGH else EVERY[::2]
"""Every second one where time is short."""
ROOT = Path(__file__).parents[2]
FOLDERS = ("pipeline", "schemas", "tests/oracle", "tests/property", "tests/unit/core")
CASES_FAILED = 1  # pytest's exit code; another one means that nothing was tested


def copy_to(folder: Path) -> None:
    """Compiled once; what a mutant changes is told by its hash and compiled again."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compile_dir(folder / name, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    for name in ("tests/builders.py", "tests/thorough.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutants")
    copy_to(folder)
    return folder


def test_without_a_mistake_the_cases_pass(copy: Path) -> None:
    wanted = " or ".join(sorted({mutant.cases for mutant in ALL}))
    done = run(copy, *sorted({mutant.tests for mutant in ALL}), "-k", wanted)
    assert done.returncode == 0, done.stdout
    located = subprocess.run(
        [sys.executable, "-c", "import pipeline; print(pipeline.__file__)"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert Path(located.stdout.strip()).is_relative_to(copy)


@pytest.mark.parametrize("mutant", ALL, ids=lambda one: one.name.replace(" ", "-"))
def test_the_mistake_is_found(mutant: Mutant, copy: Path) -> None:
    file = copy / mutant.file
    right = (ROOT / mutant.file).read_text()
    assert right.count(mutant.old) == 1
    file.write_text(right.replace(mutant.old, mutant.new))
    try:
        done = run(copy, mutant.tests, "-k", mutant.cases)
    finally:
        file.write_text(right)
    assert done.returncode == CASES_FAILED, done.stdout
