"""`make test` leaves no folder of tests out, and runs none twice."""

from __future__ import annotations

from pathlib import Path

from tools.test import ELSEWHERE, ROOT, groups, runs


def test_every_folder_of_tests_is_in_one_group_or_elsewhere() -> None:
    named = [folder for folders in groups().values() for folder in folders]
    found = {f"tests/{path.relative_to(ROOT / 'tests').parts[0]}" for path in (ROOT / "tests").rglob("test_*.py")}

    assert len(named) == len(set(named))
    assert set(named) | set(ELSEWHERE) >= found
    assert not set(named) & set(ELSEWHERE)


def test_the_two_runs_of_laws_are_all_laws_and_none_twice() -> None:
    told = runs()
    laws, more = told["laws"], told["more laws"]

    assert laws[0] == "tests/property"
    assert more
    assert {f"--ignore={file}" for file in more} == set(laws[1:])
    assert all((ROOT / file).is_file() for file in more)


def test_a_new_folder_is_run_with_the_cases(tmp_path: Path) -> None:
    for folder in ("property", "fresh", "empty", "services"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    for folder in ("property", "fresh", "services"):
        (tmp_path / "tests" / folder / "test_x.py").touch()

    assert groups(tmp_path) == {"laws": ["tests/property"], "cases": ["tests/fresh"]}
