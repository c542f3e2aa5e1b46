"""Ports of this machine: a free one, and who holds a taken one."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path

from pipeline.errors import TrueupError

PROC = Path("/proc")
LISTENING = "0A"


class PortTaken(TrueupError):
    """Somebody listens there already."""

    def __init__(self, port: int, setting: str) -> None:
        holder = holder_of(port)
        who = f" by {holder}" if holder else ""
        super().__init__(f"port {port} is taken{who}; stop that, or choose another with {setting}")


def free_port() -> int:
    """A port that nobody listens on now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class NoSuchPlace(TrueupError):
    """One cannot listen there."""


def check_free(host: str, port: int, setting: str) -> None:
    """
    Raises:
        PortTaken: naming the holder, where the system tells it.
        NoSuchPlace: the address is not this machine's, or the port not for everybody.
    """
    if not port:
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.closing(socket.socket(family, kind, protocol)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what a process that ended left behind is free
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(port, setting) from error
        raise NoSuchPlace(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose others with TRUEUP_HOST and {setting}"
        ) from error


def holder_of(port: int) -> str:
    """`process 123 (command line)` of who listens on `port`; empty where the system does not tell."""
    inodes = _listening_inodes(port)
    if not inodes:
        return ""
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # processes end while we look, and others' are not ours to see
            for descriptor in (process / "fd").iterdir():
                if descriptor.readlink().name in inodes:
                    words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    return f"process {process.name} ({words[:120]})"
    return ""


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found
