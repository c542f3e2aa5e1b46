"""What docs/instrument.md shows does what it says; so does catching spans for `trueup inspect`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipeline.core.dialects.otel_genai import CONVERSATION_KEYS
from pipeline.settings import load
from schemas.outcome import OutcomeEvent, OutcomeKind
from tests.live.test_live import PATIENCE_SECONDS
from tests.services.examples.conftest import ROOT, Trueup, bare
from tests.services.examples.test_agents import CASES, Case
from tools.examples import EXAMPLES

PAGE = (ROOT / "docs" / "instrument.md").read_text("utf-8")


def shown(language: str) -> str:
    """The one block of the page in that language."""
    [block] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_agent_on_the_page_arrives_and_is_judged(live: Trueup, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(shown("python"), "utf-8")
    done = subprocess.run(
        [sys.executable, str(program), "page-1", "A-page-1"],
        env={**bare(), "OTEL_EXPORTER_OTLP_ENDPOINT": live.gateway},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    live.report(**json.loads(shown("json")) | {"correlation": {"order_id": "A-page-1"}})
    verdict = live.revision("page-1", 1)["verdict"]

    assert (verdict["agents"], verdict["tools"], verdict["models"]) == (
        ["order_agent"],
        ["create_order"],
        ["gpt-4o-mini"],
    )
    assert (verdict["family"], verdict["claim"], verdict["input_tokens"]) == ("order_placement", "completed", 412)


def test_the_outcome_on_the_page_is_one_and_every_kind_is_explained() -> None:
    event = OutcomeEvent.model_validate_json(shown("json"))

    assert event.correlation == {"order_id": "A-100"}
    explained = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE))))
    assert {kind.value for kind in OutcomeKind} <= explained


def test_the_aliases_on_the_page_are_settings() -> None:
    aliases = tomllib.loads(shown("toml"))["aliases"]

    assert load({}, None, {"aliases": aliases}).aliases == {name: tuple(keys) for name, keys in aliases.items()}


def test_the_page_names_every_attribute_that_holds_a_conversation_id() -> None:
    listed = PAGE[PAGE.index("## 2.") : PAGE.index("Half of all")]
    found = [
        f"{start}{end}"
        for start, ends in re.findall(r"`([\w.]+)(?:\{([\w,\s]+)\})?`", listed)
        for end in (re.split(r",\s*", ends) if ends else [""])
    ]

    assert found == list(CONVERSATION_KEYS)


def test_the_times_on_the_page_are_those_of_the_file() -> None:
    quick, usual = load({}, EXAMPLES / "minutes.toml"), load({})
    rows = dict(re.findall(r"^\|[^|]+\| `(\w+)` \| ([^|]+ \| [^|]+) \|$", PAGE, re.MULTILINE))

    units = {"s": 1, "min": 60, "h": 3600}
    for name in ("closing_grace", "session_gap", "idle_after"):
        told = [int(number) * units[unit] for number, unit in re.findall(r"(\d+) (s|min|h)\b", rows[name])]
        assert told == [getattr(usual, name).total_seconds(), getattr(quick, name).total_seconds()]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_an_example_sends_is_caught_and_understood_whole(python: str, case: Case, tmp_path: Path) -> None:

    folder = tmp_path / "spans"
    agent = [python, "examples/stub_model.py", python, f"examples/{case.name}/agent.py", "chat-1"]
    caught = subprocess.run(
        [sys.executable, "examples/catch_spans.py", str(folder), *agent],
        cwd=ROOT,
        env=bare(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    files = sorted(folder.iterdir())
    assert (caught.returncode, caught.stderr) == (0, f"{len(files)} requests in {folder}\n")
    inspected = subprocess.run(
        [sys.executable, "-m", "pipeline", "inspect", "--together", "--format", "json", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    [seen] = json.loads(inspected.stdout)["files"]

    assert seen["lost"] == []
    [session] = seen["sessions"]
    assert (session["session_id"], session["runs"]) == ("chat-1", 2)
