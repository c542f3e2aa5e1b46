"""`trueup gateway`: spans and outcomes in, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from pipeline.cli.common import Brokers, Config, Debug, process_options, settings
from pipeline.cli.process import run
from pipeline.worker.parts import GATEWAY


def gateway(
    config: Config = None,
    brokers: Brokers = None,
    port: Annotated[int | None, typer.Option("--port", help="4318 if not given.")] = None,
    debug: Debug = False,
) -> None:
    """Takes OTLP over HTTP and outcome events, and hands them to Kafka.

    Example: TRUEUP_TOKENS=/run/secrets/tokens TRUEUP_HOST=0.0.0.0 trueup gateway --brokers kafka-1:9092
    """
    chosen = settings(config, brokers=brokers, gateway_port=port)
    run(replace(process_options(GATEWAY, chosen), gateway_port=chosen.gateway_port))
