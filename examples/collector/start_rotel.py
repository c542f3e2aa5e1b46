"""rotel in front of trueup, where there is no OpenTelemetry Collector: OTLP in, OTLP out, in one small process.

    python examples/collector/start_rotel.py

Reads the environment as collector.yaml does: TRUEUP_URL, COLLECTOR_GRPC, COLLECTOR_HTTP, TRUEUP_TOKEN. Its queue is in
memory, and it takes no content out: trueup's own allow-list does.
"""

from __future__ import annotations

import os
from pathlib import Path

import rotel

PROGRAM = Path(rotel.__file__).with_name("rotel-agent")


def command(environment: dict[str, str]) -> list[str]:
    """The command line of rotel's own program."""
    url = environment.get("TRUEUP_URL", "http://127.0.0.1:4318")
    options = {
        "--otlp-grpc-endpoint": environment.get("COLLECTOR_GRPC", "127.0.0.1:4317"),
        "--otlp-http-endpoint": environment.get("COLLECTOR_HTTP", "127.0.0.1:4319"),
        "--exporter": "otlp",
        "--otlp-exporter-protocol": "http",
        "--otlp-exporter-endpoint": url,
        "--batch-timeout": "200ms",
    }
    if token := environment.get("TRUEUP_TOKEN"):
        options["--otlp-exporter-custom-headers"] = f"Authorization=Bearer {token}"
    return [str(PROGRAM), "start", *(word for option in options.items() for word in option)]


if __name__ == "__main__":
    os.execv(PROGRAM, command(dict(os.environ)))
