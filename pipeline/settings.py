"""Every setting, in one place: from `TRUEUP_<NAME>`, a TOML file, or an option of a command, the latter first.

The rule this file keeps: a name that nobody knows and a value that cannot be meant are told at once, in one line that
says what was given and what is allowed. Only the CLI reads settings; all else is given arguments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pipeline.core.dialects.aliases import read_aliases
from pipeline.core.dialects.otel_genai import CONVERSATION_KEYS
from pipeline.core.timeline import TimeRules, nanoseconds
from pipeline.errors import TrueupError
from schemas.contract import Duration
from schemas.outcome import OutcomeKind
from schemas.segment import CUBES, dimensions_of

LAST_PORT = 65_535
PREFIX = "TRUEUP_"
NOT_SETTINGS = frozenset({"TRUEUP_VERSION"})
"""The image tag in `deploy/compose.yaml`."""


class SettingsError(TrueupError):
    """A setting that is unknown, or whose value is not allowed."""


def _names(value: Any) -> Any:
    """`a, b` as a tuple."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


def _pairs(value: Any) -> Any:
    """`a=1, b=2` as pairs; a table of a TOML file is one already."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in _names(value)]
    if any(not (name.strip() and equals and held.strip()) for name, equals, held in pairs):
        raise ValueError("write name=value, separated by commas")
    return {name.strip(): held.strip() for name, _, held in pairs}


def _sources(value: Any) -> Any:
    """`evidence=billing|stripe`: several sources of a kind."""
    given = _pairs(value)
    if not isinstance(given, dict):
        return given
    return {kind: tuple(held.split("|")) if isinstance(held, str) else held for kind, held in given.items()}


def _not_retract(value: dict[OutcomeKind, frozenset[str]]) -> dict[OutcomeKind, frozenset[str]]:
    if OutcomeKind.RETRACT in value:
        raise ValueError("retract is always its own source's to say")
    return value


def _keys(value: Any) -> Any:
    """`agent=acme.agent|acme.worker`: several attribute keys that say one thing."""
    given = _sources(value)
    if not isinstance(given, dict):
        return given
    return {str(meaning): (held,) if isinstance(held, str) else held for meaning, held in given.items()}


def _that_can_be_meant(value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    read_aliases(value)
    return value


def _addresses(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("names no broker; write host:port[,host:port]")
    for one in value:
        host, colon, port = one.rpartition(":")
        if colon and not one.endswith("]") and not (host and port.isdecimal() and 0 < int(port) <= LAST_PORT):
            raise ValueError(f"{one!r} is no address; write host:port[,host:port]")
    return value


def _a_day_or_more(value: dict[str, timedelta]) -> dict[str, timedelta]:
    if any(kept < timedelta(days=1) for kept in value.values()):
        raise ValueError("rows are kept for a day or more")
    return value


def _with_those_always_there(value: tuple[str, ...]) -> tuple[str, ...]:
    for cube in value:
        dimensions_of(cube)
    return tuple(dict.fromkeys((*CUBES, *value)))


Sources = Annotated[dict[OutcomeKind, frozenset[str]], BeforeValidator(_sources), AfterValidator(_not_retract)]
"""By kind, the only sources that outcomes are taken from."""
AttributeKeys = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_keys), AfterValidator(_that_can_be_meant)]
"""By what it says, a user's own attribute keys."""
Days = Annotated[dict[str, Duration], BeforeValidator(_pairs), AfterValidator(_a_day_or_more)]
"""By ClickHouse table, how long a row is kept after it was written."""
Brokers = Annotated[Names, AfterValidator(_addresses)]
Cubes = Annotated[Names, AfterValidator(_with_those_always_there)]
"""Cubes that rates are counted for: `family+agent`."""
Port = Annotated[int, Field(ge=0, le=LAST_PORT)]


class Settings(BaseModel):
    """All settings with their defaults; durations are written `30m`, `24h`, `7d`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    brokers: Brokers = ("127.0.0.1:9092",)
    host: str = "127.0.0.1"
    worker_port: Port = 6066
    gateway_port: Port = 4318
    sink_port: Port = 6066
    data_dir: Path = Path(".trueup")
    dsn: str = ""
    contracts: Path | None = None
    tokens: Path | None = None
    subject_key: str = ""
    tenant_from: str | None = None
    agent_sources: Names | None = None
    outcome_sources: Sources = Field(default_factory=dict)
    dead_letter_payload: bool = False
    store_retention: Days = Field(default_factory=dict)
    conversation_keys: Names = CONVERSATION_KEYS
    aliases: AttributeKeys = Field(default_factory=dict)
    cubes: Cubes = CUBES
    label_budget: int = Field(default=1000, ge=1)

    partitions: int | None = Field(default=None, ge=1, le=1000)
    replication: int = Field(default=-1, ge=-1, description="of the topics that we make; -1 is the broker's default")
    checkpoint_interval: Duration | None = None
    broker_session_timeout: Duration | None = None
    heal_after: Duration = timedelta(seconds=3)
    idle_after: Duration = timedelta(seconds=60)

    session_gap: Duration = timedelta(minutes=30)
    closing_grace: Duration = timedelta(minutes=5)
    resume_window: Duration = timedelta(hours=2)
    wait_window: Duration = timedelta(hours=24)
    reopen_window: Duration = timedelta(hours=72)
    trace_timeout: Duration = timedelta(minutes=10)
    max_clock_skew: Duration = timedelta(minutes=5)
    lateness: Duration = timedelta(minutes=5)
    retention: Duration = timedelta(days=35)
    bucket: Duration = timedelta(minutes=5)
    folded_bucket: Duration = timedelta(hours=1)
    fold_after: Duration = timedelta(hours=48)
    max_spans_per_trace: int = Field(default=20_000, ge=1)

    @model_validator(mode="after")
    def _whole_buckets(self) -> Self:
        for whole, what in ((self.folded_bucket, "folded_bucket"), (timedelta(hours=1), "the shortest window")):
            if self.bucket <= timedelta() or whole % self.bucket:
                raise ValueError(f"bucket must go into {what} ({whole}) without a rest")
        if self.folded_bucket <= timedelta() or timedelta(days=1) % self.folded_bucket:
            raise ValueError("folded_bucket must go into a day without a rest")
        return self

    @property
    def rules(self) -> TimeRules:
        """The limits of time, as core takes them."""
        return TimeRules(
            session_gap=nanoseconds(self.session_gap),
            closing_grace=nanoseconds(self.closing_grace),
            resume_window=nanoseconds(self.resume_window),
            wait_window=nanoseconds(self.wait_window),
            reopen_window=nanoseconds(self.reopen_window),
            trace_timeout=nanoseconds(self.trace_timeout),
            max_clock_skew=nanoseconds(self.max_clock_skew),
            lateness=nanoseconds(self.lateness),
            retention=nanoseconds(self.retention),
            bucket=nanoseconds(self.bucket),
            folded_bucket=nanoseconds(self.folded_bucket),
            fold_after=nanoseconds(self.fold_after),
            max_spans_per_trace=self.max_spans_per_trace,
        )

    @property
    def store_days(self) -> dict[str, int]:
        """How many days the store keeps a table's rows, where it is not the usual."""
        return {table: kept.days for table, kept in self.store_retention.items()}

    @property
    def store_dsn(self) -> str:
        """Where results are kept; in the data folder, if nothing else is said."""
        return self.dsn or f"chdb://{self.data_dir.absolute() / 'clickhouse'}"


def load(environ: Mapping[str, str], config: Path | None = None, given: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment, over a TOML file, under what a command was `given`.

    Raises:
        SettingsError: with the first thing that is wrong.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if config is not None:
        for name, value in _read(config).items():
            values[name], origin[name] = value, f"{config}: {name}"
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS and value:
            name = variable.removeprefix(PREFIX).lower()
            values[name], origin[name] = value, variable
    for name, value in (given or {}).items():
        if value is not None:
            values[name], origin[name] = value, f"--{name.replace('_', '-')}"
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        said = str(first["msg"]).removeprefix("Value error, ")
        name = str(first["loc"][0]) if first["loc"] else said.split()[0]  # what is wrong between fields begins with one
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(Settings.model_fields))
            raise SettingsError(f"{origin[name]}: there is no such setting; there are {known}") from error
        raise SettingsError(f"{origin.get(name, name)}={values.get(name)}: {said}") from error


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{config}: cannot be read: {error.strerror}; give --config a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config}: is no TOML: {error}") from error
