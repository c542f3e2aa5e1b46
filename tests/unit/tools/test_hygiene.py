"""Too long modules, paths of one machine and registry addresses are found; what only looks like them is not."""

import subprocess

import pytest

from tools.hygiene import check, of_one_machine, too_long


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "work/main",
        'path = "/' + 'home/ann/trueup"',
        "see ../" + "shared/seeds",
        "--index-url https://py" + "pi.org/simple",
        "files.python" + "hosted.org",
        "https://repo.ma" + "ven.apache.org/maven2",
    ],
)
def test_words_of_one_machine_are_found_with_their_line(line):
    (objection,) = of_one_machine("README.md", f"fine\n{line}\n")

    assert objection.startswith("README.md:2: ")


@pytest.mark.parametrize(
    "line",
    [
        "https://example.com/" + "work/items",
        "import os.path",
        "xmlns=http://ma" + "ven.apache.org/POM/4.0.0",
        "/var/lib/trueup",
        "${HOME}/" + "work/x",
        "the /" + "work endpoint",
    ],
)
def test_what_only_looks_like_it_is_not(line):
    assert list(of_one_machine("README.md", line)) == []


@pytest.mark.parametrize(
    ("path", "lines", "objected"),
    [
        ("pipeline/core/a.py", 300, 0),
        ("pipeline/core/a.py", 301, 1),
        ("schemas/a.py", 301, 1),
        ("tests/unit/test_a.py", 301, 0),
        ("pipeline/sinks/migrations/0001.sql", 301, 0),
    ],
)
def test_only_our_modules_have_a_length_limit(path, lines, objected):
    assert len(list(too_long(path, "x\n" * lines))) == objected


def test_ignored_and_binary_files_are_nobodys_business(tmp_path):
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    for name in ("build/a.txt", "a.txt"):
        (tmp_path / name).write_text("/" + "root/x\n")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\xff /" + b"root/x")

    assert [objection.split(":")[0] for objection in check(tmp_path)] == ["a.txt"]
