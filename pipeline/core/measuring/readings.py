"""Rates of a segment from its buckets: observed counts, the true-up estimate, maturity (STATISTICS.md 1).

A period life table: the hazard of each age comes from the newest window of cohorts that have lived through it. A
segment of several families is the weighted sum of its families' rates, never one pooled table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.core.contracts.book import ContractBook
from pipeline.core.estimators import EMPTY, Estimate, complement, proportion, survival, weighted
from pipeline.core.measuring.grids import DELAYED, EVENT_IS_FAILURE, ages, target
from pipeline.core.timeline import TimeRules
from pipeline.core.windows import window_bounds
from schemas.segment import Cell, Dimensions, Rate, RateReading

Buckets = Mapping[int, Mapping[tuple[str, str], Cell]]


@dataclass(frozen=True, slots=True)
class _Stratum:
    n: int
    good: int
    estimate: Estimate
    maturity: float
    target: float | None


def read_segment(
    cube: str,
    dimensions: Dimensions,
    buckets: Buckets,
    windows: Mapping[str, int],
    book: ContractBook,
    rules: TimeRules,
    watermark: int,
) -> list[RateReading]:
    """Every rate of one segment in every window.

    Args:
        buckets: bucket start (ns) -> (rate, stratum) -> summed cell.
        windows: name -> length, ns.
    """
    strata = sorted({key for cells in buckets.values() for key in cells})
    found = []
    for window, length in windows.items():
        for rate in Rate:
            mine = [
                (name, _read(buckets, rate, name, length, book, rules, watermark))
                for one, name in strata
                if one == rate
            ]
            kept = [(name, one) for name, one in mine if one.n]
            if kept:
                found.append(_combine(cube, dimensions, rate, window, kept, watermark))
    return found


def _combine(
    cube: str, dimensions: Dimensions, rate: Rate, window: str, kept: list[tuple[str, _Stratum]], watermark: int
) -> RateReading:
    n, good = sum(one.n for _, one in kept), sum(one.good for _, one in kept)
    if rate in DELAYED:
        estimate = weighted([(one.n / n, one.estimate) for _, one in kept])
    else:
        estimate = proportion(good, n)
    targets = [(one.n / n, one.target) for _, one in kept if one.target is not None]
    return RateReading(
        cube=cube,
        dimensions=dimensions,
        rate=rate.value,
        window=window,
        numerator=good,
        denominator=n,
        ratio=estimate.rate,
        lower=estimate.lower,
        upper=estimate.upper,
        effective_n=estimate.effective_n,
        maturity=sum(one.n / n * one.maturity for _, one in kept),
        target=sum(weight * value for weight, value in targets) if len(targets) == len(kept) else None,
        as_of=watermark,
    )


def _read(
    buckets: Buckets, rate: Rate, stratum: str, length: int, book: ContractBook, rules: TimeRules, watermark: int
) -> _Stratum:
    start, end = window_bounds(watermark, length, rules)
    key = (rate.value, stratum)
    cells = [
        cell for bucket, group in buckets.items() if start <= bucket < end and (cell := group.get(key)) is not None
    ]
    n, good = sum(cell.n for cell in cells), sum(cell.good for cell in cells)
    contract = book.named(stratum)
    if rate not in DELAYED or contract is None or not n:
        return _Stratum(n, good, proportion(good, n), 1.0, target(book, stratum, rate))
    grid = ages(contract, rate)
    quiet = max(rules.session_gap, rules.resume_window)
    at_risk, events = [], []
    for index, age in enumerate(grid):
        shift = max(age, quiet) - quiet
        window = (start - shift, end - shift)
        chosen = [group[key] for bucket, group in buckets.items() if window[0] <= bucket < window[1] and key in group]
        at_risk.append(sum(cell.n - sum(cell.events[:index]) for cell in chosen))
        events.append(sum(cell.events[index] for cell in chosen if len(cell.events) > index))
    estimate = survival(at_risk, events)
    lived = _maturity(buckets, key, (start, end), grid, at_risk, events, quiet)
    chosen_estimate = estimate if rate in EVENT_IS_FAILURE else complement(estimate)
    if estimate.status == "empty":
        chosen_estimate = EMPTY
    return _Stratum(n, good, chosen_estimate, lived, target(book, stratum, rate))


def _maturity(
    buckets: Buckets,
    key: tuple[str, str],
    window: tuple[int, int],
    grid: tuple[int, ...],
    at_risk: list[int],
    events: list[int],
    quiet: int,
) -> float:
    """sum n_c F(age_c) / (F(H) sum n_c), F = 1 - S; where no event is known, the share that has lived through all ages."""
    alive, learnt = 1.0, []
    for risk, event in zip(at_risk, events, strict=True):
        alive *= 1 - event / risk if risk else 1.0
        learnt.append(1 - alive)
    last = learnt[-1]
    total = weight = 0.0
    for bucket in sorted(buckets):
        cell = buckets[bucket].get(key)
        if cell is None or not window[0] <= bucket < window[1]:
            continue
        lived = sum(bucket < window[1] - (max(age, quiet) - quiet) for age in grid)
        total += cell.n
        weight += cell.n * (learnt[lived - 1] / last if last and lived else float(lived == len(grid)))
    return weight / total if total else 1.0


def sum_cells(groups: Iterable[Iterable[Cell]]) -> dict[tuple[str, str], Cell]:
    """Cells of several partitions, added up."""
    found: dict[tuple[str, str], list[int]] = {}
    for cells in groups:
        for cell in cells:
            into = found.setdefault((cell.rate, cell.stratum), [0, 0])
            values = [cell.n, cell.good, *cell.events]
            into.extend([0] * (len(values) - len(into)))
            for index, value in enumerate(values):
                into[index] += value
    return {key: Cell(*key, into[0], into[1], tuple(into[2:])) for key, into in sorted(found.items())}
