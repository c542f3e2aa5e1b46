"""Records that make a step raise: each becomes a dead letter, and the state stays as if it had never come.

The rule this file keeps: a step that raised is trusted no more. Its runner goes back to the checkpoint and takes the
input since then again, record by record up to where it broke; so the record at fault is found, and left out when the
input is taken once more. Where no record since the checkpoint is to blame, but the step says at which key it broke,
that key is set aside: it stays as it was last published, until the worker starts again. However many records and keys
there are of the kind, the stage goes on for all others; only an error that neither is to blame for ends it.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import msgspec

from pipeline.core.effects import KeyBroke, Outbox, Result
from pipeline.logs import Log
from pipeline.runners.messages import Incoming
from schemas.topics import Topic
from schemas.wire import DeadLetter, Keyed

log = Log("runners.bad_records")

REASON = "step_error"
MANY = "one after the other makes its step raise: the fault may be ours"
MANY_IN_A_ROW = 10
"""So many are hardly an accident: whoever looks after the pipeline is told that the fault may be ours."""

Place = tuple[int, int]  # offset of the message, index of the record in it


class StepBroke(Exception):
    """The step raised, and what it holds is trusted no more: go back to the checkpoint and take the input again."""


class BadRecords:
    """What is known of the bad records of one partition; kept over restores, for as long as its worker lives.

    Args:
        careful_to: up to this offset records are applied, and what comes of them published, one by one.
    """

    def __init__(self, stage: str, number: int) -> None:
        self.stage, self.number = stage, number
        self.careful_to = -1
        self.aside: frozenset[bytes] = frozenset()
        self.untold: dict[bytes, str] = {}  # keys set aside, and why, of which no letter was sent yet
        self._why: dict[Place, str] = {}
        self._last: Place = (-1, -1)
        self._in_a_row = 0

    def why(self, place: Place) -> str:
        """What this record made the step raise; empty where it is not known to be bad."""
        return self._why.get(place, "")

    def blame(self, place: Place, record: object, error: Exception) -> None:
        """The record made the step raise."""
        self._one_more()
        self._why[place], self._last = raised(error), place
        log.error(
            "a record makes its step raise; it becomes a dead letter",
            error,
            stage=self.stage,
            partition=self.number,
            offset=place[0],
            record=place[1],
            kind=type(record).__name__,
        )

    def set_aside(self, error: KeyBroke) -> None:
        """No record since the checkpoint is to blame, but this key is.

        Raises:
            KeyBroke: the error itself, where the key is set aside already: then the step does not heed it.
        """
        if error.key in self.aside:
            raise error
        self._one_more()
        self.aside |= {error.key}
        self.untold[error.key] = raised(error)
        log.error(
            "a key makes its step raise; it stays as it was last published",
            error,
            stage=self.stage,
            partition=self.number,
            key=error.key,
        )

    def _one_more(self) -> None:
        self._in_a_row += 1
        if self._in_a_row % MANY_IN_A_ROW == 0:
            log.error(MANY, stage=self.stage, partition=self.number, in_a_row=self._in_a_row)

    def went_well(self, place: Place) -> None:
        """A record was applied; what is taken again, before the last bad one, proves nothing new."""
        if place > self._last:
            self._in_a_row = 0

    def forget(self, before: int) -> None:
        """No message before this offset is taken again."""
        for place in [place for place in self._why if place[0] < before]:
            del self._why[place]


def raised(error: BaseException) -> str:
    """What was raised and where, without its text, which may hold content."""
    if isinstance(error, KeyBroke) and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def bury(
    outbox: Outbox, target: int, message: Incoming, why: str, record: Any = None, index: int = 0, count: int = 1
) -> None:
    """Make a dead letter of a record, or of a whole message."""
    trace_id = getattr(record, "trace_id", b"")
    letter = DeadLetter(
        reason=REASON,
        detail=f"record {index} of the message made the step raise {why}",
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        size=len(message.value or b""),
        record_time=message.record_time,
        tenant=str(getattr(record, "tenant", "")),
        trace_id=trace_id.hex() if isinstance(trace_id, bytes) else str(trace_id),
    )
    key = f"{message.topic}/{message.partition}/{message.offset}/{index}".encode()
    outbox.send(Topic.DEAD_LETTERS, target, Keyed(key, msgspec.json.encode(letter)))
    outbox.count(Result.DEAD_LETTERED, REASON, count)


def bury_key(outbox: Outbox, topic: str, number: int, key: bytes, why: str) -> None:
    """Make a dead letter of what a step holds under a key, which lies in no one message."""
    detail = f"the step raised {why} at the key {key.decode(errors='replace')!r}, which stays as it was last published"
    letter = DeadLetter(REASON, detail, topic, number, -1, 0, 0)
    name = f"{topic}/{number}/".encode() + key
    outbox.send(Topic.DEAD_LETTERS, number, Keyed(name, msgspec.json.encode(letter)))
    outbox.count(Result.NOTED, REASON)
