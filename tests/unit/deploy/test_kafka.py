"""deploy/kafka without a broker: what it asks of the machine, and whose processes it takes for its own."""

import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deploy.kafka import machine
from deploy.kafka.cluster import Cluster
from deploy.kafka.machine import PORTS, KafkaError, free_ports, java_major, live_brokers, missing

SCRIPT = Path(machine.__file__).with_name("kafka.py")


def fake_java(folder: Path, version: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    (folder / "java").chmod(0o755)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        pytest.param("17.0.15", 17, id="seventeen"),
        pytest.param("1.8.0_402", 8, id="the old way of counting"),
        pytest.param("25-ea", 25, id="early access"),
    ],
)
def test_the_java_version_is_read_from_what_java_says(
    version: str, major: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")

    assert java_major() == major


def test_check_names_what_is_missing_and_exits_2(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, str(SCRIPT), "check"], env=environment, capture_output=True, text=True)

    assert run.returncode == 2
    assert "Java 17" in run.stderr
    assert "Maven" in run.stderr
    assert run.stderr.count("\n") == 1


def test_an_old_java_is_missing_and_maven_is_not_needed_once_the_jars_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "bin", "11.0.2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(machine, "java_major", lambda: 11)

    assert missing(tmp_path / "jars") == ["Java 17 or newer (`java` is 11)"]
    assert any("Maven" in lack for lack in missing(tmp_path / "no-jars"))


def test_free_ports_are_distinct_and_out_of_reach_of_outgoing_connections() -> None:
    ports = free_ports(6)

    assert len(set(ports)) == 6
    assert all(port in PORTS for port in ports)


def test_a_port_in_use_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        (port,) = free_ports(1)
        taken.bind(("127.0.0.1", port))
        monkeypatch.setattr(machine, "PORTS", range(port, port + 1))

        with pytest.raises(KafkaError, match="no 1 free ports"):
            free_ports(1)


def test_the_living_are_read_from_a_brokers_answer() -> None:
    def broker(node: int, host: bytes, rack: bytes | None) -> bytes:
        tail = struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack
        return struct.pack(">ih", node, len(host)) + host + struct.pack(">i", 9092) + tail

    body = struct.pack(">iii", 1, 0, 2) + broker(7, b"127.0.0.1", None) + broker(9, b"localhost", b"rack-a") + b"rest"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(struct.pack(">i", len(body)) + body)

        thread = threading.Thread(target=answer)
        thread.start()
        alive = live_brokers(server.getsockname()[1])
        thread.join()

    assert alive == {7, 9}


def test_nobody_listening_means_nobody_is_alive() -> None:
    assert live_brokers(free_ports(1)[0]) == set()


def test_a_pid_that_now_belongs_to_something_else_is_neither_running_nor_stopped(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "server.properties").write_text("")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (tmp_path / "1" / "pid").write_text(str(other.pid))
        cluster = Cluster.open(tmp_path)
        running = cluster.running()
        cluster.stop()
        survived = other.poll() is None
        other.communicate(b"\n")

    assert running == []
    assert survived


def test_a_folder_without_a_cluster_and_a_cluster_of_two_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="has no cluster"):
        Cluster.open(tmp_path)
    with pytest.raises(KafkaError, match="1 or 3 brokers, not 2"):
        Cluster(tmp_path, 2)
