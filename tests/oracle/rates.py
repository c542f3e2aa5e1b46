"""STATISTICS.md 0 and 1 and the rate windows, by brute force: one individual at a time, no cells, no running sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.oracle.cutting import windows_of
from tests.oracle.model import HOUR, OContract, OSession, OSettings

Z = 1.959963984540054
AGE_GRID = tuple(hours * HOUR for hours in (0, 1, 2, 4, 8, 12, 18, 24, 36, 48, 72))


@dataclass(frozen=True)
class OEstimate:
    """A survival and its interval; `survival` is None where nothing or not everything is known."""

    status: str
    survival: float | None
    lower: float
    upper: float
    n: int
    n_eff: float
    last_age: int | None = None


@dataclass(frozen=True)
class OIndividual:
    """One session of a delayed rate: when it ended, and at what age its event happened."""

    end: int
    event_age: int | None


def bounds(watermark: int, edge: int, length: int, settings: OSettings) -> tuple[int, int]:
    """[w - length, w) of whole buckets, w = `edge` before the watermark.

    Older buckets are hours (DESIGN.md 6): a bound that lies more than `fold_after` less an hour back is at an hour.
    """
    end = (watermark - edge) // settings.bucket * settings.bucket
    hour = settings.folded_bucket
    old = (watermark + hour - settings.fold_after) // hour * hour
    start, end = (bound // hour * hour if bound < old else bound for bound in (end - length, end))
    return start, end


def in_window(sessions: Sequence[OSession], watermark: int, length: int, settings: OSettings) -> list[OSession]:
    """INTERFACES.md: a window of sessions ends max(session gap, resume window) before the watermark."""
    start, end = bounds(watermark, max(settings.session_gap, settings.resume_window), length, settings)
    return [s for s in sessions if start <= s.end < end]


def wilson(p: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share p of n, both real; [0, 1] without any."""
    if n <= 0:
        return (0.0, 1.0)
    centre = p + Z * Z / (2 * n)
    spread = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return (max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale))


def age_grid(contract: OContract | None, settings: OSettings) -> tuple[int, ...]:
    """DESIGN.md 6: STATISTICS.md's grid plus the family's own deadlines and window, up to its horizon."""
    windows = windows_of(contract, settings)
    own = {c.deadline for c in contract.criteria if c.deadline is not None} if contract else set()
    every = {*AGE_GRID, *own, windows.reopen}
    return tuple(sorted(age for age in every if age <= windows.horizon))


def bucket_of(age: int, grid: Sequence[int]) -> int | None:
    """0: at the end itself; j: in (e[j-1], e[j]]; None: later than the grid."""
    return next((j for j, edge in enumerate(grid) if age <= edge), None)


def at_risk_and_events(
    people: Sequence[OIndividual], j: int, grid: Sequence[int], watermark: int, window: int, settings: OSettings
) -> tuple[int, int]:
    """STATISTICS.md 1: r_j and d_j, one individual after the other, of the newest window that has lived through j.

    A cohort has when its youngest session has: its bucket ends at least the age before the watermark.
    """
    risk = events = 0
    quiet = max(settings.session_gap, settings.resume_window)
    start, end = bounds(watermark, max(grid[j], quiet), window, settings)
    for person in people:
        happened = None if person.event_age is None else bucket_of(person.event_age, grid)
        if start <= person.end < end and (happened is None or happened >= j):
            risk += 1
            events += happened == j
    return risk, events


def life_table(table: Sequence[tuple[int, int]], grid: Sequence[int]) -> OEstimate:
    """STATISTICS.md 1: survival over the ages, Greenwood's variance, Wilson at the effective size."""
    if table[0][0] == 0:
        return OEstimate("empty", None, 0.0, 1.0, 0, 0.0)
    identified = next((j for j, (risk, _) in enumerate(table) if risk == 0), len(table))
    dead = next((j for j, (risk, events) in enumerate(table[:identified]) if events == risk), None)
    if dead is not None:
        table = table[: dead + 1]  # nobody is left: later ages add nothing
        identified = len(table)
    survival, variance = 1.0, 0.0
    for risk, events in table[:identified]:
        survival *= 1 - events / risk
        if 0 < events < risk:
            variance += events / (risk * (risk - events))
    if dead is not None or variance == 0.0:
        survival = 1.0 if dead is None else 0.0
        n_eff = float(min(risk for risk, _ in table[:identified]))
    else:
        n_eff = (1 - survival) / (survival * variance)
    lower, upper = wilson(survival, n_eff)
    last = grid[identified - 1]
    if identified < len(table):
        return OEstimate("partial", survival, 0.0, upper, table[0][0], n_eff, last)
    return OEstimate("full", survival, lower, upper, table[0][0], n_eff, last)


def true_up(
    people: Sequence[OIndividual], grid: Sequence[int], watermark: int, window: int, settings: OSettings
) -> OEstimate:
    """The period life table of individuals."""
    table = [at_risk_and_events(people, j, grid, watermark, window, settings) for j in range(len(grid))]
    return life_table(table, grid)


def individuals(sessions: Sequence[OSession], ages: Mapping[tuple[str, str, int], int | None]) -> list[OIndividual]:
    """The sessions of a delayed rate's denominator as individuals."""
    return [OIndividual(s.end, ages[s.key]) for s in sessions if s.key in ages]


def system_rate(of_families: Mapping[str, tuple[int, float]]) -> float | None:
    """DESIGN.md 6: the weighted sum of the families' rates (weight: sessions), never one pooled table."""
    total = sum(weight for weight, _ in of_families.values())
    if total == 0:
        return None
    return sum(weight * rate for _, (weight, rate) in sorted(of_families.items())) / total
