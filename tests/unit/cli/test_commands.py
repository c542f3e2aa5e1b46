"""The command line, as a process: help with examples, and errors in one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.embedded.broker import Broker
from pipeline.embedded.ports import free_port, holder_of

ROOT = Path(__file__).parents[3]
COMMANDS = [["up"], ["forget"], ["demo"], ["worker"], ["gateway"], ["sink"], ["migrate"], ["contracts", "check"]]


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    done = run(*command, "--help")

    assert done.returncode == 0, done.stderr
    assert "Example: " in done.stdout
    assert f"trueup {' '.join(command)}" in done.stdout
    assert "--kill-at" not in done.stdout
    assert "--preload" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["demo", "--sessions", "0"], "--sessions", id="out of range"),
        pytest.param(["demo", "--world", "mars"], "there is no world mars; there is: week", id="unknown world"),
        pytest.param(["dance"], "dance", id="unknown command"),
        pytest.param(["contracts", "check", "/nowhere"], "/nowhere: has no contract", id="no contracts"),
        pytest.param(["worker", "--config", "/nowhere.toml"], "/nowhere.toml: cannot be read", id="no config"),
        pytest.param(["forget", "--session", "chat-17"], "write TENANT/CONVERSATION", id="unclear what to forget"),
        pytest.param(["migrate", "--dsn", "mysql://x"], "the dsn must begin with", id="foreign dsn"),
        pytest.param(["gateway", "--brokers", "host:port"], "'host:port' is no address", id="no address"),
        pytest.param(["gateway", "--brokers", ","], "names no broker; write host:port", id="no broker"),
        pytest.param(["up", "--contracts", "/nowhere"], "/nowhere: has no contract", id="up without contracts"),
        pytest.param(["demo", "--contracts", "/nowhere"], "/nowhere: has no contract", id="demo without contracts"),
    ],
)
def test_an_error_is_one_line_and_status_2(arguments: list[str], said: str) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("trueup: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["up", "demo", "worker", "sink", "migrate"])
def test_a_data_folder_that_cannot_be_one_is_told(command: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    done = run(command, "--data-dir", str(file), TRUEUP_SUBJECT_KEY="k" * 16)

    assert done.returncode == 2
    assert done.stderr.startswith(f"trueup: {file}")
    assert done.stderr.endswith("; choose another folder with --data-dir\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["gateway", "worker", "sink"])
def test_a_taken_port_is_told_before_anything_is_started(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run(command, "--port", str(port), cwd=tmp_path, TRUEUP_SUBJECT_KEY="k" * 16)

    assert done.returncode == 2
    assert done.stderr.startswith(f"trueup: port {port} is taken by process {os.getpid()} ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_can_listen_that_is_told() -> None:
    done = run("gateway", TRUEUP_HOST="203.0.113.7")  # an address for documents alone

    assert done.returncode == 2
    assert "trueup: cannot listen on 203.0.113.7, port 4318: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_who_types_nothing_gets_help_and_no_complaint() -> None:
    done = run()

    assert (done.returncode, done.stderr) == (2, "")
    assert "contracts" in done.stdout


def test_debug_shows_where() -> None:
    assert "Traceback" in run("contracts", "check", "/nowhere", "--debug").stderr


def test_an_unknown_setting_is_told() -> None:
    done = run("contracts", "check", TRUEUP_PARTITION="8")

    assert done.returncode == 2
    assert "TRUEUP_PARTITION: there is no such setting" in done.stderr


def test_without_a_folder_of_its_own_a_place_gets_the_packaged_contracts(tmp_path: Path) -> None:
    done = run("contracts", "check", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "order_placement" in done.stdout


def test_every_problem_of_every_contract_is_told_with_file_and_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("family: x\nversion: one\ncriteria: []\n")
    done = run("contracts", "check", str(tmp_path))

    assert done.returncode == 2
    assert f"{tmp_path / 'a.yaml'}:2: version" in done.stdout
    assert f"{tmp_path / 'b.yaml'}:2: version" in done.stdout


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "b.yaml").mkdir()
    (tmp_path / "c.yaml").write_text("family: x\nversion: one\ncriteria: []\n")
    done = run("contracts", "check", str(tmp_path))

    assert done.returncode == 2
    assert f"{tmp_path / 'a.yaml'}: is no text in UTF-8; save it as such" in done.stdout
    assert f"{tmp_path / 'b.yaml'}: cannot be read: Is a directory" in done.stdout
    assert f"{tmp_path / 'c.yaml'}:2: version" in done.stdout
    assert done.stderr == ""


def test_one_contract_may_be_checked_by_itself() -> None:
    done = run("contracts", "check", "contracts/return.yaml")

    assert (done.returncode, done.stdout) == (0, "1 contract is well written: return@1\n")


def test_migrating_twice_is_once(tmp_path: Path) -> None:
    first, second = (run("migrate", "--data-dir", str(tmp_path)) for _ in range(2))

    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stdout.startswith("applied 0001_")
    assert second.stdout == "the schema is up to date\n"


def test_where_no_clickhouse_answers_migrate_says_what_to_do() -> None:
    done = run("migrate", "--dsn", f"http://u:p@127.0.0.1:{free_port()}/trueup")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("; see that it runs, and that --dsn or TRUEUP_DSN names it")
    assert "Traceback" not in done.stderr


def test_a_worker_without_brokers_says_so_and_ends() -> None:
    done = run("worker", "--brokers", f"127.0.0.1:{free_port()}", "--port", "0", TRUEUP_SUBJECT_KEY="k" * 16)

    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "do not answer" in said
    assert "TRUEUP_BROKERS" in said, "what to do about it"
    assert "Traceback" not in done.stderr


def test_what_kafka_refuses_is_told_as_such(tmp_path: Path) -> None:
    with Broker() as broker:  # which has no idempotent producer, and every worker of a real Kafka asks for one
        brokers = ["--brokers", broker.address, "--data-dir", str(tmp_path)]
        done = run("worker", *brokers, "--port", "0", TRUEUP_SUBJECT_KEY="k" * 16, TRUEUP_REPLICATION="1")

    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"trueup: the Kafka brokers at {broker.address} refused what was asked of them: ")
    assert "Traceback" not in done.stderr


def test_nobody_holds_a_free_port() -> None:
    assert holder_of(free_port()) == ""
