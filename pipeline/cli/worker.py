"""`trueup worker`: ingest, the four keyed stages, `/metrics` and the read API."""

from __future__ import annotations

import importlib
import signal
from dataclasses import replace
from typing import Annotated

import typer

from pipeline.cli.common import (
    Brokers,
    Config,
    Contracts,
    DataDir,
    Debug,
    contracts_of,
    process_options,
    settings,
    subject_key,
)
from pipeline.cli.process import run
from pipeline.runners.options import Breakpoints, KillAt
from pipeline.settings import Settings
from pipeline.sinks.connection import EMBEDDED
from pipeline.worker.parts import EVERYTHING, WORKER, ProcessOptions


def worker(
    config: Config = None,
    brokers: Brokers = None,
    contracts: Contracts = None,
    data_dir: DataDir = None,
    port: Annotated[int | None, typer.Option("--port", help="Of pages, metrics and API; 6066 if not given.")] = None,
    debug: Debug = False,
    embedded: Annotated[bool, typer.Option("--embedded", hidden=True)] = False,
    gateway_port: Annotated[int | None, typer.Option("--gateway-port", hidden=True)] = None,
    kill_at: Annotated[str, typer.Option("--kill-at", hidden=True)] = "",
    preload: Annotated[str, typer.Option("--preload", hidden=True)] = "",
    name: Annotated[str, typer.Option("--name", hidden=True)] = "",
    idle_after: Annotated[str | None, typer.Option("--idle-after", hidden=True)] = None,
) -> None:
    """Runs a worker: as many as you like share the partitions of every stage.

    Example: TRUEUP_BROKERS=kafka-1:9092,kafka-2:9092 trueup worker --contracts ./contracts
    """
    chosen = settings(
        config,
        brokers=brokers,
        contracts=contracts,
        data_dir=data_dir,
        worker_port=port,
        gateway_port=gateway_port,
        idle_after=idle_after,
    )
    if preload:
        importlib.import_module(preload)
    run(options_of(chosen, embedded, kill_at, name))


def options_of(chosen: Settings, embedded: bool, kill_at: str = "", name: str = "") -> ProcessOptions:
    """What a worker is made from; the embedded one is the gateway and the sink, too."""
    # The files of an in-process store belong to one process: the sink's, where there is one.
    has_store = embedded or not chosen.store_dsn.startswith(EMBEDDED)
    return replace(
        process_options(EVERYTHING if embedded else WORKER, chosen, embedded, name),
        contracts=contracts_of(chosen),
        gateway_port=chosen.gateway_port,
        api_port=chosen.worker_port,
        dsn=chosen.store_dsn if has_store else "",
        cubes=chosen.cubes,
        label_budget=chosen.label_budget,
        tenant_from=chosen.tenant_from,
        agent_sources=None if chosen.agent_sources is None else frozenset(chosen.agent_sources),
        outcome_sources=chosen.outcome_sources,
        subject_key=subject_key(chosen),
        dead_letter_payload=chosen.dead_letter_payload,
        store_days=chosen.store_days,
        conversation_keys=chosen.conversation_keys,
        aliases=chosen.aliases,
        breakpoints=breakpoints(kill_at),
    )


def breakpoints(kill_at: str) -> Breakpoints:
    """`outputs_sent:judge:5`: die at the fifth time that a partition of that stage passes that point."""
    if not kill_at:
        return Breakpoints()
    point, stage, nth = kill_at.split(":")
    return KillWhenTold(point, stage, int(nth))


class KillWhenTold(KillAt):
    """Counts from SIGUSR1 on: checkpoints pass the points before any data flows, too."""

    def __init__(self, point: str, stage: str, nth: int) -> None:
        super().__init__(point, stage, nth)
        self._told = False
        signal.signal(signal.SIGUSR1, self._tell)

    def _tell(self, *_: object) -> None:
        self._told = True

    def _passed(self, point: str, stage: str) -> None:
        if self._told:
            super()._passed(point, stage)
