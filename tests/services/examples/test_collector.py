"""A Collector in front of trueup: an agent's spans go through it, by HTTP or by Kafka, and arrive as a session."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline.embedded.ports import free_port
from tests.live.test_live import Live
from tests.services.examples.conftest import ROOT, Start, Trueup
from tools.examples import COLLECTOR

DEPLOYED = ROOT / "deploy" / "collector" / "collector.yaml"
BUILT = COLLECTOR.exists()
"""Where there is no Go to build the Collector with, rotel alone is tested, and `make test-examples` says so."""


def collector() -> str:
    if not COLLECTOR.exists():
        pytest.fail("the Collector is not built yet: `make test-examples` does that", pytrace=False)
    return str(COLLECTOR)


def served_through(live: Trueup, port: int, conversation: str) -> None:
    """An agent that knows the Collector alone; its session is judged as any other."""
    through = Live(0, port)
    through.serve_a_customer(conversation, f"A-{conversation}")
    session = live.revision(conversation, 1)

    verdict = session["verdict"]
    assert (verdict["agents"], verdict["tools"], verdict["claim"]) == (["order_agent"], ["create_order"], "completed")
    assert (verdict["family"], verdict["completion"], verdict["input_tokens"]) == ("order_placement", "pending", 400)


def environment(live: Trueup, port: int, folder: Path) -> dict[str, str]:
    return {
        "TRUEUP_URL": live.gateway,
        "COLLECTOR_HTTP": f"127.0.0.1:{port}",
        "COLLECTOR_GRPC": f"127.0.0.1:{free_port()}",
        "COLLECTOR_QUEUE": str(folder / "queue"),
    }


def test_rotel_passes_spans_on(live: Trueup, start: Start, python: str, tmp_path: Path) -> None:
    port = free_port()
    start([python, "examples/collector/start_rotel.py"], environment(live, port, tmp_path), port)

    served_through(live, port, "rotel-1")


if BUILT:

    def test_the_collector_passes_spans_on(live: Trueup, start: Start, tmp_path: Path) -> None:
        port = free_port()
        command = [collector(), "--config", "examples/collector/collector.yaml"]
        start(command, environment(live, port, tmp_path), port)

        served_through(live, port, "otelcol-1")

    def test_the_collector_keeps_spans_while_trueup_is_away(live: Trueup, start: Start, tmp_path: Path) -> None:
        port, closed = free_port(), free_port()
        command = [collector(), "--config", "examples/collector/collector.yaml"]
        queued = environment(live, port, tmp_path)
        start(command, queued | {"TRUEUP_URL": f"http://127.0.0.1:{closed}"}, port)
        Live(0, port).serve_a_customer("kept-1", "A-kept-1")
        start.end()
        start(command, queued, port)
        session = live.revision("kept-1", 1)

        assert session["verdict"]["agents"] == ["order_agent"]

    def test_the_deployed_collector_writes_to_kafka(live: Trueup, start: Start, tmp_path: Path) -> None:
        port = free_port()
        own = {
            "extensions": {
                "health_check": {"endpoint": f"127.0.0.1:{free_port()}"},
                "file_storage": {"directory": f"{tmp_path}/queue", "compaction": {"directory": f"{tmp_path}/queue"}},
            },
            "receivers": {
                "otlp": {
                    "protocols": {
                        "grpc": {"endpoint": f"127.0.0.1:{free_port()}"},
                        "http": {"endpoint": f"127.0.0.1:{port}"},
                    }
                }
            },
            "exporters": {"kafka": {"protocol_version": "3.0.0"}},  # the embedded broker hangs up on newer ones
            "service": {"telemetry": {"metrics": {"level": "none", "readers": []}}},
        }
        overlay = tmp_path / "ports.yaml"
        overlay.write_text(yaml.safe_dump(own), "utf-8")
        command = [collector(), "--config", str(DEPLOYED), "--config", str(overlay)]
        start(command, {"KAFKA_BROKERS": live.brokers}, port)

        served_through(live, port, "kafka-1")
