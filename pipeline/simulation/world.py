"""Builds a world: conversations, what came of them, everything that is sent about them, and the truth.

The same seed, size and moment give the same world, to the last id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from pipeline.simulation.conversations import draw_conversation
from pipeline.simulation.ledger import Truth, truth
from pipeline.simulation.outcomes import told
from pipeline.simulation.plan import ConversationPlan, Report
from pipeline.simulation.spans import Agents
from pipeline.simulation.stories import Story, stories
from pipeline.simulation.traffic import Arrival, Faults, arrivals

EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class World:
    """A simulated stretch of days. `truth`: (family, rate) to (numerator, denominator), the system's family is ''."""

    seed: int
    now: datetime
    sessions: int
    truth: Truth
    arrivals: list[Arrival]
    faults: Faults
    stories: list[Story]
    conversations: list[ConversationPlan]


def build(seed: int, sessions: int, now: datetime) -> World:
    """A world of at least `sessions` sessions, all of them mature at `now`.

    Raises:
        ValueError: `now` has no time zone, or no session is asked for.
    """
    if now.tzinfo is None or sessions < 1:
        raise ValueError("a world needs an aware moment as its now, and at least one session")
    now_ns = (now - EPOCH) // timedelta(microseconds=1) * 1000
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
