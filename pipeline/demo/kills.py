"""kill -9 of a worker while data flows, at the moments that are hardest to survive.

The first kill comes between the outputs of a checkpoint and its marker, the second between the marker and the
acknowledgement, the others at any moment. What the worker then says about its restart is told.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from pipeline.embedded.children import Child
from pipeline.embedded.machine import READY_SECONDS, Machine
from schemas.topics import Stage

POINTS = {"outputs_sent": "after the outputs of a checkpoint, before its marker",
          "marker_sent": "after a marker, before the acknowledgement"}  # fmt: skip
SOONEST, LATEST = 2, 10  # checkpoints of a stage until the kill, once data flows: a second or two
FLOWS = 0.02  # of the data, sent since the worker was ready: then it has some in hand
RANDOM_SECONDS = 2.0, 5.0
RESTORED, CAUGHT_UP = "partition restored", "partition caught up"
FIELD = re.compile(r"(\w+)=(\S+)")

Say = Callable[[str], None]


class Kills:
    """`times` kills of the first worker of a machine; call `look` again and again while data flows."""

    def __init__(self, machine: Machine, times: int, seed: int, say: Say) -> None:
        self._machine, self._times, self._say = machine, times, say
        self._random = Random(seed)
        self.done = 0
        self.points: list[str] = []  # those that were met
        self._planned: str | None = None
        self._at: float | None = None
        self._share: float | None = None  # that was sent when the worker was ready

    @property
    def victim(self) -> Child:
        return self._machine.workers[0]

    def plan(self) -> list[str]:
        """What the worker is to be started with, so that the next kill comes."""
        self._planned = self._at = self._share = None
        if self.done >= self._times:
            return []
        if self.done < len(POINTS):
            self._planned = list(POINTS)[self.done]
            stage = self._random.choice([Stage.RESOLVE, Stage.JUDGE, Stage.MEASURE])
            return ["--kill-at", f"{self._planned}:{stage}:{self._random.randint(SOONEST, LATEST)}"]
        self._at = time.monotonic() + self._random.uniform(*RANDOM_SECONDS)
        return []

    @property
    def outstanding(self) -> bool:
        return self.done < self._times

    def look(self, share: float) -> bool:
        """Kill the worker if it is time, and restart it if it is dead; whether there are more to come.

        Args:
            share: of the data that is sent; when all is, what is left of the kills comes at once.
        """
        if self.outstanding:
            self._look(share)
        return self.outstanding

    def _look(self, share: float) -> None:
        self._share = share if self._share is None else self._share
        if self._planned is not None and share >= self._share + FLOWS:
            self.victim.tell(signal.SIGUSR1)
        if share >= 1.0 or (self._at is not None and time.monotonic() >= self._at):
            self.victim.kill()
        if self.victim.returncode is None:
            return
        self.done += 1
        self.points.append(self._planned or "any")
        where = POINTS.get(self._planned or "", "at any moment")
        self._say(f"kill -9 of {self.victim.name}, number {self.done}: {where}")
        self._restart()

    def _restart(self) -> None:
        victim, began = self.victim, time.monotonic()
        said_before = victim.log.stat().st_size
        victim.start(self.plan())
        victim.wait_ready(READY_SECONDS)
        self._say(f"  {victim.name} is back after {time.monotonic() - began:.1f} s: {told(victim.log, said_before)}")


def told(log: Path, since: int) -> str:
    """What a worker said of its restart, in a line.

    Args:
        since: bytes of its log that were there before.
    """
    lines = log.read_bytes()[since:].decode(errors="replace").splitlines()
    restored = [dict(FIELD.findall(line)) for line in lines if RESTORED in line]
    caught_up = [dict(FIELD.findall(line)) for line in lines if CAUGHT_UP in line]
    keys = sum(int(one["keys"]) for one in restored)
    again = sum(int(one["records_read_again"]) for one in caught_up)
    seconds = max((float(one["input_seconds"]) for one in caught_up), default=0.0)
    return (
        f"restored {keys:,} keys of {len(restored)} partitions, re-read {again:,} records, "
        f"{seconds:.1f} s of input at most in a partition"
    )
