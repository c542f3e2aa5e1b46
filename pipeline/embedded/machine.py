"""All processes of one machine: started as one, stopped as one.

With the embedded broker there is one worker, which is the gateway and the sink, too; on a real Kafka there are as many
workers as asked for, a gateway, and a sink that owns the in-process ClickHouse.
The rule this file keeps: whatever was started is stopped, newest first, also when a start fails half-way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pipeline.embedded.broker import Broker
from pipeline.embedded.children import Child, ChildEnded
from pipeline.embedded.folder import ensure_subject_key
from pipeline.embedded.ports import check_free, free_port

READY_SECONDS = 180.0  # most of it is for machines that have much else to do
MOST_RESTARTS = 10


@dataclass(frozen=True, slots=True)
class Ports:
    """Where to ask whom.

    Args:
        workers: `/metrics` and rates. store: rates by the store, and conversations.
    """

    gateway: int
    workers: tuple[int, ...]
    store: int


class Machine:
    """Args:
    folder: for data and logs.
    arguments: given on to every process, such as `--config`.
    brokers: of a real Kafka; empty starts the embedded one.
    workers: how many, on a real Kafka.
    gateway_port, worker_port: 0 takes a free one.
    worker_arguments: for the workers alone.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str] = (),
        brokers: Sequence[str] = (),
        workers: int = 1,
        gateway_port: int = 0,
        worker_port: int = 0,
        worker_arguments: Sequence[str] = (),
    ) -> None:
        self.folder, self.brokers = folder, tuple(brokers)
        self._arguments, self._worker_arguments = list(arguments), list(worker_arguments)
        self._broker = None if brokers else Broker()
        self._wanted_ports = gateway_port, worker_port
        self._workers_wanted, self._made = workers, 0
        self.gateway_port = self.store_port = 0
        self.workers: list[Child] = []
        self.worker_ports: list[int] = []
        self._others: list[Child] = []
        self.restarts: list[str] = []  # why each was needed

    @property
    def dev_broker(self) -> bool:
        """Whether the embedded broker is used."""
        return self._broker is not None

    @property
    def ports(self) -> Ports:
        return Ports(self.gateway_port, tuple(self.worker_ports), self.store_port)

    def start(self, more: Sequence[str] = ()) -> None:
        """Start everything and wait until it is ready; `more` goes to the first worker, this time only.

        Raises:
            TrueupError: whatever keeps it from starting, after all of it is stopped again.
        """
        try:
            self._start(more)
        except BaseException:
            self.stop()
            raise

    def _start(self, more: Sequence[str]) -> None:
        gateway_port, worker_port = self._wanted_ports
        check_free("127.0.0.1", gateway_port, "TRUEUP_GATEWAY_PORT")
        check_free("127.0.0.1", worker_port, "TRUEUP_WORKER_PORT")
        self.gateway_port = gateway_port or free_port()
        ensure_subject_key(self.folder)
        if self._broker is not None:
            self.brokers = (self._broker.start(),)
            worker = self.add_worker(worker_port, more)
            self.store_port = self.worker_ports[0]
            worker.wait_ready(READY_SECONDS)
            return
        self.store_port = free_port()
        for number in range(self._workers_wanted):
            self.add_worker(0, more if number == 0 else ())
        self._others = [
            self._child("gateway", self.gateway_port, ["gateway", "--port", str(self.gateway_port)]),
            self._child("sink", self.store_port, ["sink", "--port", str(self.store_port), *self._data_dir]),
        ]
        for child in self._others:
            child.start()
        for child in [*self.workers, *self._others]:
            child.wait_ready(READY_SECONDS)

    def add_worker(self, port: int = 0, more: Sequence[str] = ()) -> Child:
        """One more worker; it is started, and not yet waited for."""
        self._made += 1
        port, name = port or free_port(), f"worker-{self._made}"
        arguments = ["worker", "--port", str(port), "--name", name, *self._data_dir]
        if self._broker is not None:
            arguments += ["--embedded", "--gateway-port", str(self.gateway_port)]
        child = self._child(name, port, [*arguments, *self._worker_arguments])
        self.workers.append(child)
        self.worker_ports.append(port)
        child.start(more)
        return child

    def remove_worker(self, child: Child) -> None:
        """Stop a worker for good: nobody asks it any more."""
        child.stop()
        index = self.workers.index(child)
        del self.workers[index], self.worker_ports[index]

    @property
    def _data_dir(self) -> list[str]:
        return ["--data-dir", str(self.folder)]

    def _child(self, name: str, port: int, arguments: list[str]) -> Child:
        brokers = ["--brokers", ",".join(self.brokers)]
        log = self.folder / "logs" / f"{name}.log"
        return Child(name, [*arguments, *brokers, *self._arguments], log, (port, "/readyz"))

    def look_after(self) -> None:
        """A process that has ended is restarted, as a supervisor would, where it is one of several on a real Kafka.

        Raises:
            ChildEnded: it is the embedded broker or worker, or it ends again and again.
        """
        if self._broker is not None and (ended := self._broker.ended()):  # before the worker, which ends for want of it
            raise ChildEnded(f"{ended}; what it kept in memory is gone, so nothing can go on: start trueup again")
        for child in [*self.workers, *self._others]:
            if (code := child.returncode) is None:
                continue
            ended = f"the {child.name} ended with {code}: {child.last_words()}"
            if self._broker is not None or len(self.restarts) >= MOST_RESTARTS:
                raise ChildEnded(f"{ended}; see {child.log}")
            self.restarts.append(ended)
            child.start()

    def stop(self) -> None:
        """Stop everything, in the order in which data flows. Safe to call twice."""
        children, self._others = [*self._others[:1], *self.workers, *self._others[1:]], []
        self.workers, self.worker_ports = [], []
        try:
            for child in children:
                child.terminate()
            for child in children:
                child.stop()
        finally:
            for child in children:
                child.kill()
            if self._broker is not None:
                self._broker.stop()

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
