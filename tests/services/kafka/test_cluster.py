"""The loopback cluster on real brokers: replication holds over a kill -9, and nothing is left running."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import UnknownTopicOrPartitionError

from deploy.kafka import cluster as cluster_module
from deploy.kafka.cluster import Cluster
from deploy.kafka.machine import KafkaError, free_ports, live_brokers

PARTITIONS = 3
PATIENCE = 30.0
SCRIPT = str(Path(cluster_module.__file__).with_name("kafka.py"))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka"), 3) as running:
        yield running


async def create(bootstrap: str, topic: str) -> list[list[int]]:
    """Replicas of each partition of the new topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, PARTITIONS, 3)])
        async with asyncio.timeout(PATIENCE):
            while not (described := (await admin.describe_topics([topic]))[0]["partitions"]):
                await asyncio.sleep(0.1)  # a broker may not have heard of it yet
        return [sorted(partition["replicas"]) for partition in described]
    finally:
        await admin.close()


async def produce(bootstrap: str, topic: str, values: range) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(topic, str(value).encode(), partition=value % PARTITIONS)
    finally:
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: int) -> list[int]:
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=f"{topic}-readers", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        return [int((await asyncio.wait_for(anext(consumer), 30)).value) for _ in range(count)]
    finally:
        await consumer.stop()


def processes_naming(directory: Path) -> list[str]:
    listed = subprocess.run(["ps", "-ww", "-eo", "command="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(directory) in line]


def test_acknowledged_records_survive_a_killed_broker(three: Cluster) -> None:
    async def story() -> list[int]:
        replicas = await create(three.bootstrap, "survives")
        assert replicas == [[1, 2, 3]] * PARTITIONS
        await produce(three.bootstrap, "survives", range(0, 30))
        three.kill(2)
        await produce(three.bootstrap, "survives", range(30, 60))
        await asyncio.to_thread(three.restart, 2)
        await produce(three.bootstrap, "survives", range(60, 90))
        return await consume(three.bootstrap, "survives", 90)

    ports_before = three.ports
    read = asyncio.run(story())

    assert sorted(read) == list(range(90))
    assert three.ports == ports_before
    assert all(live_brokers(port) == {1, 2, 3} for port in three.ports.values())


def test_a_topic_that_nobody_made_is_refused(three: Cluster) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=three.bootstrap, request_timeout_ms=2000)
        await producer.start()
        try:
            await producer.send_and_wait("nobody-made-this", b"x", partition=0)
        finally:
            await producer.stop()

    with pytest.raises(UnknownTopicOrPartitionError):
        asyncio.run(send())


def test_only_the_brokers_of_this_folder_are_touched_and_misuse_is_named(three: Cluster) -> None:
    again = Cluster.open(three.directory)  # as another process sees it

    assert again.running() == [1, 2, 3]
    assert again.bootstrap == three.bootstrap
    with pytest.raises(KafkaError, match="run already"):
        again.start()
    with pytest.raises(KafkaError, match="runs already"):
        again.restart(1)
    with pytest.raises(KafkaError, match="not 4"):
        again.restart(4)


def test_a_stopped_cluster_leaves_no_process_and_starts_again_with_its_data(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "one")
    first = cluster.start()

    async def create_one() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=first)
        await admin.start()
        await admin.create_topics([NewTopic("kept", PARTITIONS, 1)])
        await admin.close()

    try:
        asyncio.run(create_one())
        asyncio.run(produce(first, "kept", range(9)))
        cluster.stop()
        left = processes_naming(tmp_path)
        second = cluster.start()
        kept = asyncio.run(consume(second, "kept", 9))
    finally:
        cluster.stop()

    assert left == []
    assert second == first
    assert sorted(kept) == list(range(9))
    assert processes_naming(tmp_path) == []


def test_a_start_that_fails_half_way_leaves_nothing_and_chooses_new_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / "one")
    with socket.socket() as taken:
        (port, controller) = free_ports(2)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        monkeypatch.setattr(cluster_module, "free_ports", lambda _: [port, controller])
        with pytest.raises(KafkaError, match="broker 1 did not become ready"):
            cluster.start()
        left = processes_naming(tmp_path)
        monkeypatch.undo()
        with cluster:
            chosen = cluster.ports[1]

    assert left == []
    assert chosen != port
    assert processes_naming(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_start_that_is_interrupted_stops_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, SCRIPT, "start", str(tmp_path / "one")]) as starting:
        while starting.poll() is None and not (tmp_path / "one" / "1" / "pid").exists():
            time.sleep(0.05)
        was_there = processes_naming(tmp_path / "one" / "1" / "server.properties")
        starting.send_signal(number)

    assert was_there
    assert starting.returncode == 130
    assert processes_naming(tmp_path) == []


def test_the_commands_do_what_the_class_does(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    folder = str(tmp_path / "one")
    try:
        printed = json.loads(run("start", folder).stdout)
        killed = run("kill", folder, "1").returncode, Cluster.open(folder).running()
        restarted = run("restart", folder, "1").returncode, Cluster.open(folder).running()
        alive = live_brokers(printed["brokers"]["1"])
        twice = run("restart", folder, "1")
    finally:
        stopped = run("stop", folder).returncode

    assert printed["bootstrap"] == f"127.0.0.1:{printed['brokers']['1']}"
    assert killed == (0, [])
    assert restarted == (0, [1])
    assert alive == {1}
    assert (twice.returncode, twice.stderr.count("\n")) == (2, 1)
    assert stopped == 0
    assert processes_naming(tmp_path) == []
