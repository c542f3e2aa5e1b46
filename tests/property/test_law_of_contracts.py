"""When a contract was loaded makes no difference to what it judges, while that has not settled (RULES.md 31).

Nor does it to what has settled: that stays as it is, and only what has not takes its time by a longer horizon (48).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given

from pipeline.core.contracts.parse import load, read
from pipeline.core.timeline import HOUR
from pipeline.runners.local_runner import CrashPoint
from pipeline.topology import contracts_changed
from schemas.topics import Stage
from tests.builders import span
from tests.oracle.model import OSession, OSpan, OTrace
from tests.oracle.spans import end_of_trace, work_spans
from tests.property.compare import asked_oracle
from tests.property.contracts import ASK, BOOK, ORDER, ORDER_LATER, SEARCH
from tests.property.delivery import SETTLES, Batch, delivery
from tests.property.driver import KEYED, Pipeline
from tests.property.statistics import STATISTICS
from tests.property.test_laws import check, law, seeds
from tests.property.worlds import RULES, World, worlds

LATER = read("later", ORDER_LATER, RULES).contract
SOON = LATER.effective_from + 60 * HOUR
"""Nothing that began since it takes effect has settled by then."""
LONGER = read(
    "longer", 'family: nobody\nversion: 1\nreopen_window: 480h\ncriteria: [{id: a, check: "state.told"}]', RULES
).contract
"""It judges nothing, and nothing settles for long."""


@given(worlds(), seeds)
@law
def test_rule_31_it_makes_no_difference_when_a_contract_was_loaded(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    STATISTICS.note("contracts", world, answer, batches)
    book = load([("order", ORDER), ("search", SEARCH), ("ask", ASK)], RULES)
    crashes = random.choice((0.0, 0.3))
    pipeline = Pipeline(random.choice((1, 2, 3)), random, crashes, random.choice((0, 2)), book)
    moment = random.randint(0, sum(batch.watermark <= SOON for batch in batches))
    for index, batch in enumerate(batches):
        if index == moment:
            book.add(LATER)
            if random.random() < 0.8:  # else nobody is told before it is back from a crash
                told(pipeline)
            else:
                for stage in KEYED:
                    for partition in range(pipeline.partitions):
                        pipeline.runner.crash(stage, partition)
        pipeline.feed(batch.records, batch.watermark)
    if moment >= len(batches):
        book.add(LATER)
        told(pipeline)
    pipeline.finish()
    assert len(book) == len(BOOK)
    check(pipeline, world, answer)


def told(pipeline: Pipeline) -> None:
    """As a worker tells its steps, between two messages; it cuts whether or not another one comes."""
    for stage in KEYED:
        for number, step in pipeline.runner.steps(stage).items():
            contracts_changed(pipeline.setup, step)
            pipeline.runner.turn(stage, number, cut=True)


@given(worlds(ids_known=True), seeds)
@law
def test_rule_48_what_has_settled_stays_so_whatever_is_loaded_later(world: World, seed: int) -> None:
    """At any moment; then each session hears of one more span, which counts where the session had not settled."""
    random = Random(seed)
    far = max(world.watermark, max(one.end for one in world.spans) + SETTLES + RULES.bucket + 1)
    world = replace(world, watermark=far)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    STATISTICS.note("longer horizons", world, answer, batches)
    pipeline = Pipeline(random.choice((1, 2, 3)), random, 0.0, 0, load([("o", ORDER), ("l", ORDER_LATER), ("s", SEARCH),
                                                                           ("a", ASK)], RULES))  # fmt: skip
    loaded = random.randint(max(0, *(one.watermark for one in batches[:-1])), far)
    if random.random() < 0.7:  # about when they settle
        limits = [_settles(one.end) + random.choice((0, 1)) for one in answer.sessions] or [far]
        loaded = min(far, max(loaded, random.choice(limits)))
    for batch in [*batches[:-1], Batch((), loaded)]:
        pipeline.feed(batch.records, batch.watermark)
    pipeline.finish()
    pipeline.setup.book.add(LONGER)
    if random.random() < 0.7:
        told(pipeline)
    else:
        for stage in KEYED:
            for partition in range(pipeline.partitions):
                pipeline.runner.turn(stage, partition, cut=True)
                pipeline.runner.crash(stage, partition, CrashPoint.MARKER_SENT)
    pipeline.feed((), far)
    pipeline.finish()
    check(pipeline, world, answer)

    late = _one_more_each(world, answer.sessions, random)
    refused = [one for one, end in late if _settles(end) < loaded]
    pipeline.feed([one for one, _ in late], far)
    pipeline.finish()
    assert pipeline.count(Stage.JUDGE, "dead_lettered", "settled") == len(refused)
    after = replace(world, spans=(*world.spans, *(one for one, _ in late if one not in refused)))
    check(pipeline, after, asked_oracle(after))


def _settles(end: int) -> int:
    """The last moment at which what ended then is open, by the contracts without `LONGER`."""
    return end // RULES.bucket * RULES.bucket + RULES.bucket + SETTLES


def _one_more_each(world: World, sessions: Sequence[OSession], random: Random) -> list[tuple[OSpan, int]]:
    """Of each session one more span, which ends with its trace, and what would open a session in the same bucket.

    With when the session ends, or would.
    """
    late = []
    for number, one in enumerate(sessions):
        trace_id = random.choice([name for name in one.trace_ids if work_spans(world.traces[name])])
        end = end_of_trace(OTrace("default", trace_id, tuple(world.traces[trace_id])))
        more = span(1, 10**6 + number, end, end, "embedding", tenant=one.tenant, input_tokens=7)
        late.append((replace(more, trace_id=trace_id), one.end))
        if random.random() < 0.3:
            late.append((span(10**7 + number, 2 * 10**6 + number, one.end, one.end, id=f"late {number}"), one.end))
    return late
