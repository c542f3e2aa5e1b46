"""A broker that stops answering, live: senders are told when to come again, nothing that was taken is lost, memory
stays within its limits, and all goes on by itself once the broker does. Where it never will, that is said.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
from aiokafka import AIOKafkaConsumer

from pipeline.embedded.broker import Broker
from pipeline.embedded.children import answers
from pipeline.embedded.ports import free_port
from pipeline.gateway.limits import Limits
from tests.live.test_live import SHORT
from tests.started import ROOT, Start

PATIENCE = 90.0
AT_ONCE, KILOBYTES = 300, 700
"""Together far more than may be in flight."""


def process_of(broker: str) -> int:
    """The process id of the embedded broker at this address."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if f"--listener-url=tcp://{broker}".encode() in words:
            return int(process.name)
    raise AssertionError(f"nothing listens at {broker}")


def memory_of(process: int) -> int:
    """Bytes."""
    pages = (Path("/proc") / str(process) / "statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def until(what: Callable[[], bool], wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, f"after {PATIENCE:g} s still not: {wanted}"
        time.sleep(0.1)


class Sender:
    """Sends one session after the other, and knows which of them were taken."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/traces"
        self.sent = 0
        self.taken: list[int] = []

    def body(self, kilobytes: int = 0) -> bytes:
        self.sent += 1
        said = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "a",
            "gen_ai.conversation.id": f"c{self.sent}",
            "trueup.task.outcome": "completed",
            "bulk": "x" * kilobytes * 1000,
        }
        span = {
            "traceId": f"{self.sent:032x}",
            "spanId": f"{self.sent:016x}",
            "startTimeUnixNano": str(time.time_ns()),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in said.items()],
        }
        document: Any = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        return json.dumps(document).encode()

    async def _send(self, session: aiohttp.ClientSession, kilobytes: int) -> tuple[int, str]:
        body = self.body(kilobytes)
        number = self.sent
        async with session.post(self.url, data=body, headers={"Content-Type": "application/json"}) as answer:
            if answer.status == 200:
                self.taken.append(number)
            return answer.status, answer.headers.get("Retry-After", "")

    def send(self, times: int = 1, kilobytes: int = 0) -> Counter[tuple[int, str]]:
        """All at once; what was answered: status, when to come again."""

        async def all_of_them() -> Counter[tuple[int, str]]:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                return Counter(await asyncio.gather(*(self._send(session, kilobytes) for _ in range(times))))

        return asyncio.run(all_of_them())

    def send_until_taken(self) -> None:
        """As an exporter does that was told to come again."""
        until(lambda: bool(self.send()[200, ""]), "a request that is taken")


@pytest.fixture
def frozen() -> Iterator[list[int]]:
    """Processes that are to be thawed whatever happens."""
    found: list[int] = []
    yield found
    for process in found:
        try:
            os.kill(process, signal.SIGCONT)
        except ProcessLookupError:
            continue


def kept_by(broker: str) -> set[int]:
    """The sessions whose spans are in the topic."""

    async def read() -> set[int]:
        consumer = AIOKafkaConsumer("otlp_spans", bootstrap_servers=broker, auto_offset_reset="earliest")
        await consumer.start()
        found: set[int] = set()
        try:
            while batch := await consumer.getmany(timeout_ms=3000):
                for message in (message for messages in batch.values() for message in messages):
                    [span] = json.loads(message.value)["resourceSpans"][0]["scopeSpans"][0]["spans"]
                    found.add(int(span["traceId"], 16))
        finally:
            await consumer.stop()
        return found

    return asyncio.run(read())


@contextmanager
def gateway_on(broker: str, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A gateway process of its own."""
    command = [sys.executable, "-m", "pipeline", "gateway", "--brokers", broker, "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRUEUP_REPLICATION": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=log.parent, env=environment, stdout=out, stderr=out)
    try:
        until(lambda: answers(port, "/readyz") or process.poll() is not None, "a gateway that is ready")
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_gateway_whose_broker_is_silent_says_so_and_keeps_its_memory(frozen: list[int], tmp_path: Path) -> None:
    port = free_port()
    with Broker() as broker, gateway_on(broker.address, port, tmp_path / "log") as process:
        sender = Sender(port)
        assert sender.send(3) == {(200, ""): 3}
        before = memory_of(process.pid)

        frozen.append(process_of(broker.address))
        os.kill(frozen[0], signal.SIGSTOP)
        told, most = watched(process.pid, lambda: sender.send(AT_ONCE, KILOBYTES))
        os.kill(frozen[0], signal.SIGCONT)
        sender.send_until_taken()

        assert told.keys() == {(503, "5"), (429, "1")}
        assert most - before < 2.5 * Limits().bytes_in_flight < AT_ONCE * KILOBYTES * 1000
        assert process.poll() is None
        assert set(sender.taken) <= kept_by(broker.address)


def watched(process: int, work: Callable[[], Counter[tuple[int, str]]]) -> tuple[Counter[tuple[int, str]], int]:
    """What comes of the work, and the most memory that the process took meanwhile."""

    async def both() -> tuple[Counter[tuple[int, str]], int]:
        most, working = 0, asyncio.ensure_future(asyncio.to_thread(work))
        while not working.done():
            most = max(most, memory_of(process))
            await asyncio.sleep(0.05)
        return await working, most

    return asyncio.run(both())


def test_all_goes_on_once_the_broker_does_and_where_it_never_will_that_is_said(
    trueup: Start, frozen: list[int]
) -> None:
    worker, gateway = free_port(), free_port()
    process = trueup("up", TRUEUP_WORKER_PORT=str(worker), TRUEUP_GATEWAY_PORT=str(gateway), **SHORT)
    assert process.stdout is not None
    broker = next(line.split()[1] for line in process.stdout if line.startswith("brokers"))
    sender = Sender(gateway)

    def is_there(number: int) -> bool:
        return requests.get(f"http://127.0.0.1:{worker}/api/sessions/default/c{number}", timeout=PATIENCE).ok

    assert sender.send(3) == {(200, ""): 3}
    frozen.append(process_of(broker))
    os.kill(frozen[0], signal.SIGSTOP)
    told = sender.send(5)
    os.kill(frozen[0], signal.SIGCONT)
    sender.send_until_taken()
    until(lambda: all(is_there(number) for number in sender.taken), "every session that was taken")
    assert told == {(503, "5"): 5}
    assert process.poll() is None

    os.kill(frozen.pop(), signal.SIGKILL)
    _, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert complained.startswith("trueup: the embedded broker ended with -9")
    assert complained.endswith("what it kept in memory is gone, so nothing can go on: start trueup again\n")
    assert complained.count("\n") == 1
