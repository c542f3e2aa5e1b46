"""Workers that are killed, sent away, frozen and thawed on Apache Kafka: the totals stay exact."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

from deploy.kafka.cluster import Cluster
from pipeline.runners.kafka_log import KafkaLog
from pipeline.runners.topics_admin import ensure_topics
from tests.services.kafka.fleet import FAILED, PARTITIONS, WORKERS, Fleet, feed, final_totals, wrong
from tests.unit.runners.toy import TOPICS

FROZEN_SECONDS = 9.0  # longer than a session: the others take over what the frozen one believes to own
MOST_WORKERS = 5
SEED = 11
PATIENCE = 120.0  # a new process, and a group that settles, on a busy machine
AT_WORK = "partition caught up"


def test_a_killed_a_leaving_and_a_thawed_worker_change_no_total(tmp_path: Path) -> None:
    workers = tmp_path / "workers"
    workers.mkdir()
    with Cluster(tmp_path / "kafka", 1) as running:
        asyncio.run(killing_run(running.bootstrap, workers))


async def killing_run(address: str, folder: Path) -> None:
    chance = random.Random(SEED)
    await ensure_topics([address], PARTITIONS, topics=TOPICS)
    log, fleet = KafkaLog([address]), Fleet(address, "kills", folder)
    await log.start()
    feeding = asyncio.create_task(feed(log))
    try:
        for _ in range(WORKERS):
            fleet.start()
        async with asyncio.timeout(PATIENCE):
            while sum(AT_WORK in fleet.said_by(number + 1) for number in range(WORKERS)) < WORKERS:
                await asyncio.sleep(0.1)
        await asyncio.sleep(2.0)
        fleet.running[0].send_signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        fleet.running[0].send_signal(signal.SIGCONT)
        while not feeding.done():
            await asyncio.sleep(chance.uniform(1.5, 4.0))
            event = chance.choice([fleet.start, fleet.kill, fleet.leave])
            if len(fleet.running) < WORKERS or (event == fleet.start and len(fleet.running) < MOST_WORKERS):
                fleet.start()
            elif event == fleet.kill:
                fleet.kill(chance.randrange(len(fleet.running)))
            else:
                fleet.leave(chance.randrange(len(fleet.running)))
        await feeding
        assert wrong(await final_totals(log)) == {}
        said = fleet.said()
        assert FAILED not in said
        assert "another worker owns the partition" in said  # what the thawed one wrote did not count
        assert [worker.poll() for worker in fleet.leaving] == [0] * len(fleet.leaving)
    finally:
        feeding.cancel()
        fleet.end()
        await log.stop()
