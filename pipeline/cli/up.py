"""`trueup up`: everything on this machine, until Ctrl-C."""

from __future__ import annotations

import time
from datetime import timedelta

from pipeline.cli.common import Config, Contracts, DataDir, Debug, contracts_of, settings
from pipeline.cli.demo import stopped_by_sigterm
from pipeline.embedded.folder import DataFolder
from pipeline.embedded.machine import Machine
from pipeline.settings import Settings


def up(config: Config = None, contracts: Contracts = None, data_dir: DataDir = None, debug: Debug = False) -> None:
    """Starts broker, gateway, worker and an in-process ClickHouse; for trying, nothing else is needed.

    Example: trueup up --data-dir /tmp/trueup
    """
    chosen = settings(config, contracts=contracts, data_dir=data_dir)
    contracts_of(chosen)  # before anything is started that would end for want of them
    arguments = [] if config is None else ["--config", str(config.absolute())]
    judging = [] if contracts is None else ["--contracts", str(contracts.absolute())]
    with stopped_by_sigterm(), DataFolder(chosen.data_dir) as folder:
        if folder.archived:
            print(f"embedded is for trying: the data of an earlier run is in {folder.archived}", flush=True)
        machine = Machine(
            folder.path,
            arguments,
            gateway_port=chosen.gateway_port,
            worker_port=chosen.worker_port,
            worker_arguments=judging,
        )
        with machine:
            print("starting", flush=True)
            machine.start()
            try:  # from the first word on: whoever reads it may press Ctrl-C at once
                _say_where(chosen, machine)
                while True:
                    machine.look_after()
                    time.sleep(1.0)
            except KeyboardInterrupt:
                print("stopping", flush=True)


def _say_where(chosen: Settings, machine: Machine) -> None:
    worker, gateway = f"127.0.0.1:{machine.ports.workers[0]}", f"127.0.0.1:{machine.ports.gateway}"
    gap, grace = _short(chosen.session_gap), _short(chosen.closing_grace)
    print(f"page     http://{worker}  (also /api/sessions, /api/rates, /metrics)")
    print(f"agents   OTEL_EXPORTER_OTLP_ENDPOINT=http://{gateway} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
    print(f"outcomes http://{gateway}/v1/outcomes")
    print(f"judged   {gap} after a session's last span, or {grace} after its agent says that it is done")
    print(f"brokers  {','.join(machine.brokers)}", flush=True)


def _short(wait: timedelta) -> str:
    """`30 min`, `90 s`."""
    seconds = round(wait.total_seconds())
    return f"{seconds // 60} min" if seconds and seconds % 60 == 0 else f"{seconds} s"
