"""Builds a world: conversations, what came of them, everything that is sent about them, and the truth.

The same seed, size and moment give the same world, to the last id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from pipeline.simulation.conversations import draw_conversation
from pipeline.simulation.hard.scene import Where
from pipeline.simulation.hard.world import USUAL_SHARE, HardWorld
from pipeline.simulation.ledger import Account, Truth, summed, truth
from pipeline.simulation.outcomes import told
from pipeline.simulation.plan import ConversationPlan, Report
from pipeline.simulation.spans import Agents
from pipeline.simulation.stories import Story, stories
from pipeline.simulation.traffic import Arrival, Faults, arrivals

EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class World:
    """A simulated stretch of days.

    Args:
        truth: (family, rate) to (numerator, denominator), the system's family is ''.
        verdicts: what must come of each session, and of no other; of a hard world alone.
        kinds: how often each kind of scene was played; of a hard world alone.
    """

    seed: int
    now: datetime
    sessions: int
    truth: Truth
    arrivals: list[Arrival]
    faults: Faults
    stories: list[Story]
    conversations: list[ConversationPlan]
    verdicts: Mapping[Where, Account] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)


def build(seed: int, sessions: int, now: datetime) -> World:
    """A world of at least `sessions` sessions, all of them mature at `now`.

    Raises:
        ValueError: `now` has no time zone, or no session is asked for.
    """
    now_ns = _nanoseconds(now, sessions)
    rng = Random(seed)
    conversations: list[ConversationPlan] = []
    reports: list[Report] = []
    drawn = 0
    while drawn < sessions:
        conversation, said = told(rng, draw_conversation(rng, len(conversations) + 1, now_ns), now_ns)
        conversations.append(conversation)
        reports += said
        drawn += len(conversation.sessions)
    sent, faults = arrivals(rng, Agents(rng).traces(conversations), reports)
    return World(
        seed=seed, now=now, sessions=drawn, truth=truth(conversations), arrivals=sent, faults=faults,
        stories=stories(conversations), conversations=conversations,
    )  # fmt: skip


def build_hard(seed: int, sessions: int, now: datetime) -> World:
    """A world of at least `sessions` sessions, half of them in scenes of what goes wrong: every kind at least once.

    Raises:
        ValueError: `now` has no time zone, or no session is asked for.
    """
    now_ns = _nanoseconds(now, sessions)
    hard = HardWorld(Random(seed), now_ns)
    hard.usual(round(sessions * USUAL_SHARE))
    hard.scenes(sessions)
    sent, faults = hard.arrivals()
    return World(
        seed=seed, now=now, sessions=len(hard.verdicts), truth=summed(hard.counted), arrivals=sent, faults=faults,
        stories=stories(hard.conversations), conversations=hard.conversations, verdicts=hard.verdicts,
        kinds=hard.kinds,
    )  # fmt: skip


def _nanoseconds(now: datetime, sessions: int) -> int:
    if now.tzinfo is None or sessions < 1:
        raise ValueError("a world needs an aware moment as its now, and at least one session")
    return (now - EPOCH) // timedelta(microseconds=1) * 1000
