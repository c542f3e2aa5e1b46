"""Rates with their intervals: Wilson, the period life table for delayed outcomes, and weighted sums over strata.

All are computed from integer counts in sorted order, so that every worker gets the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod, sqrt

Z95 = 1.959963984540054
"""Source: the 97.5 % quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate. `rate` is None without a denominator, or where an age was not lived through by anybody yet.

    Args:
        rate, lower, upper: 0 to 1.
        n: sessions at risk at the start.
        effective_n: the binomial sample size that the interval is worth.
        status: `ok`, `empty` (n = 0) or `partial` (identified only up to `age_index`).
    """

    rate: float | None
    lower: float
    upper: float
    n: int
    effective_n: float
    status: str = "ok"
    age_index: int = 0


EMPTY = Estimate(None, 0.0, 1.0, 0, 0.0, "empty")


def wilson(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Limits of a proportion `p` of `n` (both real): exactly 0 at p = 0 and 1 at p = 1; [0, 1] at n = 0.

    Source: Wilson (1927); STATISTICS.md section 4.
    """
    if n <= 0:
        return 0.0, 1.0
    z2 = z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * sqrt(max(0.0, p * (1 - p) / n + z2 / (4 * n * n)))
    return (0.0 if p <= 0 else max(0.0, centre - half)), (1.0 if p >= 1 else min(1.0, centre + half))


def proportion(good: int, n: int) -> Estimate:
    """`good` of `n` with its Wilson interval."""
    if n == 0:
        return EMPTY
    lower, upper = wilson(good / n, n)
    return Estimate(good / n, lower, upper, n, float(n))


def survival(at_risk: Sequence[int], events: Sequence[int]) -> Estimate:
    """The share without event by the period life table, with Rothman's interval.

    Args:
        at_risk, events: (ages,), by age bucket; each pair from the cohorts that have lived through that bucket.
    Source: Greenwood's variance, Wilson at the effective sample size (Rothman 1978); STATISTICS.md section 1.
    """
    if not at_risk or at_risk[0] == 0:
        return EMPTY
    known = next((index for index, r in enumerate(at_risk) if r == 0), len(at_risk))
    if any(events[j] >= at_risk[j] for j in range(known)):
        known = next(j + 1 for j in range(known) if events[j] >= at_risk[j])  # nobody is left: later ages add nothing
        complete = True
    else:
        complete = known == len(at_risk)
    share = prod(1 - events[j] / at_risk[j] for j in range(known))
    least = float(min(at_risk[:known]))
    if share in (0.0, 1.0):
        effective = least
    else:
        variance = sum(events[j] / (at_risk[j] * (at_risk[j] - events[j])) for j in range(known))
        effective = (1 - share) / (share * variance)
    lower, upper = wilson(share, effective)
    if complete:
        return Estimate(share, lower, upper, at_risk[0], effective)
    return Estimate(None, 0.0, upper, at_risk[0], effective, "partial", known - 1)


def complement(one: Estimate) -> Estimate:
    """The event rate that belongs to a survival."""
    rate = None if one.rate is None else 1 - one.rate
    return Estimate(rate, 1 - one.upper, 1 - one.lower, one.n, one.effective_n, one.status, one.age_index)


def weighted(strata: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The sum of `weight * rate` over strata (weights sum to 1), with the stratified Wilson interval.

    One stratum gives exactly its own interval. A stratum that is not identified leaves the sum without a rate, with the
    weighted bounds as its interval.

    Source: Yan and Su (2010), fixed weights; STATISTICS.md section 2.
    """
    if not strata:
        return EMPTY
    n = sum(one.n for _, one in strata)
    if len(strata) == 1:
        return strata[0][1]
    if any(one.rate is None for _, one in strata):
        lower = sum(weight * one.lower for weight, one in strata)
        upper = sum(weight * one.upper for weight, one in strata)
        return Estimate(None, lower, upper, n, sum(one.effective_n for _, one in strata), "partial")
    rates = [(weight, one.rate or 0.0, one.effective_n) for weight, one in strata]
    rate = sum(weight * p for weight, p, _ in rates)
    parts = [weight * weight * p * (1 - p) / size for weight, p, size in rates]
    spread = sum(parts)
    z = Z95 * sqrt(spread) / sum(sqrt(part) for part in parts) if spread > 0 else Z95
    lower = sum(weight * wilson(p, size, z)[0] for weight, p, size in rates)
    upper = sum(weight * wilson(p, size, z)[1] for weight, p, size in rates)
    least = sum(weight * weight / size for weight, _, size in rates)
    effective = rate * (1 - rate) / spread if spread > 0 else (1 / least if least else inf)
    return Estimate(rate, lower, upper, n, effective)
