"""Settings: where they come from, which wins, and how what is wrong is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.cli.common import NoSubjectKey, subject_key
from pipeline.core.timeline import TimeRules
from pipeline.embedded.folder import ensure_subject_key
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


def test_cubes_are_those_that_are_asked_for_beside_those_that_are_always_there() -> None:
    assert load({"TRUEUP_CUBES": "family+agent, tool"}).cubes == ("system", "family", "family+agent", "tool")


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
        ("TRUEUP_CUBES", "system,color", "there is no dimension 'color'; there are family, agent, model, tool"),
        ("TRUEUP_CUBES", "agent+agent", "names a dimension twice"),
        ("TRUEUP_BUCKET", "7m", "bucket must go into folded_bucket (1:00:00) without a rest"),
        ("TRUEUP_BUCKET", "0s", "bucket must go into folded_bucket"),
        ("TRUEUP_FOLDED_BUCKET", "7h", "folded_bucket must go into a day without a rest"),
        ("TRUEUP_WORKER_PORT", "99999", "less than or equal to 65535"),
        ("TRUEUP_SESION_GAP", "30m", "there is no such setting; there are agent_sources, aliases, broker"),
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


def test_who_may_say_what_and_how_long_rows_are_kept_are_pairs(tmp_path: Path) -> None:
    file = tmp_path / "trueup.toml"
    file.write_text('[outcome_sources]\nreopen = ["crm"]\n[store_retention]\noutcomes = "800d"\n')
    written = load({"TRUEUP_OUTCOME_SOURCES": "evidence=billing|stripe, reopen=crm", "TRUEUP_STORE_RETENTION": "a=2d"})
    of_file = load({}, file)

    assert written.outcome_sources == {"evidence": frozenset({"billing", "stripe"}), "reopen": frozenset({"crm"})}
    assert written.store_days == {"a": 2}
    assert of_file.outcome_sources == {"reopen": frozenset({"crm"})}
    assert of_file.store_days == {"outcomes": 800}
    assert (Settings().agent_sources, load({"TRUEUP_AGENT_SOURCES": "bot"}).agent_sources) == (None, ("bot",))


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TRUEUP_OUTCOME_SOURCES", "evidence", "write name=value"),
        ("TRUEUP_OUTCOME_SOURCES", "rumour=x", "should be 'evidence'"),
        ("TRUEUP_OUTCOME_SOURCES", "retract=x", "retract is always its own source's to say"),
        ("TRUEUP_STORE_RETENTION", "outcomes=5h", "a day or more"),
    ],
)
def test_pairs_that_cannot_be_meant_are_told(variable: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load({variable: value})


def test_aliases_are_pairs_of_what_is_said_and_keys_that_say_it(tmp_path: Path) -> None:
    file = tmp_path / "trueup.toml"
    file.write_text(
        '[aliases]\nagent = "acme.agent"\nconversation = ["acme.chat", "x"]\n"trueup.state.paid" = "acme.paid"\n'
    )
    written = load({"TRUEUP_ALIASES": "agent=acme.agent|acme.worker, trueup.correlation.order_id=order.id"})

    assert load({}, file).aliases == {
        "agent": ("acme.agent",),
        "conversation": ("acme.chat", "x"),
        "trueup.state.paid": ("acme.paid",),
    }
    assert written.aliases == {
        "agent": ("acme.agent", "acme.worker"),
        "trueup.correlation.order_id": ("order.id",),
    }
    assert Settings().aliases == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("agent", "write name=value"),
        ("agnet=acme.agent", "'agnet' takes no attribute keys; those that do: agent, .*trueup.state.<name>"),
        ("trueup.state.=acme.paid", "'trueup.state.' takes no attribute keys"),
        ("agent=acme.agent|", "'agent' is given a blank attribute key"),
        ("agent=trueup.subject", "'trueup.subject' is an attribute of ours already; it cannot stand for 'agent'"),
        ("trueup.issue=a, trueup.subject=a", "'a' cannot stand for both 'trueup.issue' and 'trueup.subject'"),
    ],
)
def test_aliases_that_cannot_be_meant_are_told_in_one_line(value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"^TRUEUP_ALIASES=.*: .*{said}") as refused:
        load({"TRUEUP_ALIASES": value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["aliases = 5", "[aliases]\nagent = 5", "[aliases]\nagent = []"])
def test_a_table_of_aliases_that_is_none_is_told(content: str, tmp_path: Path) -> None:
    file = tmp_path / "trueup.toml"
    file.write_text(content)
    with pytest.raises(SettingsError, match=r"trueup\.toml: aliases"):
        load({}, file)


def test_subjects_need_a_key_of_their_own_or_that_of_the_data_folder(tmp_path: Path) -> None:
    for key in ("", "short"):
        with pytest.raises(NoSubjectKey, match="TRUEUP_SUBJECT_KEY is needed"):
            subject_key(Settings(data_dir=tmp_path, subject_key=key))
    ensure_subject_key(tmp_path)
    made = subject_key(Settings(data_dir=tmp_path))
    ensure_subject_key(tmp_path)
    assert subject_key(Settings(data_dir=tmp_path)) == made
    assert subject_key(Settings(data_dir=tmp_path, subject_key="k" * 16)) == b"k" * 16
    assert (len(made), (tmp_path / "subject-key").stat().st_mode & 0o777) == (64, 0o600)
