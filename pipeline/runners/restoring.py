"""How a partition comes back: its state from the checkpoint, its place in the input, and the proof that both fit.

The rule this file keeps: a step is told that it has caught up by a message of our own behind all that was in the
log, since what a broker says of the log's end is not to be trusted everywhere; and input or state that is gone is an
error with a name, never silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pipeline.errors import InputLost, InputRemade, SnapshotLost
from pipeline.logs import Log
from pipeline.runners.checkpoint import Checkpoint
from pipeline.runners.messages import MessageLog, Outgoing, envelopes
from pipeline.runners.options import StageSpec
from pipeline.runners.partition import Partition

log = Log("runners.restoring")


async def restore(
    spec: StageSpec,
    number: int,
    broker: MessageLog,
    checkpoint: Checkpoint,
    make: Callable[[], Partition],
    committed: int,
    epoch: int,
) -> Partition:
    """Take a partition over and bring back its state.

    Args:
        make: a new, empty partition.
        committed: what the group had committed on its input when the worker started; 0 when nothing.
        epoch: the versions' highest part.

    Raises:
        SnapshotLost, InputLost, InputRemade: what cannot be made good by reading.
    """
    began, restored_at = time.perf_counter(), time.time_ns()
    source = spec.source
    replay = await checkpoint.open()
    partition = make()
    partition.restore(replay.states, replay.marker, checkpoint.restores, epoch)
    first = await broker.begin(source, number)
    if replay.marker is None:
        if committed > first:
            raise SnapshotLost(
                f"{spec.snap}[{number}] is empty, but the group has read {source} up to offset "
                f"{committed}: the topic was made anew; restore it, or reset the group's offsets and raise "
                "the epoch to publish everything again"
            )
        partition.applied = first - 1
    elif first > partition.applied + 1:
        raise InputLost(source, number, partition.applied, first)
    [barrier] = await broker.append([Outgoing(source, number, None, envelopes([], [])[0])])
    if barrier <= partition.applied:
        raise InputRemade(source, number, partition.applied, barrier)
    partition.wait_for(barrier, restored_at)
    log.info(
        "partition restored",
        stage=spec.stage,
        partition=number,
        keys=len(replay.states),
        seconds=round(time.perf_counter() - began, 3),
        input_continues_at=partition.applied + 1,
        waiting=barrier - partition.applied - 1,
    )
    return partition
