"""A Kafka cluster on loopback: one KRaft broker, or three with replication 3 and two in sync, all in one folder.

The rule it keeps: a broker's process id is on disk before anything else can go wrong, and a start that fails stops
what it started, so that `stop` always leaves no process behind.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from string import Template

from deploy.kafka.machine import (
    KafkaError,
    command_line,
    free_ports,
    jar_folder,
    last_lines,
    live_brokers,
    missing,
    resolve_jars,
    until,
)

HERE = Path(__file__).resolve().parent
LOGGING = HERE / "log4j2.yaml"
SETTINGS = HERE / "server.properties"
HEAP_MB = 512  # a broker of a test; three of them fit beside the workers on a small machine
# Brokers of tests live for minutes: without the second compiler and with one collector thread three of them start on
# little more than half the CPU (14 s in place of 24, formatting included).
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
READY_SECONDS = 90.0
STOP_SECONDS = 20.0  # the last brokers of a stopping cluster have no quorum left to leave politely


class Cluster:
    """Brokers 1 to `brokers` in `directory`; a directory that has a cluster keeps its size, ports and data."""

    def __init__(self, directory: Path | str, brokers: int = 1, jars: Path | None = None) -> None:
        if brokers not in (1, 3):
            raise KafkaError(f"a cluster has 1 or 3 brokers, not {brokers}")
        self.directory = Path(directory).resolve()
        self.jars = jars or jar_folder()
        self._brokers = brokers
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @classmethod
    def open(cls, directory: Path | str) -> Cluster:
        """The cluster that is in this directory already."""
        if not any(Path(directory).glob("*/server.properties")):  # there also after a start that failed
            raise KafkaError(f"{directory} has no cluster; begin with: kafka.py start {directory}")
        return cls(directory)

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def ports(self) -> dict[int, int]:
        """Client port of each broker."""
        return {int(node): pair[0] for node, pair in self._layout()["ports"].items()}

    @property
    def bootstrap(self) -> str:
        """What clients are given: host:port of every broker, with commas."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self) -> str:
        """Start every broker and wait until each sees all others; returns `bootstrap`."""
        if lacks := missing(self.jars):
            raise KafkaError("Kafka cannot start here, missing: " + ", ".join(lacks))
        if self.running():
            raise KafkaError(f"brokers {self.running()} of {self.directory} run already; stop them first")
        resolve_jars(self.jars)
        fresh = not self._file("cluster.json").is_file()
        try:
            if fresh:
                self._lay_out()
            nodes = set(self.ports)
            self._format(nodes)
            for node in nodes:
                self._launch(node)
            for node in nodes:
                self._await(node, lambda alive: alive == nodes)
        except BaseException:
            self.stop()
            if fresh:  # the next start chooses other ports: a taken one may be why this one failed
                self._file("cluster.json").unlink(missing_ok=True)
            raise
        return self.bootstrap

    def kill(self, node: int) -> None:
        """kill -9: no goodbye, no flush."""
        pid = self._pid(node)
        if pid is None:
            raise KafkaError(f"broker {node} of {self.directory} does not run")
        os.kill(pid, signal.SIGKILL)
        self._gone([node], 10.0)

    def restart(self, node: int) -> None:
        """Start a broker that is down and wait until it is back among the living."""
        if node not in self.ports:
            raise KafkaError(f"{self.directory} has brokers {sorted(self.ports)}, not {node}")
        if self._pid(node) is not None:
            raise KafkaError(f"broker {node} of {self.directory} runs already")
        self._launch(node)
        self._await(node, lambda alive: node in alive)

    def stop(self) -> None:
        """Ask every broker to end, and end those that do not; also after a start that failed half-way."""
        for node in self.running():
            self._signal(node, signal.SIGTERM)
        for node in self._gone(self.running(), STOP_SECONDS):
            self._signal(node, signal.SIGKILL)
        if left := self._gone(self.running(), 10.0):
            raise KafkaError(f"brokers {left} of {self.directory} cannot be stopped")

    def running(self) -> list[int]:
        """Ids of the brokers whose process is there."""
        known = {int(file.parent.name) for file in self.directory.glob("[0-9]/pid")} | set(self._children)
        return sorted(node for node in known if self._pid(node))

    def _file(self, *parts: str) -> Path:
        return self.directory.joinpath(*parts)

    def _layout(self) -> dict[str, dict[str, list[int]]]:
        layout: dict[str, dict[str, list[int]]] = json.loads(self._file("cluster.json").read_text())
        return layout

    def _lay_out(self) -> None:
        """Choose ports once, write every broker's settings, and last the file that says all is there."""
        ports = iter(free_ports(2 * self._brokers))
        pairs = {node: [next(ports), next(ports)] for node in range(1, self._brokers + 1)}
        voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in pairs.items())
        for node, (client, controller) in pairs.items():
            self._file(str(node)).mkdir(parents=True, exist_ok=True)
            data = self._file(str(node), "data")
            shutil.rmtree(data, ignore_errors=True)  # of a start that failed
            properties = Template(SETTINGS.read_text()).substitute(
                node=node,
                client_port=client,
                controller_port=controller,
                voters=voters,
                data=data,
                replication=self._brokers,
                in_sync=max(1, self._brokers - 1),
            )
            self._file(str(node), "server.properties").write_text(properties)
        # Kafka's own form of a UUID; it never begins with a dash, which its command line would read as an option.
        cluster_id = "T" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]
        self._file("id").write_text(cluster_id)
        self._file("cluster.json").write_text(json.dumps({"ports": pairs}))

    def _java(self, heap_mb: int, *arguments: str) -> list[str]:
        options = [*SHORT_LIVED, f"-Xmx{heap_mb}m", "-Xms128m", f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"]
        return ["java", *options, "-cp", f"{self.jars}/*", *arguments]

    def _format(self, nodes: set[int]) -> None:
        """Give every broker's empty folder the cluster's id; the tools run side by side, each takes seconds."""
        cluster_id = self._file("id").read_text()
        with contextlib.ExitStack() as tools:
            started = {}
            for node in nodes:
                wanted = ["-t", cluster_id, "-c", str(self._file(str(node), "server.properties")), "--ignore-formatted"]
                command = self._java(256, "kafka.tools.StorageTool", "format", *wanted)
                tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                started[node] = tools.enter_context(tool)
                tools.callback(tool.kill)
            for node, tool in started.items():
                said, _ = tool.communicate()
                if tool.returncode:
                    raise KafkaError(f"broker {node} could not be formatted: {last_lines(said)}")

    def _launch(self, node: int) -> None:
        properties = str(self._file(str(node), "server.properties"))
        with self._file(str(node), "log").open("ab") as log:
            command = self._java(HEAP_MB, "kafka.Kafka", properties)
            # A session of its own: Ctrl-C in the terminal must not reach the brokers before `stop` does.
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory, start_new_session=True
            )
        self._children[node] = child
        self._file(str(node), "pid").write_text(str(child.pid))

    def _pid(self, node: int) -> int | None:
        """The broker's process, or None; a pid that now belongs to something else is not ours."""
        child = self._children.get(node)
        if child is not None and child.poll() is None:  # poll reaps, too: a dead child would keep its pid
            return child.pid
        try:
            pid = int(self._file(str(node), "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if str(self._file(str(node), "server.properties")) in command_line(pid) else None

    def _signal(self, node: int, number: signal.Signals) -> None:
        pid = self._pid(node)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _gone(self, nodes: list[int], seconds: float) -> list[int]:
        """Wait until these have ended; returns those that have not."""
        for _ in until(seconds):
            if not any(self._pid(node) for node in nodes):
                return []
        return [node for node in nodes if self._pid(node)]

    def _await(self, node: int, ready: Callable[[set[int]], bool]) -> None:
        for _ in until(READY_SECONDS):
            if ready(live_brokers(self.ports[node])):
                return
            if self._pid(node) is None:
                break
        log = self._file(str(node), "log")
        raise KafkaError(f"broker {node} did not become ready, see {log}: {last_lines(log.read_text())}")
