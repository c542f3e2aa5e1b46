"""Segment totals: what a partition says about a segment's bucket, and what is published about a segment."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import msgspec


class Rate(StrEnum):
    COMPLETION = "completion"
    CLAIMED_COMPLETION = "claimed_completion"
    VERIFIED_COMPLETION = "verified_completion"
    RESOLUTION = "resolution"
    CONFIRMED_RESOLUTION = "confirmed_resolution"
    REOPEN = "reopen"
    ESCALATION = "escalation"
    CONTAINMENT = "containment"
    TOOL_SUCCESS = "tool_success"
    ATTRIBUTION = "attribution"


class Measure(StrEnum):
    """What a mean is taken of, over the eligible sessions that have it."""

    SCORE = "score"
    GOAL_ACHIEVEMENT = "goal_achievement"
    COHERENCE = "coherence"
    FEEDBACK = "feedback"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    TOOL = "tool"
    PROMPT = "prompt"
    SYSTEM = "system"
    TURNS = "turns"
    TOOL_CALLS = "tool_calls"
    RETRIES = "retries"
    TOOL_NAME_PRECISION = "tool_name_precision"
    TOOL_NAME_RECALL = "tool_name_recall"
    TOOL_ARGUMENT_PRECISION = "tool_argument_precision"
    TOOL_ARGUMENT_RECALL = "tool_argument_recall"
    RELIABILITY = "reliability"
    COST_USD = "cost_usd"


LAYERS = (Measure.MEMORY, Measure.KNOWLEDGE, Measure.TOOL, Measure.PROMPT, Measure.SYSTEM)
"""What an evaluation may be about: the four targets, and the system as a whole."""
ON_TEN = frozenset({Measure.GOAL_ACHIEVEMENT, Measure.COHERENCE})
"""Measures on a scale from 0 to 10; counts aside, the others are from 0 to 1."""
MICRO = 1_000_000
"""Sums are kept in whole millionths, so that they do not depend on the order of adding."""

GOOD_DOWN = frozenset({Rate.REOPEN, Rate.ESCALATION})
WINDOWS: dict[str, int] = {"1h": 3600, "6h": 6 * 3600, "24h": 24 * 3600, "7d": 7 * 24 * 3600}

Dimensions = tuple[tuple[str, str], ...]

DIMENSIONS = ("family", "agent", "model", "tool")
"""What cubes are made of. A session has several agents, models and tools, and counts once under each."""
CUBES = ("system", "family")
"""Those that are always there; `system` has no dimension."""


@cache
def dimensions_of(cube: str) -> tuple[str, ...]:
    """The dimensions of a cube: of `family+agent` both, in this order, of `system` none.

    Raises:
        ValueError: a name in it is no dimension, or there twice.
    """
    if cube == CUBES[0]:
        return ()
    names = tuple(cube.split("+"))
    if unknown := [name for name in names if name not in DIMENSIONS]:
        raise ValueError(f"there is no dimension {unknown[0]!r}; there are {', '.join(DIMENSIONS)}, joined by +")
    if len(set(names)) < len(names):
        raise ValueError(f"{cube!r} names a dimension twice")
    return names


class Cell(msgspec.Struct, array_like=True, frozen=True):
    """Counts of one rate of one task family in one bucket.

    Args:
        rate: of `Rate`.
        stratum: the task family, and the contract version whose grid the ages are of: `order_placement@3`.
        n: sessions (tool calls) in the denominator.
        good: of them, those in the numerator now.
        events: of them, those whose event fell in age bucket j of the stratum's grid (j = 0: already true at the end).
    """

    rate: str
    stratum: str
    n: int
    good: int
    events: tuple[int, ...]


class Partial(msgspec.Struct, array_like=True, frozen=True, tag="p"):
    """`trueup.partials`: all that one partition of stage 4 counts in one bucket of one segment: absolute, not a delta.

    Args:
        bucket: start of the cohort bucket, ns; `width` ns.
        owner: the stage-4 partition that counts.
        version: of one (cube, dimensions, bucket, owner) the highest holds.
        states: sessions by state, such as `claimed_completed` or `pending`.
        means: (measure, sessions that have it, sum in millionths).
        failures: `stage/<stage>` and `criterion/<id>` -> eligible sessions that failed so.
        outcome_at: when the newest outcome that it takes up was written to Kafka, ns; 0 if none brought it about.
    """

    cube: str
    dimensions: Dimensions
    bucket: int
    width: int
    owner: int
    version: int
    cells: tuple[Cell, ...]
    states: dict[str, int]
    outcome_at: int = 0
    means: tuple[tuple[str, int, int], ...] = ()
    failures: dict[str, int] = {}


class PartialReset(msgspec.Struct, array_like=True, frozen=True, tag="r"):
    """`trueup.partials`: every partial of `owner` with a version below this one is void (its worker died unheard)."""

    owner: int
    version: int


class RateReading(msgspec.Struct, frozen=True):
    """A rate as published: gauges, API and report read this and nothing else.

    Args:
        numerator, denominator: observed counts in the window.
        ratio: the estimate (delayed rates: true-up); None without a denominator or where no age was lived through.
        lower, upper: its 95 % interval, 0 to 1.
        effective_n: the binomial sample size that the interval is worth.
        maturity: share of the cohort's delayed evidence that is in, 0 to 1; None without a denominator.
        target: the contract's target, if it names one.
        as_of: the watermark, ns.
    """

    cube: str
    dimensions: Dimensions
    rate: str
    window: str
    numerator: int
    denominator: int
    ratio: float | None
    lower: float
    upper: float
    effective_n: float
    maturity: float | None
    target: float | None
    as_of: int


class MeanReading(msgspec.Struct, frozen=True):
    """A mean as published, of the sessions of a window that have the measure: how many they are goes with it."""

    cube: str
    dimensions: Dimensions
    measure: str
    window: str
    mean: float
    count: int
    target: float | None
    as_of: int


class CountReading(msgspec.Struct, frozen=True):
    """Sessions of a window by something: `what` is `state`, `stage` or `criterion`, `name` which of them."""

    cube: str
    dimensions: Dimensions
    what: str
    name: str
    window: str
    count: int
    as_of: int
