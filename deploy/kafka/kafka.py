#!/usr/bin/env python3
"""Apache Kafka on loopback without Docker: one broker, or three with replication 3, for tests and for trying things.

    kafka.py check                     what is missing on this machine, exit 2
    kafka.py start DIR --brokers 3     prints {"bootstrap": "127.0.0.1:...,...", "brokers": {...}}
    kafka.py kill DIR 2                kill -9
    kafka.py restart DIR 2             on the port it had, with the data it had
    kafka.py stop DIR

Needs Java 17 and, the first time, Maven; of Python only the standard library, so that it runs before any set-up.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by path, Python knows only this folder

from deploy.kafka.cluster import Cluster
from deploy.kafka.machine import KafkaError, missing


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line, as the top of this file shows it."""
    parser = argparse.ArgumentParser(description="Apache Kafka on loopback without Docker.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="name what is missing, exit 2")
    for name, words in {"start": "start 1 or 3 brokers", "stop": "stop all brokers"}.items():
        commands.add_parser(name, help=words).add_argument("directory", type=Path)
    for name, words in {"kill": "kill -9 one broker", "restart": "start a broker that is down"}.items():
        command = commands.add_parser(name, help=words)
        command.add_argument("directory", type=Path)
        command.add_argument("node", type=int)
    commands.choices["start"].add_argument("--brokers", type=int, choices=(1, 3), default=1)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Exit 0 when done, 2 with one line that says what is wrong."""
    asked = arguments(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a start half-way, and what it started
    try:
        if asked.command == "check":
            if lacks := missing():
                raise KafkaError("missing: " + ", ".join(lacks))
        elif asked.command == "start":
            cluster = Cluster(asked.directory, asked.brokers)
            print(json.dumps({"bootstrap": cluster.start(), "brokers": cluster.ports}))
        elif asked.command == "stop":
            Cluster.open(asked.directory).stop()
        else:
            act = {"kill": Cluster.kill, "restart": Cluster.restart}[asked.command]
            act(Cluster.open(asked.directory), asked.node)
    except KafkaError as error:
        print(f"kafka.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
