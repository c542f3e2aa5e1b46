"""The course of the demo: send a world, say that it is over, wait until the numbers stand still, compare.

The rule this file keeps: nothing is waited for without a bound, and only numbers that stand still are compared.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.core.ingest import end_of_input
from pipeline.demo.compare import Comparison, compare, with_sessions
from pipeline.demo.published import Published
from pipeline.demo.screen import Screen
from pipeline.demo.sources import Counts, NotThere, Pages
from pipeline.demo.verdicts import VERDICTS, Sessions, facts_of_row, place_of
from pipeline.embedded.machine import Machine
from pipeline.errors import TrueupError
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.messages import Outgoing
from pipeline.simulation.deliver import DeliveryError, send
from pipeline.simulation.world import World
from schemas.topics import Topic

LOOK_SECONDS = 0.25
SHOW_SECONDS = 3.0  # each look takes the worker some time
SETTLE_LOOK_SECONDS = 1.0  # longer than a worker keeps its rates
STILL_SECONDS = 20.0  # without a change for so long, and not exact: it will not become so
SETTLE_SECONDS = 120.0
LISTED = "list"
INPUTS = (Topic.OTLP_SPANS, Topic.OTLP_LOGS, Topic.OUTCOMES)


class WorldNotSent(TrueupError):
    """The gateway did not take the world."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it. `seconds`: of sending, and from the end of the input to the numbers."""

    comparison: Comparison
    seconds: dict[str, float]


class Sender:
    """Sends a world beside everything else."""

    def __init__(self, world: World, gateway_port: int) -> None:
        self.share = 0.0
        self._error: DeliveryError | None = None
        self._world, self._url = world, f"http://127.0.0.1:{gateway_port}"
        self._thread = threading.Thread(target=self._send, name="sender", daemon=True)
        self._thread.start()

    def _send(self) -> None:
        try:
            send(self._world, f"{self._url}/v1/traces", f"{self._url}/v1/outcomes", progress=self._progress)
        except DeliveryError as error:
            self._error = error

    def _progress(self, done: int, of: int) -> None:
        self.share = done / of

    @property
    def busy(self) -> bool:
        """
        Raises:
            WorldNotSent: it could not be sent to its end.
        """
        if self._error is not None:
            raise WorldNotSent(f"the world could not be sent: {self._error}") from self._error
        return self._thread.is_alive()


Disturb = Callable[[float], bool]
"""Called again and again with the share that is sent; whether it still has something to do."""


def play(machine: Machine, world: World, screen: Screen, disturb: Disturb) -> Played:
    """Run the world through a machine that is ready."""
    pages = Pages(lambda: machine.ports)
    began = time.monotonic()
    sender = Sender(world, machine.gateway_port)
    shown = began
    while disturb(sender.share) or sender.busy:
        _look_after(machine, screen)
        if time.monotonic() - shown >= SHOW_SECONDS:
            screen.show("sending", sender.share, _now(pages))
            shown = time.monotonic()
        time.sleep(LOOK_SECONDS)
    sent = time.monotonic()
    asyncio.run(_say_the_end(machine.brokers, world.now, machine.dev_broker))
    comparison = _settle(machine, world, screen, pages)
    return Played(comparison, {"sending": sent - began, "settling": time.monotonic() - sent})


async def _say_the_end(brokers: Sequence[str], now: datetime, dev_broker: bool) -> None:
    """To every partition of every input, so that event time comes to `now` everywhere."""
    log = KafkaLog(brokers, dev_broker)
    await log.start()
    try:
        value = end_of_input(now)
        for topic, count in (await log.partition_counts(INPUTS)).items():
            await log.append([Outgoing(topic, number, None, value) for number in range(count)])
    finally:
        await log.stop()


def _settle(machine: Machine, world: World, screen: Screen, pages: Pages) -> Comparison:
    """Wait until every source is exact and stays so, or until nothing moves any more."""
    deadline = time.monotonic() + SETTLE_SECONDS
    published = Published(lambda: machine.brokers, machine.dev_broker)
    before: Comparison | None = None
    moved = time.monotonic()
    while True:
        _look_after(machine, screen)
        measured: dict[str, Counts] = {}
        for name, read in pages.sources().items():
            try:
                measured[name] = read()
            except NotThere:
                measured[name] = {}
        comparison = compare(world.truth, measured)
        if world.verdicts:
            comparison = with_sessions(comparison, world.verdicts, _sessions(pages, published))
        still = comparison == before
        if comparison.exact and still:
            return comparison
        now = time.monotonic()
        if not still:
            moved = now
        if now - moved >= STILL_SECONDS or now >= deadline:
            return comparison
        before = comparison
        screen.show("settling", 1.0, next(iter(measured.values())))
        time.sleep(SETTLE_LOOK_SECONDS)


def _sessions(pages: Pages, published: Published) -> dict[str, Sessions]:
    """By the topic of verdicts, and by the store."""
    try:
        listed = {place_of(row): facts_of_row(row) for row in pages.listed()}
    except NotThere:
        listed = {}
    return {VERDICTS: published.sessions(), LISTED: listed}


def _look_after(machine: Machine, screen: Screen) -> None:
    before = len(machine.restarts)
    machine.look_after()
    for why in machine.restarts[before:]:
        screen.say(f"restarted: {why}")


def _now(pages: Pages) -> Counts:
    """The rates as the first worker that answers tells them."""
    for read in pages.sources().values():
        try:
            return read()
        except NotThere:
            continue
    return {}
