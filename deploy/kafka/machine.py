"""What the machine gives a loopback cluster: Java, Maven's jars, ports, processes, and a broker's own word for it.

The rule it keeps: look, never assume. A port is free when it can be bound, a process is ours when its command line says
so, and a broker is up when it answers, not when its port is open.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

POM = Path(__file__).resolve().parent / "pom.xml"
JAVA_MAJOR = 17
PORTS = range(20000, 32768)  # below the ephemeral range: no client's outgoing connection takes a dead broker's port
METADATA = struct.Struct(">ihhihib")  # size, api key 3, version 4, correlation, no client id, no topics, no creation


class KafkaError(Exception):
    """Something to tell the user in one line: what, where and what to do."""


def missing(jars: Path | None = None) -> list[str]:
    """What this machine lacks, in words; Maven is needed only while the jars are not there yet."""
    lacks = []
    if not shutil.which("java"):
        lacks.append(f"Java {JAVA_MAJOR} or newer (no `java` on PATH)")
    elif (found := java_major()) < JAVA_MAJOR:
        lacks.append(f"Java {JAVA_MAJOR} or newer (`java` is {found})")
    if not (jars or jar_folder()).is_dir() and not shutil.which("mvn"):
        lacks.append("Maven (no `mvn` on PATH)")
    return lacks


def java_major() -> int:
    """17 of `version "17.0.15"`, 8 of `version "1.8.0"`, 0 of a `java` that does not run."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(match[1]) if match else 0


def jar_folder() -> Path:
    """Where the jars of this pom.xml are kept, for every cluster of this user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "trueup" / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"


def resolve_jars(folder: Path) -> Path:
    """Ask Maven once; the folder appears whole or not at all, also when two runs race."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        lib = Path(scratch) / "lib"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={lib}", "-DincludeScope=runtime"]
        run = subprocess.run(["mvn", "-q", "-B", "-f", str(POM), *goal], capture_output=True, text=True, check=False)
        if run.returncode or not any(lib.glob("kafka_*.jar")):
            raise KafkaError(f"Maven could not fetch Kafka with {POM}: {last_lines(run.stdout + run.stderr)}")
        try:
            lib.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was first, with the same jars
                raise
    return folder


def last_lines(text: str, count: int = 3) -> str:
    """The end of a log on one line, for an error message."""
    return " | ".join(line.strip() for line in text.strip().splitlines()[-count:]) or "it said nothing"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all are held until all are found, so that no two are equal."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(PORTS, len(PORTS)):
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise KafkaError(f"no {count} free ports between {PORTS.start} and {PORTS.stop} on 127.0.0.1")


def live_brokers(port: int) -> set[int]:
    """Ids of the brokers that the one on this port knows to be alive; empty while it does not answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(METADATA.pack(METADATA.size - 4, 3, 4, 1, -1, 0, 0))
            stream = connection.makefile("rb")
            (size,) = struct.unpack(">i", stream.read(4))
            answer = stream.read(size)
    except (OSError, struct.error):
        return set()
    count, at, ids = struct.unpack_from(">i", answer, 8)[0], 12, set()  # after correlation and throttle time
    for _ in range(count):
        node, host_size = struct.unpack_from(">ih", answer, at)
        rack_at = at + 6 + host_size + 4
        (rack_size,) = struct.unpack_from(">h", answer, rack_at)
        at = rack_at + 2 + max(rack_size, 0)
        ids.add(node)
    return ids


def command_line(pid: int) -> str:
    """The command line of a process, empty if there is none (or it is dead and not yet reaped)."""
    proc = Path("/proc")
    if (proc / "self").exists():
        try:
            return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def until(seconds: float) -> Iterator[None]:
    """Tries, a little apart, until the time is over; at least one."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
