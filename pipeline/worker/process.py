"""One process: its parts in one loop, started in an order that lets each find the one before, stopped as one.

The rule this file keeps: fail-stop. The first part that fails ends the process with its reason, and the checkpoints
make the next start exact; a start that fails half-way stops what it started.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from aiokafka.errors import KafkaError

from pipeline.core.contracts.book import ContractBook
from pipeline.core.ingest import Ingest
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import SECOND
from pipeline.errors import BrokerError, TrueupError
from pipeline.gateway.app import OpenToAll, application, is_loopback, listen
from pipeline.gateway.broker import KafkaProduce
from pipeline.gateway.request import anyone, bearer
from pipeline.logs import Log
from pipeline.operate.migrate import migrate
from pipeline.review.explain import explain
from pipeline.runners.contract_log import ContractLog
from pipeline.runners.faust_runner import FaustRunner
from pipeline.runners.follower import SnapFollower
from pipeline.runners.ingest_runner import IngestRunner
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.sink_runner import SinkRunner
from pipeline.runners.topics_admin import ensure_topics
from pipeline.serve.app import application as pages
from pipeline.serve.app import listen as serve
from pipeline.sinks.clickhouse import Store
from pipeline.sinks.connection import EMBEDDED
from pipeline.sinks.prometheus import Exporter
from pipeline.tokens import Tokens
from pipeline.tokens import load as load_tokens
from pipeline.topology import STAGES, Setup, contracts_changed, spec_of
from pipeline.worker.contracts import Contracts
from pipeline.worker.forgetting import Orders
from pipeline.worker.parts import EVERYTHING, Part, ProcessOptions
from pipeline.worker.readings import NoStore, ProcessReadings
from schemas.topics import Stage

log = Log("worker")
WATCH_SECONDS = 0.5

Stop = Callable[[], Awaitable[object]]


class Process:
    """The parts that `options` names.

    Attributes:
        gateway_port, api_port: where it listens, once it has started; 0 where it does not.
    """

    def __init__(self, options: ProcessOptions) -> None:
        self.options = options
        self.gateway_port = self.api_port = 0
        self._stages: dict[Stage, FaustRunner] = {}
        self._ingest: IngestRunner | None = None
        self._sink: SinkRunner | None = None
        self._follower: SnapFollower | None = None
        self._book = ContractBook(())
        self._contracts: Contracts | None = None
        self._store: Store | None = None
        self._tokens: Tokens | None = None
        self._failures: list[asyncio.Future[TrueupError]] = []
        self._stops: list[Stop] = []  # in the order in which data flows
        self._ready = False

    # --- life

    async def start(self) -> None:
        """Returns when every part runs.

        Raises:
            TrueupError, OSError: whatever keeps a part from starting, after all of it is stopped again.
        """
        try:
            await self._start()
        except KafkaError as error:
            await self.stop()
            at, said = ", ".join(self.options.runner.brokers), str(error) or type(error).__name__
            raise BrokerError(
                f"the Kafka brokers at {at} refused what was asked of them: {said}; see their log"
            ) from error
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        options, runner = self.options, self.options.runner
        self._tokens = load_tokens(options.tokens) if options.tokens else None
        if self._tokens is None and not is_loopback(options.host):
            raise OpenToAll(f"without tokens nobody else may reach {options.host}: set tokens, or listen on 127.0.0.1")
        made = await ensure_topics(runner.brokers, runner.partitions, options.replication, dev_broker=runner.dev_broker)
        if made:
            log.info("topics made", topics=",".join(made), partitions=runner.partitions)
        await self._start_contracts()
        await self._open_store()
        runners = self._runners()  # each start joins a group, which takes seconds
        await asyncio.gather(self._warm_store(), *(runner.start() for runner in runners if runner is not self._ingest))
        if self._ingest is not None:  # last, so that what the stages read again is what was there before, and no more
            await self._ingest.start()
        if Part.API in options.parts:
            if not options.parts >= EVERYTHING:  # else it is the only worker, and owns all that could be followed
                await self._start_follower()
            await self._start_api()
        if Part.GATEWAY in options.parts:
            await self._start_gateway()
        self._ready = True
        log.info("started", parts=",".join(part for part in Part if part in options.parts))

    async def _start_contracts(self) -> None:
        """What is in force is known before anything judges; what comes later is taken up between two messages."""
        options, runner = self.options, self.options.runner
        if options.contracts is None:
            return
        shared = ContractLog(runner.brokers, runner.dev_broker)
        self._stops.append(shared.stop)
        await shared.start()
        self._contracts = Contracts(self._book, options.rules, options.contracts, shared, self._contracts_changed)
        await self._contracts.start()
        looking = asyncio.create_task(self._contracts.run(), name="contracts")
        self._stops.insert(0, lambda: _cancelled(looking))

    def _contracts_changed(self) -> None:
        setup = self._setup()
        for runner in self._stages.values():
            for step in runner.steps().values():
                contracts_changed(setup, step)

    def _setup(self) -> Setup:
        options = self.options
        return Setup(self._book, options.rules, options.runner.partitions, options.patience, options.cubes)

    async def _open_store(self) -> None:
        """Opens the store, if this process has one; the embedded one is brought up to date, too."""
        if not self.options.dsn:
            return
        store = self._store = Store.open(self.options.dsn)
        if self.options.dsn.startswith(EMBEDDED):
            Path(self.options.dsn.removeprefix(EMBEDDED)).mkdir(parents=True, exist_ok=True)
            await store.in_thread(lambda: migrate(store, retention_days=self.options.store_days))

    async def _warm_store(self) -> None:
        """The embedded store is this process: its first insert and query load what they need, a second and more."""
        if self._store is not None and self.options.dsn.startswith(EMBEDDED):
            await self._store.in_thread(self._store.warm_up)

    def _runners(self) -> list[FaustRunner | IngestRunner | SinkRunner]:
        """All runners of this process, made and not started; from now on they are stopped, and their failures heard."""
        options = self.options
        if Part.INGEST in options.parts:
            self._ingest = IngestRunner(self._make_ingest(), options.runner)
            self._stops.append(self._ingest.stop)
        if Part.STAGES in options.parts:
            setup = self._setup()
            self._stages = {
                spec.stage: FaustRunner(spec, setup, options.runner, options.breakpoints) for spec in STAGES
            }
            self._stops.append(self._stop_stages)
        if Part.SINK in options.parts and self._store is not None:
            self._sink = SinkRunner(self._store, options.runner)
            self._stops.append(self._sink.stop)
        ends = [runner for runner in (self._ingest, self._sink) if runner is not None]
        runners = [*self._stages.values(), *ends]
        self._failures += [runner.failed for runner in runners]
        return runners

    async def _stop_stages(self) -> bool:
        return all(await asyncio.gather(*(stage.stop() for stage in self._stages.values())))

    def _make_ingest(self) -> Ingest:
        options = self.options
        return Ingest(
            options.runner.partitions,
            options.rules,
            options.conversation_keys,
            options.tenant_from,
            self._agent_sources(),
            aliases=options.aliases,
            outcome_sources=options.outcome_sources,
            subject_key=options.subject_key,
            dead_letter_payload=options.dead_letter_payload,
        )

    def _agent_sources(self) -> frozenset[str | tuple[str, str]]:
        """The sources that are the agents' own: those named, else those whose tokens may also send spans."""
        if self.options.agent_sources is not None:
            return frozenset(self.options.agent_sources)
        pairs = self._tokens.agent_sources if self._tokens else ()
        return frozenset(source if tenant is None else (tenant, source) for tenant, source in pairs)

    async def _start_follower(self) -> None:
        self._follower = SnapFollower(spec_of(Stage.MEASURE), self._setup(), self.options.runner)
        self._failures.append(self._follower.failed)
        self._stops.append(self._follower.stop)
        await self._follower.start()

    async def _start_api(self) -> None:
        options = self.options
        readings = ProcessReadings(
            self._stages, self._ingest, self._sink, self._follower, self._contracts, options.cubes
        )
        exporter = Exporter(readings, options.version, options.label_budget)
        store = self._store or NoStore()
        watching = asyncio.create_task(self._watch_outcomes(exporter), name="outcome delays")
        self._stops.append(lambda: _cancelled(watching))
        app = pages(
            exporter, readings, readings, store, options.rules, self._book, explain, self._why_not_ready, self._tokens,
            self._orders(),
        )  # fmt: skip
        runner, self.api_port = await serve(app, options.host, options.api_port)
        self._stops.append(runner.cleanup)
        log.info("listening", for_="pages, metrics and API", host=options.host, port=self.api_port)

    def _orders(self) -> Orders | None:
        """What takes erasure orders; a process without stages, store or subject key takes none."""
        options, runner = self.options, self.options.runner
        if Part.STAGES not in options.parts or self._store is None or not options.subject_key:
            return None
        open_log = partial(KafkaLog, runner.brokers, runner.dev_broker)
        return Orders(open_log, self._store, runner.partitions, options.subject_key)

    async def _watch_outcomes(self, exporter: Exporter) -> None:
        """How long outcomes took from their Kafka record to the gauges of this worker."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            runner = self._stages.get(Stage.MEASURE)
            for step in runner.steps().values() if runner is not None else ():
                if isinstance(step, MeasureStep):
                    heard, step.heard = step.heard, set()
                    for moment in heard:
                        exporter.outcome_delays.observe(max(0.0, time.time() - moment / SECOND))

    async def _start_gateway(self) -> None:
        options = self.options
        produce = KafkaProduce(",".join(options.runner.brokers))
        await produce.start()
        self._stops.insert(0, produce.stop)
        authorize = bearer(self._tokens) if self._tokens else anyone

        async def why_not_ready() -> str | None:
            return self._why_not_ready()

        app = application(produce, why_not_ready, authorize, version=options.version)
        runner, self.gateway_port = await listen(
            app, options.host, options.gateway_port, has_tokens=self._tokens is not None
        )
        self._stops.insert(0, runner.cleanup)
        log.info("listening", for_="spans and outcomes", host=options.host, port=self.gateway_port)

    def _why_not_ready(self) -> str | None:
        if not self._ready:
            return "not every part has started yet"
        for stage, runner in self._stages.items():
            if missing := runner.owned - runner.steps().keys():
                return f"stage {stage} still restores partitions {', '.join(map(str, sorted(missing)))}"
        return None

    async def until_failure(self) -> TrueupError:
        """Returns the first failure of a part."""
        if not self._failures:
            await asyncio.Event().wait()
        done, _ = await asyncio.wait(self._failures, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()

    async def stop(self) -> bool:
        """Stop every part in the order in which data flows, so that what was read is brought to its end.

        Returns:
            `False` when something did not end in time; then only the end of the process ends it.
        """
        self._ready = False
        clean = True
        while self._stops:
            stop = self._stops.pop(0)
            try:
                clean = await stop() is not False and clean
            except Exception as error:  # the others must be stopped all the same
                log.error("a part did not stop", error)
                clean = False
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
            self._store = None
        return clean


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
