"""The set-up of the examples says what it lacks and what stands in for it, and builds a Collector once."""

import shutil
from pathlib import Path

import pytest

from tools import examples
from tools.setup import MISSING, Missing

GO = """#!/bin/sh
echo "$@" >> "$0.log"
case "$1" in
version) echo "go version go{version} linux/amd64" ;;
install) mkdir -p "$GOBIN" && printf '#!/bin/sh\\necho built >> "$GOBIN/../otelcol-trueup"\\n' > "$GOBIN/builder" &&
    chmod +x "$GOBIN/builder" ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs, and a place of its own for what is built."""
    built = tmp_path / "collector"
    monkeypatch.setattr(examples, "BUILT", built)
    monkeypatch.setattr(examples, "COLLECTOR", built / "otelcol-trueup")
    monkeypatch.setattr(examples, "PARTS_BUILT", built / "parts")
    programs = tmp_path / "programs"
    programs.mkdir()
    for needed in ("mkdir", "chmod"):
        found = shutil.which(needed)
        assert found
        (programs / needed).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))  # and so no Go but what a test puts there
    return programs


def put_go(programs: Path, version: str) -> Path:
    go = programs / "go"
    go.write_text(GO.replace("{version}", version))
    go.chmod(0o755)
    return go


@pytest.mark.parametrize("version", ["", "1.19.8"], ids=["no Go", "an old Go"])
def test_where_there_is_no_go_it_says_what_stands_in(machine, version, capsys):
    if version:
        put_go(machine, version)

    assert examples.main(["collector"]) == 0
    assert "rotel stands in" in capsys.readouterr().out
    assert not examples.COLLECTOR.exists()


def test_the_collector_is_built_once_with_the_builder_of_its_own_version(machine):
    go = put_go(machine, "1.26.8")

    assert [examples.main(["collector"]), examples.main(["collector"])] == [0, 0]
    assert examples.COLLECTOR.read_text() == "built\n"
    [version] = [
        line.rpartition(" v")[2] for line in examples.PARTS.read_text().splitlines() if "/otlpreceiver " in line
    ]
    assert f"install {examples.BUILDER}@v{version}" in go.with_suffix(".log").read_text()


def test_it_is_built_anew_when_its_parts_change(machine):
    put_go(machine, "1.26.8")
    examples.main(["collector"])
    examples.PARTS_BUILT.write_text("of other parts")

    assert examples.main(["collector"]) == 0
    assert examples.COLLECTOR.read_text() == "built\nbuilt\n"


def test_what_is_missing_is_named(monkeypatch, capsys):
    def lacking() -> int:
        raise Missing("Python 3.11 is needed")

    monkeypatch.setitem(examples.STEPS, "environment", lacking)

    assert examples.main(["environment"]) == MISSING
    assert capsys.readouterr().err == "examples: Python 3.11 is needed\n"


@pytest.mark.parametrize("arguments", [[], ["all"], ["test", "now"]], ids=["none", "unknown", "two"])
def test_what_it_does_not_know_it_says(arguments, capsys):
    assert examples.main(arguments) == MISSING
    assert "environment|collector|test" in capsys.readouterr().err
