"""Law: traces without an id end where the definitions say (rule 5), whatever order spans and answers came in."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from pipeline.core.resolving.step import ResolveStep
from pipeline.core.timeline import DAY, MINUTE, SECOND, TimeRules
from schemas.span import Kind, Span, SpanArrival, TraceGone, TraceSpans
from schemas.topics import Topic, partition_of
from tests.oracle.chains import conversations_of
from tests.oracle.model import OSettings, OSpan
from tests.oracle.spans import traces_of
from tests.thorough import EXAMPLES

PARTITIONS = 3
T0 = 20_000 * DAY
RULES = TimeRules()
TRACES = 7

_one = st.fixed_dictionaries(
    {
        "start": st.integers(0, 6),
        "work": st.booleans() | st.just(True),
        "id": st.sampled_from(["", "", "", "a", "b"]),
        "links": st.lists(st.integers(0, TRACES), max_size=3),
        "response": st.sampled_from(["", "", "", "r1", "r2"]),
        "second": st.booleans(),
    }
)
worlds = st.lists(_one, min_size=1, max_size=TRACES)


def arrivals(world):
    for number, one in enumerate(world, 1):
        for part in range(1 + one["second"]):
            last = part == one["second"]
            trace_id, span_id = number.to_bytes(16, "big"), (number * 10 + part).to_bytes(8, "big")
            start = T0 + one["start"] * SECOND
            kind = (Kind.INFERENCE if one["response"] else Kind.AGENT) if one["work"] else Kind.STEP
            ids = (one["id"],) if one["id"] and last else ()
            links = tuple(link.to_bytes(16, "big") for link in one["links"]) if last else ()
            response = one["response"] if last else ""
            span = Span("default", trace_id, span_id, b"", start, start + SECOND, kind, "x", ids=ids, links=links)
            yield SpanArrival(
                "default", trace_id, span_id, b"", start, start + SECOND, start + SECOND, ids, one["work"], (),
                msgspec.msgpack.encode(span), links, response,
            )  # fmt: skip


def oracle(world):
    spans = []
    for one in arrivals(world):
        kind = "agent" if one.work else "step"
        spans.append(
            OSpan(
                trace_id=one.trace_id.hex(),
                span_id=one.span_id.hex(),
                start=one.start,
                end=one.end,
                kind=kind,
                conversation_ids=tuple((0, name) for name in one.ids),
                links=tuple(link.hex() for link in one.links),
                response_id=one.response_id or None,
            )
        )
    limits = OSettings()
    found = {}
    for conversation in conversations_of(traces_of(spans, limits, Counter()), limits, Counter()):
        for run in conversation.runs:
            for trace in run.traces:
                found[trace.trace_id] = conversation.name
    return found


class Machine:
    """All partitions of stage 2, their queues, and what stage 4 would hold."""

    def __init__(self, chance):
        self.chance = chance
        self.steps = [ResolveStep(p, PARTITIONS, RULES, 3 * DAY) for p in range(PARTITIONS)]
        self.queues: list[list[Any]] = [[] for _ in range(PARTITIONS)]
        self.held: dict[tuple[str, str], tuple[int, bytes | None]] = {}
        for step in self.steps:
            step.opened(0)
            step.caught_up()

    def collect(self, step):
        records, _ = step.outbox.take()
        for (topic, partition), batch in records.items():
            if topic is Topic.SPANS:
                self.queues[partition].extend(batch)
            elif topic is Topic.SESSION_EVENTS:
                for record in batch:
                    self.take(record)

    def take(self, record):
        key = (record.trace_id.hex(), record.conversation)
        stamp, _ = self.held.get(key, (0, None))
        if isinstance(record, TraceSpans) and record.stamp >= stamp:
            self.held[key] = (record.stamp, record.lead or record.trace_id)
        elif isinstance(record, TraceGone) and record.stamp >= stamp:
            self.held[key] = (record.stamp, None)

    def run(self, watermark):
        while any(self.queues):
            index = self.chance.choice([i for i, queue in enumerate(self.queues) if queue])
            queue = self.queues[index]
            n = self.chance.randint(1, len(queue))
            batch, self.queues[index] = queue[:n], queue[n:]
            self.steps[index].apply(batch)
            self.steps[index].advance(watermark)
            self.collect(self.steps[index])

    def advance(self, watermark):
        for step in self.steps:
            step.advance(watermark)
            self.collect(step)
        self.run(watermark)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(worlds, st.randoms(use_true_random=False))
def test_a_trace_without_an_id_goes_where_its_links_and_shared_responses_end(world, chance):
    machine = Machine(chance)
    spans = list(arrivals(world))
    chance.shuffle(spans)
    late = spans[len(spans) // 2 :] if chance.random() < 0.5 else []
    for one in spans[: len(spans) - len(late)]:
        machine.queues[partition_of(PARTITIONS, "default", one.trace_id)].append(one)
    machine.run(T0)
    machine.advance(T0 + 20 * MINUTE)
    for one in late:
        machine.queues[partition_of(PARTITIONS, "default", one.trace_id)].append(one)
    machine.run(T0 + 20 * MINUTE)
    machine.advance(T0 + 60 * MINUTE)

    expected = oracle(world)
    found = {trace: name for (trace, name), (_, lead) in machine.held.items() if lead is not None}
    event(f"chained {sum(name.startswith('trace:') and name[6:] != trace for trace, name in expected.items()) > 0}")
    work = {one.trace_id.hex() for one in spans if one.work}
    assert {t: n for t, n in found.items() if t in expected or t in work} == expected
    leads = {trace: lead.hex() for (trace, _), (_, lead) in machine.held.items() if lead is not None}
    for trace, name in expected.items():
        if name.startswith("trace:"):
            assert leads[trace] == name[6:]


def test_a_long_chain_leads_to_its_far_end():
    world = [{"start": 0, "work": True, "id": "a", "links": [], "response": "", "second": False}]
    world += [
        {"start": n, "work": True, "id": "", "links": [n], "response": "", "second": False} for n in range(1, TRACES)
    ]
    machine = Machine(random.Random(1))
    for one in arrivals(world):
        machine.queues[partition_of(PARTITIONS, "default", one.trace_id)].append(one)
    machine.run(T0)

    assert {name for (_, name), (_, lead) in machine.held.items() if lead is not None} == {"a"}
    assert machine.steps[0].passes_on(T0 + DAY) == T0 + DAY
