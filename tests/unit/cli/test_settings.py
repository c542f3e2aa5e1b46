"""Settings: where they come from, which wins, and how what is wrong is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.core.timeline import TimeRules
from pipeline.settings import Settings, SettingsError, load


def test_the_defaults_are_those_of_core() -> None:
    assert Settings().rules == TimeRules()


def test_the_environment_is_over_the_file_and_a_given_option_over_both(tmp_path: Path) -> None:
    file = tmp_path / "trueup.toml"
    file.write_text('session_gap = "45m"\nworker_port = 7000\nhost = "::1"\n')
    found = load({"TRUEUP_WORKER_PORT": "7001", "TRUEUP_HOST": "0.0.0.0"}, file, {"host": "127.0.0.1", "dsn": None})

    assert found.session_gap == timedelta(minutes=45)
    assert found.worker_port == 7001
    assert found.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("written", "meant"), [("30m", 1800), ("1h 30m", 5400), ("2 d", 172_800), ("90s", 90), ("0.5h", 1800)]
)
def test_durations_are_written_as_in_contracts(written: str, meant: int) -> None:
    assert load({"TRUEUP_RESUME_WINDOW": written}).resume_window.total_seconds() == meant


def test_lists_are_separated_by_commas() -> None:
    found = load({"TRUEUP_BROKERS": "a:1, b:2", "TRUEUP_CONVERSATION_KEYS": "session.id,thread"})

    assert found.brokers == ("a:1", "b:2")
    assert found.conversation_keys == ("session.id", "thread")


def test_an_empty_variable_is_none_at_all() -> None:
    assert load({"TRUEUP_DSN": "", "PATH": "/bin"}).store_dsn.startswith("chdb:///")


def test_the_store_lies_in_the_data_folder_unless_a_dsn_is_given(tmp_path: Path) -> None:
    assert load({"TRUEUP_DATA_DIR": str(tmp_path)}).store_dsn == f"chdb://{tmp_path}/clickhouse"
    assert load({"TRUEUP_DSN": "http://clickhouse:8123/trueup"}).store_dsn == "http://clickhouse:8123/trueup"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TRUEUP_SESSION_GAP", "soon", "write 30m, 24h, 7d"),
        ("TRUEUP_PARTITIONS", "0", "greater than or equal to 1"),
        ("TRUEUP_WORKER_PORT", "99999", "less than or equal to 65535"),
        ("TRUEUP_SESION_GAP", "30m", "there is no such setting; there are agent_sources, broker"),
    ],
)
def test_what_is_wrong_is_one_line_with_name_value_and_what_is_allowed(variable: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load({variable: value})

    assert variable in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["session_gap = ", "sessiongap = '30m'"])
def test_a_bad_file_is_named(content: str, tmp_path: Path) -> None:
    file = tmp_path / "trueup.toml"
    file.write_text(content)

    with pytest.raises(SettingsError, match=r"trueup\.toml"):
        load({}, file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml: cannot be read"):
        load({}, tmp_path / "nowhere.toml")
