"""What the commands share: their common options, and how settings become what the parts take."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.core.contracts.book import ContractBook
from pipeline.core.contracts.parse import ContractError, load
from pipeline.embedded.folder import SUBJECT_KEY
from pipeline.errors import TrueupError
from pipeline.runners.options import RunnerOptions
from pipeline.settings import Settings
from pipeline.settings import load as load_settings
from pipeline.worker.parts import Part, ProcessOptions

EMBEDDED_PARTITIONS = 2
EMBEDDED_CHECKPOINT_SECONDS = 0.25
EMBEDDED_SESSION_SECONDS = 3.0  # a worker that was killed is missed so soon
EMBEDDED_PATIENCE = 1  # one user waits for one session to appear
PARTITIONS = 8
CHECKPOINT_SECONDS = 1.0
PATIENCE = 4
SHORTEST_KEY = 16
SESSION_SECONDS = 6.0  # Kafka refuses less by default

HERE = Path(__file__)

_debug = False


def debugging() -> bool:
    """Whether `--debug` was given."""
    return _debug


def _note_debug(value: bool) -> bool:
    global _debug
    _debug = _debug or value
    return value


Config = Annotated[Path | None, typer.Option("--config", help="Settings, as TOML.", metavar="FILE")]
Debug = Annotated[bool, typer.Option("--debug", help="Show stack traces.", callback=_note_debug, is_eager=True)]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where data is kept; .trueup if not given.")]
Brokers = Annotated[str | None, typer.Option("--brokers", help="Kafka, host:port[,host:port].")]
Contracts = Annotated[
    Path | None, typer.Option("--contracts", help="Folder of contracts; ./contracts if there is one.")
]


def version() -> str:
    """Of trueup, as it was installed."""
    try:
        return importlib.metadata.version("trueup")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def quiet_libraries() -> None:
    """The exporter and the drivers tell every try that failed; what comes of them is told by us."""
    for name in ("opentelemetry", "aiokafka", "urllib3", "clickhouse_connect"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class NoContracts(TrueupError):
    """There is nothing to judge by, or it cannot be used."""


def settings(config: Path | None, **given: Any) -> Settings:
    """Settings, with what the command was given on top."""
    return load_settings(os.environ, config, given)


def contract_paths(folder: Path | None) -> list[Path]:
    """Every contract: of `folder`, else of ./contracts, else of those that come with trueup; a file stands for itself.

    Raises:
        NoContracts: the folder has none.
    """
    if folder is None:
        here, packaged, checkout = Path("contracts"), HERE.parents[1] / "contracts", HERE.parents[2] / "contracts"
        folder = next((one for one in (here, packaged, checkout) if any(one.glob("*.yaml"))), here)
    files = [folder] if folder.is_file() else sorted(folder.glob("*.yaml"))
    if not files:
        raise NoContracts(f"{folder}: has no contract (*.yaml); name their folder with --contracts or TRUEUP_CONTRACTS")
    return files


def contract_files(folder: Path | None) -> list[tuple[str, str]]:
    """Name and text of every contract.

    Raises:
        NoContracts: there is none, or one that cannot be read.
    """
    return [(str(file), contract_text(file)) for file in contract_paths(folder)]


def contract_text(file: Path) -> str:
    """
    Raises:
        NoContracts: it cannot be read.
    """
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise NoContracts(f"{file}: cannot be read: {error.strerror}; let trueup read it, or move it away") from error
    except UnicodeDecodeError as error:
        raise NoContracts(f"{file}: is no text in UTF-8; save it as such") from error


def book(chosen: Settings) -> ContractBook:
    """The contracts.

    Raises:
        NoContracts: with the first thing that is wrong.
    """
    try:
        return load(contract_files(chosen.contracts), chosen.rules)
    except ContractError as error:
        more = len(error.problems) - 1
        also = f" (and {more} more: trueup contracts check)" if more else ""
        raise NoContracts(f"{error.problems[0]}{also}") from error


def contracts_of(chosen: Settings) -> Callable[[], list[tuple[str, str]]]:
    """What reads the contracts, now and whenever it is called; they have been looked at once.

    Raises:
        NoContracts: with the first thing that is wrong.
    """
    book(chosen)
    return lambda: contract_files(chosen.contracts)


class NoSubjectKey(TrueupError):
    """Nothing to hash subjects by: they would have to be kept as they are."""


def subject_key(chosen: Settings) -> bytes:
    """What subjects are hashed by: as set, else the one that an embedded set-up made in its data folder.

    Raises:
        NoSubjectKey: there is none, or one that could be guessed.
    """
    key = chosen.subject_key
    made = chosen.data_dir / SUBJECT_KEY
    if not key and made.exists():
        key = made.read_text("ascii")
    if len(key) < SHORTEST_KEY:
        raise NoSubjectKey(
            f"TRUEUP_SUBJECT_KEY is needed, of {SHORTEST_KEY} characters or more and the same in every worker: "
            "subjects are kept as a hash by it alone"
        )
    return key.encode()


def runner_options(chosen: Settings, embedded: bool, name: str = "") -> RunnerOptions:
    """What the runners of this process share."""

    def seconds(value: Any, of_embedded: float, otherwise: float) -> float:
        return value.total_seconds() if value is not None else of_embedded if embedded else otherwise

    return RunnerOptions(
        brokers=chosen.brokers,
        partitions=chosen.partitions or (EMBEDDED_PARTITIONS if embedded else PARTITIONS),
        data_dir=chosen.data_dir.absolute() / "runners",
        name=name or f"{socket.gethostname()}-{os.getpid()}",
        dev_broker=embedded,
        checkpoint_interval=seconds(chosen.checkpoint_interval, EMBEDDED_CHECKPOINT_SECONDS, CHECKPOINT_SECONDS),
        session_timeout=seconds(chosen.broker_session_timeout, EMBEDDED_SESSION_SECONDS, SESSION_SECONDS),
        heal_after=chosen.heal_after.total_seconds(),
        idle_after=chosen.idle_after.total_seconds(),
    )


def process_options(parts: frozenset[Part], chosen: Settings, embedded: bool = False, name: str = "") -> ProcessOptions:
    """What every process is made from, whatever its parts are."""
    return ProcessOptions(
        parts=parts,
        runner=runner_options(chosen, embedded, name),
        rules=chosen.rules,
        host=chosen.host,
        replication=1 if embedded else chosen.replication,
        patience=EMBEDDED_PATIENCE if embedded else PATIENCE,
        tokens=chosen.tokens,
        version=version(),
    )
