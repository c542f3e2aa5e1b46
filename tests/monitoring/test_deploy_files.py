"""The image, the Collector and Alertmanager of deploy/: what their own programs would refuse, or silently do wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


COLLECTOR = load("deploy/collector/collector.yaml")
SECURE = load("deploy/collector/collector-secure.yaml")
BUILDER = load("deploy/collector/builder.yaml")
ALERTMANAGER = load("deploy/alertmanager/alertmanager.yml")
ALERTS = [
    rule
    for file in sorted((ROOT / "grafana" / "alerts").glob("*.rules.yml"))
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


def redacted(name: str) -> bool:
    return any(re.search(pattern, name) for pattern in COLLECTOR["processors"]["redaction"]["blocked_key_patterns"])


@pytest.mark.parametrize(
    "name",
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.content",
        "input.value",
        "output.value",
        "llm.input_messages.0.message.content",
        "llm.output_messages.1.message.content",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "ai.prompt.messages",
        "ai.response.text",
        "ai.toolCall.args",
        "ai.toolCall.result",
    ],
)
def test_what_people_said_is_redacted(name: str) -> None:
    assert redacted(name)


@pytest.mark.parametrize(
    "name",
    [
        "gen_ai.conversation.id",
        "gen_ai.agent.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.request.model",
        "gen_ai.usage.output_tokens",
        "gen_ai.evaluation.result",
        "session.id",
        "input.mime_type",
        "trueup.prompt.version",
        "trueup.state.order_id",
        "trueup.correlation.order_id",
        "traceloop.entity.name",
        "ai.toolCall.name",
    ],
)
def test_what_trueup_reads_is_kept(name: str) -> None:
    assert not redacted(name)


def test_the_collector_hides_no_value_and_drops_no_name_it_does_not_know() -> None:
    redaction = COLLECTOR["processors"]["redaction"]

    assert redaction["allow_all_keys"] is True
    assert not {"blocked_values", "allowed_keys", "hash_function"} & set(redaction)


def test_every_part_of_a_collector_pipeline_is_configured() -> None:
    for kind in ("receivers", "processors", "exporters"):
        used = {name for pipeline in COLLECTOR["service"]["pipelines"].values() for name in pipeline[kind]}
        assert used == set(COLLECTOR[kind])
    assert set(COLLECTOR["service"]["extensions"]) == set(COLLECTOR["extensions"])
    assert COLLECTOR["exporters"]["kafka"]["sending_queue"]["storage"] in COLLECTOR["extensions"]


def test_the_secure_overlay_keeps_the_extensions_it_replaces_the_list_of() -> None:
    expected = set(COLLECTOR["extensions"]) | set(SECURE["extensions"])

    assert set(SECURE["service"]["extensions"]) == expected


def test_several_brokers_in_one_variable_are_split() -> None:
    assert COLLECTOR["exporters"]["kafka"]["brokers"] == "${env:KAFKA_BROKERS}"  # within a list it would be one host


def test_a_batch_of_the_queue_fits_into_a_record() -> None:
    kafka = COLLECTOR["exporters"]["kafka"]

    assert kafka["sending_queue"]["batch"]["max_size"] < kafka["producer"]["max_message_bytes"]
    assert kafka["sending_queue"]["batch"]["sizer"] == "bytes"


def test_the_builder_builds_every_part_that_the_configurations_name() -> None:
    modules = " ".join(
        item["gomod"] for kind in ("receivers", "processors", "exporters", "extensions") for item in BUILDER[kind]
    )
    parts = {
        "memory_limiter": "memorylimiterprocessor",
        "file_storage": "storage/filestorage",
        "health_check": "healthcheckextension",
    }
    suffixes = {"receivers": "receiver", "processors": "processor", "exporters": "exporter", "extensions": "extension"}
    for kind, suffix in suffixes.items():
        for name in COLLECTOR[kind] | SECURE.get(kind, {}):
            assert f"/{parts.get(name, name + suffix)} " in f"{modules} "


def matched(alert: dict[str, Any], matchers: list[str]) -> bool:
    labels = alert["labels"] | {"alertname": alert["alert"]}
    return all(
        re.fullmatch(value, labels.get(name, "")) is not None
        for name, value in (re.fullmatch(r'(\w+) =~? "(.*)"', matcher).groups() for matcher in matchers)  # type: ignore[union-attr]
    )


@pytest.mark.parametrize("alert", ALERTS, ids=[f"{alert['alert']} {number}" for number, alert in enumerate(ALERTS)])
def test_every_alert_is_routed_by_its_severity(alert: dict[str, Any]) -> None:
    reached = []
    for route in ALERTMANAGER["route"]["routes"]:
        if matched(alert, route["matchers"]):
            reached.append(route["receiver"])
            if not route.get("continue"):
                break

    assert reached == {"page": ["pagerduty", "slack"], "ticket": ["slack"]}[alert["labels"]["severity"]]


def test_inhibition_names_alerts_that_exist_and_labels_that_all_have() -> None:
    external = set(load("deploy/prometheus/prometheus.yml")["global"]["external_labels"])
    (rule,) = ALERTMANAGER["inhibit_rules"]
    sources = [alert for alert in ALERTS if matched(alert, rule["source_matchers"])]
    muted = [alert for alert in ALERTS if matched(alert, rule["target_matchers"])]

    assert {alert["alert"] for alert in sources} == {"TrueupNoData", "TrueupWatermarkStuck"}
    assert muted
    assert not [alert for alert in sources if alert in muted]
    assert set(rule["equal"]) <= external


def test_alertmanager_finds_its_secrets_and_its_templates() -> None:
    text = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text()
    templates = "".join(file.read_text() for file in (DEPLOY / "alertmanager" / "templates").glob("*.tmpl"))
    used = set(re.findall(r'template "([\w.]+)"', text + templates))
    compose = load("deploy/compose.yaml")

    assert used
    assert used <= set(re.findall(r'define "([\w.]+)"', templates))
    assert set(re.findall(r"/run/secrets/(\w+)", text)) == set(compose["services"]["alertmanager"]["secrets"])


def test_the_image_installs_checked_packages_and_runs_as_nobody_special() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    users = re.findall(r"^USER (\d+):(\d+)$", dockerfile, re.MULTILINE)

    assert "--require-hashes" in dockerfile
    assert users
    assert "0" not in users[-1]
    assert f"uid={users[-1][0]}" in (DEPLOY / "compose.yaml").read_text()
    assert "curl" not in dockerfile


def test_what_the_image_copies_is_sent_to_the_builder() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    wanted = {name for line in copied for name in line.split()}
    sent = set(re.findall(r"^!(\S+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE))

    assert wanted == sent
    assert [name for name in sorted(wanted) if not (ROOT / name).exists()] == []


def test_secrets_are_never_committed() -> None:
    ignored = (DEPLOY / ".gitignore").read_text().split()

    assert ".env" in ignored
    assert "secrets/" in ignored
    assert all(secret["file"].startswith("./secrets/") for secret in load("deploy/compose.yaml")["secrets"].values())
