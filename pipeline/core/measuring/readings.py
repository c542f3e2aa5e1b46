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
from pipeline.core.measuring.series import Series
from pipeline.core.timeline import TimeRules
from pipeline.core.windows import at_a_bucket, window_bounds
from schemas.segment import Cell, Dimensions, Rate, RateReading

AllSeries = Mapping[tuple[str, str], Series]
"""(rate, stratum) -> its counts over time."""


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
    series: AllSeries,
    windows: Mapping[str, int],
    book: ContractBook,
    rules: TimeRules,
    watermark: int,
) -> list[RateReading]:
    """Every rate of one segment in every window.

    Args:
        windows: name -> length, ns.
    """
    found = []
    for window, length in windows.items():
        for rate in Rate:
            mine = [
                (name, _read(one, rate, name, length, book, rules, watermark))
                for (of, name), one in sorted(series.items())
                if of == rate
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
    series: Series, rate: Rate, stratum: str, length: int, book: ContractBook, rules: TimeRules, watermark: int
) -> _Stratum:
    start, end = window_bounds(watermark, length, rules)
    n, good = series.counts(start, end)
    contract = book.named(stratum)
    if rate not in DELAYED or contract is None or not n:
        return _Stratum(n, good, proportion(good, n), 1.0, target(book, stratum, rate))
    quiet = max(rules.session_gap, rules.resume_window)
    shifts = [max(age, quiet) - quiet for age in ages(contract, rate)]
    ends = [at_a_bucket(end - shift, watermark, rules) for shift in shifts]
    starts = [at_a_bucket(start - shift, watermark, rules) for shift in shifts]
    lived = [series.at_age(index, *bounds) for index, bounds in enumerate(zip(starts, ends, strict=True))]
    at_risk, events = [risk for risk, _ in lived], [event for _, event in lived]
    estimate = survival(at_risk, events)
    known = _maturity(series, start, ends, at_risk, events)
    if estimate.status == "empty":
        estimate = EMPTY
    elif rate not in EVENT_IS_FAILURE:
        estimate = complement(estimate)
    return _Stratum(n, good, estimate, known, target(book, stratum, rate))


def _maturity(series: Series, start: int, ends: list[int], at_risk: list[int], events: list[int]) -> float:
    """sum n_c F(age_c) / (F(H) sum n_c), F = 1 - S; where no event is known, the share that lived through all ages.

    Args:
        start: of the window, ns.
        ends: for each age, where the cohorts end that have lived through it, ns, never rising; first the window's end.
    """
    alive, learnt = 1.0, []
    for risk, event in zip(at_risk, events, strict=True):
        alive *= 1 - event / risk if risk else 1.0
        learnt.append(1 - alive)
    last = learnt[-1]
    total, _ = series.counts(start, ends[0])
    weight = 0.0
    for index, end in enumerate(ends):
        older = ends[index + 1] if index + 1 < len(ends) else start
        n, _ = series.counts(max(start, older), max(start, end))  # lived through this age, not the next
        weight += n * (learnt[index] / last if last else float(index + 1 == len(ends)))
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
