"""deploy/compose.yaml by the real docker-compose, and held against every file that names a part of it."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
BINARY = Path(sys.executable).with_name("docker-compose")
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
REQUIRED = re.findall(r"^(\w+)=$", (DEPLOY / ".env.example").read_text(), re.MULTILINE)
SCRAPED_TRUEUP = {"worker", "gateway", "sink"}

Edit = Callable[[dict[str, Any]], object]


def config(file: Path, without: str = "") -> subprocess.CompletedProcess[str]:
    """What docker-compose makes of the file; `without` is a variable that nobody set."""
    environment = {name: "x" for name in REQUIRED if name != without} | {"PATH": os.environ["PATH"]}
    command = [
        str(BINARY),
        "-f",
        str(file),
        "--project-directory",
        str(DEPLOY),
        "--env-file",
        os.devnull,
        "config",
        "--format",
        "json",
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    done = config(COMPOSE)
    assert done.returncode == 0, done.stderr
    whole: dict[str, Any] = json.loads(done.stdout)
    return whole


def mounts(composed: dict[str, Any], service: str) -> dict[str, Path]:
    """Folder or file in the container -> the one of this repository that is mounted there."""
    volumes = composed["services"][service]["volumes"]
    return {volume["target"]: Path(volume["source"]) for volume in volumes if volume["type"] == "bind"}


def targets() -> list[tuple[str, int]]:
    """Every host and port that Prometheus scrapes."""
    found = []
    for job in PROMETHEUS["scrape_configs"]:
        for by_name in job.get("dns_sd_configs", []):
            found += [(name, by_name["port"]) for name in by_name["names"]]
        for fixed in job.get("static_configs", []):
            found += [(host, int(port)) for host, port in (target.split(":") for target in fixed["targets"])]
    return found


def test_the_example_environment_is_all_that_compose_needs(composed: dict[str, Any]) -> None:
    assert SCRAPED_TRUEUP | {"migrate", "kafka", "clickhouse", "collector"} <= set(composed["services"])
    assert {"prometheus", "alertmanager", "grafana"} <= set(composed["services"])


@pytest.mark.parametrize("variable", REQUIRED)
def test_a_missing_secret_variable_is_refused(variable: str) -> None:
    done = config(COMPOSE, without=variable)

    assert done.returncode != 0
    assert f"required variable {variable} is missing" in done.stderr


def unknown_service(compose: dict[str, Any]) -> None:
    compose["services"]["sink"]["depends_on"]["zookeeper"] = {"condition": "service_healthy"}


def unknown_condition(compose: dict[str, Any]) -> None:
    compose["services"]["sink"]["depends_on"]["kafka"] = {"condition": "service_ready"}


def undeclared_secret(compose: dict[str, Any]) -> None:
    del compose["secrets"]["trueup_tokens"]


def undeclared_volume(compose: dict[str, Any]) -> None:
    del compose["volumes"]["kafka-data"]


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        pytest.param(unknown_service, "zookeeper", id="depends on an unknown service"),
        pytest.param(unknown_condition, "condition", id="waits for a condition that is none"),
        pytest.param(undeclared_secret, "trueup_tokens", id="uses a secret that is not declared"),
        pytest.param(undeclared_volume, "kafka-data", id="uses a volume that is not declared"),
    ],
)
def test_a_seeded_fault_is_refused(edit: Edit, complaint: str, tmp_path: Path) -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    (tmp_path / "same.yaml").write_text(yaml.safe_dump(compose))
    edit(compose)
    (tmp_path / "faulty.yaml").write_text(yaml.safe_dump(compose))

    assert config(tmp_path / "same.yaml").returncode == 0
    faulty = config(tmp_path / "faulty.yaml")
    assert faulty.returncode != 0
    assert complaint in faulty.stderr


def test_everything_that_is_mounted_is_in_the_repository(composed: dict[str, Any]) -> None:
    sources = {source for service in composed["services"] if "volumes" in composed["services"][service]
               for source in mounts(composed, service).values()}  # fmt: skip

    assert len(sources) > 5
    assert [source for source in sources if not source.exists()] == []


def test_prometheus_scrapes_the_services_on_the_ports_they_have(composed: dict[str, Any]) -> None:
    scraped = dict(targets())
    checked = {name: composed["services"][name]["healthcheck"]["test"][-1] for name in SCRAPED_TRUEUP}
    clickhouse = ElementTree.parse(DEPLOY / "clickhouse" / "config.d" / "prometheus.xml").findtext("prometheus/port")
    collector = yaml.safe_load((DEPLOY / "collector" / "collector.yaml").read_text())
    (reader,) = collector["service"]["telemetry"]["metrics"]["readers"]

    assert set(scraped) - {"localhost"} <= set(composed["services"])
    assert {name: f"http://127.0.0.1:{scraped[name]}/healthz" for name in SCRAPED_TRUEUP} == checked
    assert scraped["clickhouse"] == int(clickhouse or 0)
    assert scraped["collector"] == reader["pull"]["exporter"]["prometheus"]["port"]


def test_prometheus_accepts_its_configuration_with_the_rules_that_are_mounted(
    composed: dict[str, Any], tmp_path: Path
) -> None:
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    for inside, source in mounts(composed, "prometheus").items():
        text = text.replace(f"{inside}/", f"{source}/")
    patterns = yaml.safe_load(text)["rule_files"]
    (tmp_path / "prometheus.yml").write_text(text)
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: make test-monitoring installs or names it"
    done = subprocess.run([promtool, "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert all(Path(pattern).parent.is_dir() for pattern in patterns)
    assert list((ROOT / "grafana" / "alerts").glob(Path(patterns[0]).name))
    assert Path(patterns[0]).parent == ROOT / "grafana" / "alerts"


def test_dashboards_use_the_data_sources_that_are_provisioned(composed: dict[str, Any]) -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    sources = yaml.safe_load((provisioning / "datasources" / "trueup.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "trueup.yaml").read_text())["providers"]
    folder = mounts(composed, "grafana")[provider["options"]["path"]]
    dashboards = [file.read_text() for file in folder.glob("*.json")]
    used = {uid for text in dashboards for uid in uids(json.loads(text))}
    provisioned = {source["uid"] for source in sources}

    assert dashboards
    assert folder == ROOT / "grafana" / "dashboards"
    assert {"trueup-prometheus", "trueup-clickhouse"} <= provisioned
    assert used - {"-- Grafana --", "-- Mixed --", "grafana"} <= provisioned
    assert "trueup-prometheus" in used


def uids(node: object) -> set[str]:
    """Uid of every data source that a dashboard names, at any depth."""
    if isinstance(node, list):
        return {uid for item in node for uid in uids(item)}
    if not isinstance(node, dict):
        return set()
    source = node.get("datasource")
    own = {source["uid"]} if isinstance(source, dict) and "uid" in source else set()
    return own | {uid for item in node.values() for uid in uids(item)}


def test_grafana_reads_clickhouse_as_the_user_and_with_the_password_that_clickhouse_knows(
    composed: dict[str, Any],
) -> None:
    users = ElementTree.parse(DEPLOY / "clickhouse" / "users.d" / "grafana.xml")
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/trueup.yaml").read_text())["datasources"]
    (source,) = (source for source in sources if source["uid"] == "trueup-clickhouse")
    user = users.find(f"users/{source['jsonData']['username']}")
    assert user is not None
    password = user.find("password")
    assert password is not None
    variable = password.attrib["from_env"]

    assert source["secureJsonData"]["password"] == f"${variable}"
    assert all(variable in composed["services"][name]["environment"] for name in ("grafana", "clickhouse"))
    assert source["jsonData"]["host"] in composed["services"]
    assert users.find(f"profiles/{user.findtext('profile')}/readonly") is not None


def test_the_writer_of_trueup_is_the_user_that_clickhouse_makes(composed: dict[str, Any]) -> None:
    made = composed["services"]["clickhouse"]["environment"]
    dsn = composed["services"]["sink"]["environment"]["TRUEUP_DSN"]
    expected = f"http://{made['CLICKHOUSE_USER']}:{made['CLICKHOUSE_PASSWORD']}@clickhouse:8123/{made['CLICKHOUSE_DB']}"

    assert dsn == expected


def test_who_is_inside_reaches_kafka_by_the_listener_that_is_advertised_inside(composed: dict[str, Any]) -> None:
    services = composed["services"]
    advertised = dict(
        listener.split("://") for listener in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    )
    used = {services[name]["environment"]["TRUEUP_BROKERS"] for name in ("gateway", "worker", "sink")}
    used.add(services["collector"]["environment"]["KAFKA_BROKERS"])

    assert used == {advertised["INSIDE"]}


def test_ports_are_published_on_loopback_only(composed: dict[str, Any]) -> None:
    published = [port for service in composed["services"].values() for port in service.get("ports", [])]

    assert len(published) > 5
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert len({port["published"] for port in published}) == len(published)


def test_the_versions_of_the_example_and_of_the_kafka_that_tests_run_are_those_of_compose() -> None:
    defaults = dict(re.findall(r"\$\{(\w+_VERSION):-([^}]+)\}", COMPOSE.read_text()))
    example = dict(re.findall(r"^#(\w+_VERSION)=(\S+)", (DEPLOY / ".env.example").read_text(), re.MULTILINE))
    pom = re.search(r"<kafka.version>(.*)</kafka.version>", (DEPLOY / "kafka" / "pom.xml").read_text())

    assert example == defaults
    assert pom is not None
    assert defaults["KAFKA_VERSION"] == pom[1]
