"""How the world's spans and outcome reports reach the gateway: in batches, late, twice and out of order.

Only the way there is disturbed, never what is true. No span is more than a few hours late, so that each arrives
long before its session settles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from opentelemetry.sdk.trace import ReadableSpan

from pipeline.simulation.plan import HOUR_NS, LATENESS_NS, MINUTE_NS, SECOND_NS, Report

SMALLEST_BATCH, LARGEST_BATCH = 20, 200
LARGEST_OUTCOME_BATCH = 20
LATEST_NS = 3 * HOUR_NS
LATE_TRACES = 0.05
DUPLICATED_SPANS = 0.015
DUPLICATED_BATCHES = 0.02
SHUFFLED_BATCHES = 0.1
SWAPPED_BATCHES = 0.04


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """What an exporter sends at once: spans of several traces."""

    spans: list[ReadableSpan]


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """What a system of record posts at once: JSON-ready outcome events."""

    events: list[dict[str, object]]


Arrival = SpanBatch | OutcomeBatch


@dataclass(frozen=True, slots=True)
class Faults:
    """How many spans and outcome events came late, again, or after something that happened later.

    Late: more than five minutes behind the traffic (an outcome: behind its own event time). One that is late is not
    also counted as reordered, a copy of one that was there already only as a duplicate.
    """

    late: int
    duplicates: int
    reordered: int


@dataclass(frozen=True, slots=True)
class Timed:
    """A span or a report, and when it reaches the gateway."""

    arrival_ns: int
    item: ReadableSpan | Report


def end_ns(span: ReadableSpan) -> int:
    """The end of an ended span."""
    if span.end_time is None:
        raise ValueError(f"span {span.name} has not ended")
    return span.end_time


def trace_and_span(span: ReadableSpan) -> tuple[int, int]:
    """What identifies a span."""
    if span.context is None:
        raise ValueError(f"span {span.name} has no context")
    return span.context.trace_id, span.context.span_id


def arrivals(
    rng: Random, traces: Iterable[list[ReadableSpan]], reports: Sequence[Report]
) -> tuple[list[Arrival], Faults]:
    """Everything in the order in which it is to be sent, and what is wrong with that order."""
    return sent(rng, on_their_way(rng, traces, reports))


def on_their_way(rng: Random, traces: Iterable[list[ReadableSpan]], reports: Sequence[Report]) -> list[Timed]:
    """Everything with its arrival: late, twice, or as it should be."""
    timed = [timed for trace in traces for timed in _delayed(rng, trace)]
    return timed + [Timed(report.arrival_ns, report) for report in reports]


def sent(rng: Random, timed: Iterable[Timed]) -> tuple[list[Arrival], Faults]:
    """In batches, in order of arrival but for what disturbs it on the way, and what is wrong with that order."""
    batches = _batched(rng, sorted(timed, key=lambda each: each.arrival_ns))
    _disturb(rng, batches)
    return [_arrival(batch) for batch in batches], _faults(batches)


def _delayed(rng: Random, trace: list[ReadableSpan]) -> list[Timed]:
    """The spans of a trace with their arrivals: all late, the root alone late, some of them late, or none."""
    late: set[int] = set()
    delay_ns = 0
    if rng.random() < LATE_TRACES:
        everyone = range(len(trace))
        late = set(rng.choice((everyone, everyone[-1:], rng.sample(everyone, max(1, len(trace) // 3)))))
        # Half of them beyond the ten minutes for which a trace without an id is held, hours at most.
        longest_ns = LATEST_NS if rng.random() < 0.5 else 9 * MINUTE_NS
        delay_ns = round(rng.uniform(6 * MINUTE_NS, longest_ns))
    flush_ns = round(rng.uniform(1, 6) * SECOND_NS)
    timed = []
    for index, span in enumerate(trace):
        arrival_ns = end_ns(span) + flush_ns + (delay_ns if index in late else 0)
        timed.append(Timed(arrival_ns, span))
        if rng.random() < DUPLICATED_SPANS:
            timed.append(Timed(arrival_ns + round(rng.uniform(0, HOUR_NS)), span))
    return timed


def _batched(rng: Random, timed: Sequence[Timed]) -> list[list[Timed]]:
    """Cut into batches of one sort each, in order of arrival; outcomes wait for each other ten minutes at most."""
    batches: list[list[Timed]] = []
    spans: list[Timed] = []
    outcomes: list[Timed] = []
    span_size, outcome_size = rng.randint(SMALLEST_BATCH, LARGEST_BATCH), rng.randint(1, LARGEST_OUTCOME_BATCH)
    for each in timed:
        if outcomes and each.arrival_ns - outcomes[0].arrival_ns > 10 * MINUTE_NS:
            batches.append(outcomes)
            outcomes, outcome_size = [], rng.randint(1, LARGEST_OUTCOME_BATCH)
        if isinstance(each.item, Report):
            outcomes.append(each)
            if len(outcomes) >= outcome_size:
                batches.append(outcomes)
                outcomes, outcome_size = [], rng.randint(1, LARGEST_OUTCOME_BATCH)
        else:
            spans.append(each)
            if len(spans) >= span_size:
                batches.append(spans)
                spans, span_size = [], rng.randint(SMALLEST_BATCH, LARGEST_BATCH)
    return [*batches, *(rest for rest in (spans, outcomes) if rest)]


def _disturb(rng: Random, batches: list[list[Timed]]) -> None:
    """Some batches are shuffled inside, some change places with the next, some are sent twice."""
    for batch in batches:
        if rng.random() < SHUFFLED_BATCHES:
            rng.shuffle(batch)
    for index in range(len(batches) - 1):
        if rng.random() < SWAPPED_BATCHES:
            batches[index], batches[index + 1] = batches[index + 1], batches[index]
    for index in reversed(range(len(batches))):
        if rng.random() < DUPLICATED_BATCHES:
            batches.insert(min(len(batches), index + rng.randint(1, 4)), list(batches[index]))


def _arrival(batch: list[Timed]) -> Arrival:
    spans = [each.item for each in batch if not isinstance(each.item, Report)]
    return (
        SpanBatch(spans) if spans else OutcomeBatch([dict(r.item.event) for r in batch if isinstance(r.item, Report)])
    )


def _faults(batches: Sequence[list[Timed]]) -> Faults:
    late = duplicates = reordered = 0
    seen: set[object] = set()
    newest = {"span": 0, "outcome": 0}
    for each in (each for batch in batches for each in batch):
        if isinstance(each.item, Report):
            sort, at_ns = "outcome", each.item.at_ns
            identity: object = (each.item.event["event_id"], each.item.event["event_version"])
            is_late = each.arrival_ns - at_ns > LATENESS_NS
        else:
            sort, at_ns, identity = "span", end_ns(each.item), trace_and_span(each.item)
            is_late = newest[sort] - at_ns > LATENESS_NS
        if identity in seen:
            duplicates += 1
        elif is_late:
            late += 1
        elif at_ns < newest[sort]:
            reordered += 1
        seen.add(identity)
        newest[sort] = max(newest[sort], at_ns)
    return Faults(late, duplicates, reordered)
