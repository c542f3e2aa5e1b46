"""A stale generated file is found and named, and rewriting makes it fresh."""

import pytest

from tools.generated import Generated, run

FILE = Generated("names", ("-c", "import sys; open(sys.argv[1], 'w').write('a b')", "{out}"), "docs/names.md")
FOLDER = Generated(
    "boards",
    (
        "-c",
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(); (p / 'a.json').write_text('{}')",
        "{out}",
    ),
    "boards",
)


@pytest.fixture
def committed(tmp_path):
    run([FILE, FOLDER], check=False, root=tmp_path)
    return tmp_path


def test_what_was_just_written_is_fresh(committed):
    assert (committed / "docs/names.md").read_text() == "a b"
    assert run([FILE, FOLDER], check=True, root=committed)


@pytest.mark.parametrize("entry", [FILE, FOLDER], ids=["a file", "a folder"])
def test_what_was_never_written_is_stale_and_checking_does_not_write_it(tmp_path, entry):
    assert not run([entry], check=True, root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_edited_file_is_named_and_rewritten(committed, capsys):
    (committed / "docs/names.md").write_text("edited by hand")

    assert not run([FILE, FOLDER], check=True, root=committed)
    assert capsys.readouterr().out == "names: docs/names.md is stale\n"
    assert run([FILE], check=False, root=committed)
    assert run([FILE, FOLDER], check=True, root=committed)


def test_a_file_that_is_no_longer_made_is_stale_and_removed(committed):
    (committed / "boards/old.json").write_text("{}")

    assert not run([FOLDER], check=True, root=committed)
    run([FOLDER], check=False, root=committed)
    assert not (committed / "boards/old.json").exists()


@pytest.mark.parametrize(
    "code", ["raise SystemExit('no such metric')", "print('forgot to write')"], ids=["fails", "writes nothing"]
)
def test_a_generator_that_fails_is_not_taken_for_a_fresh_file(tmp_path, code, capsys):
    assert not run([Generated("broken", ("-c", code), "x.md")], check=True, root=tmp_path)
    assert "broken: `python -c" in capsys.readouterr().out
