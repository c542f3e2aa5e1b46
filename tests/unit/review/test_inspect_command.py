"""`trueup inspect` over recorded spans: one table of what is understood, what is lost, and why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.cli.worker import options_of
from pipeline.settings import Settings
from tests.unit.core.ingest_support import json_request, json_span

GOLDEN = Path(__file__).parents[2] / "golden"
WITHOUT_IDS = GOLDEN / "otel-google-genai" / "traces.otlp.pb"
GIVE = "give what an exporter sends, as protobuf or JSON"
WITH_IDS = GOLDEN / "langfuse-v3-openai" / "traces.otlp.pb"


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["inspect", *arguments])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


def test_one_table_tells_what_is_understood_and_what_is_lost_and_why() -> None:
    lines = said(str(WITH_IDS), str(WITHOUT_IDS)).splitlines()
    heads = [column for column in lines[1].split("  ") if column.strip()]
    words = " ".join(" ".join(lines).split())

    assert [head.strip() for head in heads] == ["file", "understood", "lost", "why"]
    assert words.count("understood") == 1
    for part in ("24 spans; 2 sessions;", "nothing", "11 spans; 4 sessions;", "4 no_conversation_id", "no span of"):
        assert part in words


def test_every_recorded_file_is_a_row_of_one_table() -> None:
    files = sorted(GOLDEN.glob("*/*.pb"))
    text = "".join(said(*map(str, files)).split())

    assert text.count("understood") == 1
    assert len(files) > 40
    assert "43logrecords;6answerstoldof" in text
    assert "nototlp" not in text.replace("_", "")


def test_files_are_read_as_one_on_request() -> None:
    folder = GOLDEN / "otel-evaluation-events"
    names = [str(folder / f"{what}.otlp.pb") for what in ("logs", "traces")]
    [file] = json.loads(said("--together", *names, "--format", "json"))["files"]

    assert (file["file"], file["log_records"], len(file["evaluations"])) == (" + ".join(names), 3, 3)
    assert "3 log records" in " ".join(said("--together", *names).split())


def test_json_tells_session_by_session() -> None:
    [file] = json.loads(said(str(WITH_IDS), "--format", "json"))["files"]

    assert (file["file"], file["spans"], file["lost"]) == (str(WITH_IDS), 24, [])
    assert [session["session_id"] for session in file["sessions"]] == [
        "langfuse-v3-openai-s100",
        "langfuse-v3-openai-s101",
    ]


def test_a_users_own_attributes_are_heeded_as_a_worker_heeds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, config = tmp_path / "spans.json", tmp_path / "trueup.toml"
    spans.write_bytes(json_request(json_span({"acme.kind": "agent", "acme.agent": "triage", "acme.chat": "c"})))
    config.write_text('[aliases]\nkind = "acme.kind"\nagent = "acme.agent"\nconversation = "acme.chat"\n')
    asked = [str(spans), "--format", "json"]

    [session] = json.loads(said(*asked, "--config", str(config)))["files"][0]["sessions"]
    assert (session["session_id"], session["agents"]) == ("c", ["triage"])
    monkeypatch.setenv("TRUEUP_ALIASES", "kind=acme.kind")
    [session] = json.loads(said(*asked))["files"][0]["sessions"]
    assert (session["session_id"], session["agents"]) == (None, [])
    assert options_of(Settings(aliases={"kind": ("x",)}, subject_key="k" * 16), True).aliases == {"kind": ("x",)}


def test_an_alias_that_cannot_be_meant_ends_in_one_line(tmp_path: Path) -> None:
    spans, config = tmp_path / "spans.json", tmp_path / "trueup.toml"
    spans.write_bytes(json_request(json_span()))
    config.write_text('[aliases]\nagnet = "acme.agent"\n')
    command = [sys.executable, "-m", "pipeline", "inspect", str(spans), "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.strip().splitlines()
    assert f"{config}: aliases" in line
    assert "'agnet' takes no attribute keys; those that do: agent" in line


def test_where_nothing_can_be_read_each_file_is_told_and_the_status_is_2(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    for form in ("table", "json"):
        done = CliRunner().invoke(app, ["inspect", "nowhere.pb", str(notes), str(tmp_path), "--format", form])

        assert done.exit_code == 2
        assert [line.split(": ", 2)[1:] for line in done.stderr.splitlines()] == [
            [str(notes), "is plain text, and no OTLP spans or log records; " + GIVE],
            ["nowhere.pb", "cannot be read: No such file or directory; name files of OTLP spans"],
            [str(tmp_path), "cannot be read: Is a directory; name files of OTLP spans"],
        ]
        assert form == "table" or all(one["unreadable"] for one in json.loads(done.stdout)["files"])
        assert form == "json" or done.stdout == ""


@pytest.mark.parametrize("together", [[], ["--together"]])
def test_what_cannot_be_read_keeps_nothing_else_from_being_read(tmp_path: Path, together: list[str]) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    done = CliRunner().invoke(app, ["inspect", "nowhere.pb", str(notes), str(WITH_IDS), *together])

    assert done.exit_code == 0
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [str(notes), "nowhere.pb"]
    assert "24 spans; 2 sessions;" in " ".join(done.stdout.split())
    assert "notes.txt" not in done.stdout


def test_help_has_an_example() -> None:
    assert "Example: trueup inspect spans.pb" in said("--help")
