"""The edge to Faust: one app for one stage. Faust gives group membership, assignment and delivery, nothing else.

The rule this file keeps: everything that the engine is known to do wrong has its cure here, with the reason beside it.
Faust is untyped; its `Any` ends here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import faust

from pipeline.runners.kafka_log import DEV_FETCH_WAIT_MS, FETCH_BYTES, METADATA_MS
from pipeline.runners.messages import Incoming
from pipeline.runners.options import RunnerOptions, heartbeat_seconds

OnMessage = Callable[[Incoming, Callable[[], None]], Awaitable[None]]
OnPartitions = Callable[[set[int]], None]


class Engine:
    """One Faust app that reads one topic.

    Args:
        group: the consumer group.
        folder: where Faust may write; its own in each process.
        on_message: takes a message and how to acknowledge it; waiting in it holds back the whole stage.
        on_assigned, on_revoked: the partitions of the topic.
    """

    def __init__(
        self,
        group: str,
        topic: str,
        folder: Path,
        options: RunnerOptions,
        on_message: OnMessage,
        on_assigned: OnPartitions,
        on_revoked: OnPartitions,
    ) -> None:
        self._topic, self._dev_broker, self._on_message = topic, options.dev_broker, on_message
        self._app = _new_app(group, folder, options)
        source = self._app.topic(topic, value_type=bytes, value_serializer="raw", key_type=bytes, key_serializer="raw")
        self._app.agent(source, name=group)(self._consume)

        async def assigned(_: Any, assigned: Any, **__: Any) -> None:
            on_assigned({at.partition for at in assigned if at.topic == topic})

        async def revoked(_: Any, revoked: Any, **__: Any) -> None:
            on_revoked({at.partition for at in revoked if at.topic == topic})

        # Signals hold their handlers weakly.
        self._handlers = (assigned, revoked)
        self._app.on_partitions_assigned.connect(assigned)
        self._app.on_partitions_revoked.connect(revoked)

    async def _consume(self, stream: Any) -> None:
        # `noack`: acknowledged when durable, not when the loop comes round. Never `take`: it loses batches on errors.
        async for event in stream.noack().events():
            message = event.message
            incoming = Incoming(
                message.topic,
                message.partition,
                message.offset,
                int(message.timestamp * 1000) * 1_000_000,
                message.key,
                message.value,
            )
            message.value = event.value = None  # a held event keeps no payload
            await self._on_message(incoming, event.ack)

    async def start(self) -> None:
        """Returns after the first assignment; run it as a task, since joining may take long."""
        await self._app.start()
        if self._dev_broker:
            self._client._fetcher._fetch_max_wait_ms = DEV_FETCH_WAIT_MS  # Faust fixes 1.5 s

    async def stop(self) -> None:
        """May hang while the broker does not answer: bound it from outside with `asyncio.wait`."""
        await self._app.stop()

    @property
    def _client(self) -> Any:
        return self._app.consumer._thread._consumer

    @property
    def hurries(self) -> bool:
        """A rebalance or a stop waits for acknowledgements."""
        return bool(self._app.rebalancing or self._app.should_stop)

    @property
    def crash(self) -> BaseException | None:
        """Why the app is down, or why the group will never admit it; the latter Faust itself does not notice."""
        if self._app.crashed:
            reason = self._app.crash_reason
            return reason if isinstance(reason, BaseException) else RuntimeError("the app crashed")
        thread = getattr(self._app.consumer, "_thread", None) if self._app._consumer is not None else None
        client = getattr(thread, "_consumer", None)
        coordination = getattr(getattr(client, "_coordinator", None), "_coordination_task", None)
        if coordination is not None and coordination.done() and not coordination.cancelled():
            refused: BaseException | None = coordination.exception()
            return refused
        return None


def _new_app(group: str, folder: Path, options: RunnerOptions) -> Any:
    return faust.App(
        group,
        broker=[f"kafka://{broker}" for broker in options.brokers],
        datadir=str(folder),  # else it litters the working directory
        web_enabled=False,
        autodiscover=False,
        key_serializer="raw",
        value_serializer="raw",
        topic_disable_leader=True,
        topic_allow_declare=False,  # topics are made by us, with their settings
        agent_supervisor="mode.CrashingSupervisor",  # the default one skips the message that an error hit
        cython_optimizations=True,
        stream_buffer_maxsize=64,  # messages, and a message is a batch: the default would hold 240 MB
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_metadata_max_age_ms=METADATA_MS,
        broker_commit_interval=0.5,
        broker_session_timeout=options.session_timeout,
        broker_heartbeat_interval=heartbeat_seconds(options),
        broker_request_timeout=30,
        broker_rebalance_timeout=20,
        consumer_auto_offset_reset="earliest",
    )
