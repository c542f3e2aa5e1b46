"""`trueup sink`: rows from Kafka into ClickHouse."""

from __future__ import annotations

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
)
from pipeline.cli.process import run
from pipeline.worker.parts import SINK


def sink(
    config: Config = None,
    brokers: Brokers = None,
    contracts: Contracts = None,
    data_dir: DataDir = None,
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="ClickHouse; a folder of the data folder if not given.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="Of pages, metrics and API; 6066 if not given.")] = None,
    debug: Debug = False,
) -> None:
    """Writes results to ClickHouse; while that is down, they wait in Kafka.

    Example: trueup sink --brokers kafka-1:9092 --dsn https://trueup:secret@clickhouse:8443/trueup
    """
    chosen = settings(config, brokers=brokers, contracts=contracts, data_dir=data_dir, dsn=dsn, sink_port=port)
    run(
        replace(
            process_options(SINK, chosen),
            contracts=contracts_of(chosen),
            api_port=chosen.sink_port,
            dsn=chosen.store_dsn,
            cubes=chosen.cubes,
            label_budget=chosen.label_budget,
        )
    )
