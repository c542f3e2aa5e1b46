"""In what order a world arrives: batches of records and the watermark after each, as any set of senders could do it.

The watermark stays where the laws hold (RULES.md 49): spans come before what they may touch settles, outcomes within
retention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from pipeline.core.judging.accept import settles_after
from pipeline.core.timeline import HOUR, MINUTE
from tests.oracle.model import OOutcome, OSpan
from tests.property.contracts import BOOK
from tests.property.worlds import RULES, World, corrected

SETTLES = settles_after(BOOK, RULES)
Record = OSpan | OOutcome


@dataclass(frozen=True)
class Batch:
    """Some records that arrive together, and how far event time has come then."""

    records: tuple[Record, ...]
    watermark: int


def time_of(record: Record) -> int:
    return corrected(record).end if isinstance(record, OSpan) else record.event_time


def most(world: World, waiting: Sequence[Record]) -> int:
    """How far event time may have come while these have not arrived."""
    limits = [world.reached]
    limits += [world.begin + SETTLES for one in waiting if isinstance(one, OSpan)]
    limits += [one.event_time + RULES.retention for one in waiting if isinstance(one, OOutcome)]
    return max(0, min(limits))


def in_order(world: World) -> list[Batch]:
    """Everything in order of time, what is of one minute together, the watermark close behind."""
    everything: list[Record] = [*world.spans, *world.outcomes]
    records = sorted(everything, key=time_of)
    batches = []
    taken = 0
    for _, group in groupby(records, key=lambda one: time_of(one) // MINUTE):
        batch = tuple(group)
        taken += len(batch)
        batches.append(Batch(batch, min(time_of(batch[-1]), most(world, records[taken:]))))
    return [*batches, Batch((), world.watermark)]


def delivery(world: World, random: Random) -> list[Batch]:
    """Any order that could be; half of the times one outcome comes when all else is long judged."""
    records: list[Record] = [*world.spans, *world.outcomes]
    jitter = random.choice((0, HOUR, 10**18))
    records.sort(key=lambda one: time_of(one) + random.randint(0, jitter))
    last: list[Record] = []
    if world.outcomes and random.random() < 0.9:
        by_session = [one for one in world.outcomes if one.session_id]
        chosen = random.choice(by_session or world.outcomes)
        last = [one for one in records if one is chosen]
        records = [one for one in records if one is not chosen]
    batches = []
    watermark = 0
    while records:
        size = random.randint(1, 8)
        taken, records = records[:size], records[size:]
        waiting = [*records, *last]
        limit = most(world, waiting)
        if random.random() < 0.5 and limit > watermark:
            near = min(limit, max(map(time_of, taken)) + random.choice((0, 0, HOUR, 30 * HOUR)))
            watermark = max(watermark, near if random.random() < 0.8 else limit)
        batches.append(Batch(tuple(taken), watermark))
    if last:
        batches.append(Batch((), max(watermark, most(world, last))))
        batches.append(Batch(tuple(last), batches[-1].watermark))
    return [*batches, Batch((), world.watermark)]
