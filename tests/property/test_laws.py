"""The laws of the pipeline, held against the definitions (RULES.md 49 says where they hold)."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.topics import Stage
from tests.oracle.model import World as Answer
from tests.property.compare import (
    asked_oracle,
    differences,
    document,
    expected,
    expected_rates,
    of_verdict,
    without_sending,
)
from tests.property.delivery import delivery, in_order
from tests.property.driver import Pipeline
from tests.property.statistics import STATISTICS
from tests.property.worlds import World, worlds

EXAMPLES = 300
law = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32 - 1)


def check(pipeline: Pipeline, world: World, answer: Answer) -> None:
    """What the pipeline holds, has told and counts is what the definitions say."""
    assert pipeline.watermark() == world.reached
    verdicts = pipeline.verdicts()
    assert not differences({key: of_verdict(one) for key, one in verdicts.items()}, expected(answer))
    assert {key: without_sending(one) for key, one in pipeline.told().items()} == {
        key: document(one) for key, one in verdicts.items()
    }
    assert pipeline.rates() == expected_rates(answer)
    assert pipeline.waiting() == len(answer.waiting)


@given(worlds(), seeds)
@law
def test_the_pipeline_comes_to_what_the_definitions_say(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    STATISTICS.note("definitions", world, answer, batches)
    check(Pipeline(random.choice((1, 2, 3)), random).run(batches), world, answer)


@given(worlds(), seeds)
@law
def test_rule_49_neither_the_order_of_arrival_nor_the_number_of_partitions_matters(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    STATISTICS.note("order", world, asked_oracle(world), batches)
    straight = Pipeline(1).run(in_order(world))
    other = Pipeline(random.choice((2, 8)), random).run(batches)
    assert other.verdicts() == straight.verdicts()
    assert other.rates() == straight.rates()
    assert other.states() == straight.states()


@given(worlds(), seeds)
@law
def test_a_crash_anywhere_ends_in_the_same_numbers(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    STATISTICS.note("crash", world, answer, batches)
    pipeline = Pipeline(random.choice((1, 2, 3)), random, crashes=0.5, patience=random.choice((0, 1, 3)))
    pipeline.run(batches)
    pipeline.crash()
    pipeline.finish()
    check(pipeline, world, answer)


@given(worlds(), seeds)
@law
def test_rule_49_a_replay_changes_nothing_and_is_counted(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    STATISTICS.note("replay", world, asked_oracle(world), batches)
    pipeline = Pipeline(2, random).run(batches)
    versions, rates, dropped = pipeline.versions(), pipeline.rates(), pipeline.dropped()
    again = [record for batch in batches for record in batch.records]
    again = again[random.randrange(len(again)) :]
    random.shuffle(again)
    pipeline.feed(again, 0)
    pipeline.finish()
    assert pipeline.versions() == versions
    assert pipeline.rates() == rates
    assert pipeline.dropped() == dropped + len(again)


@given(worlds(), seeds)
@law
def test_everything_received_is_used_dropped_dead_lettered_or_held(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    STATISTICS.note("balance", world, asked_oracle(world), batches)
    pipeline = Pipeline(2, random).run(batches)
    received = pipeline.count(Stage.RESOLVE, "used") + pipeline.count(Stage.RESOLVE, "dropped")
    received += pipeline.count(Stage.RESOLVE, "dead_lettered") + pipeline.held_spans()
    assert received == len(world.spans)
    outcomes = sum(pipeline.count(Stage.CORRELATE, fate) for fate in ("used", "dropped", "dead_lettered"))
    assert outcomes == len(world.outcomes)
    judged = sum(pipeline.count(Stage.JUDGE, fate) for fate in ("used", "dropped", "dead_lettered"))
    assert judged == pipeline.received[Stage.JUDGE]
    partials = pipeline.count(Stage.MEASURE, "used") + pipeline.count(Stage.MEASURE, "dropped")
    assert partials == pipeline.received[Stage.MEASURE]


@given(worlds(), seeds)
@law
def test_versions_revisions_and_watermarks_only_grow(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    STATISTICS.note("growth", world, asked_oracle(world), batches)
    pipeline = Pipeline(2, random, crashes=random.choice((0.0, 0.3)))
    heard: dict[tuple[Stage, int], int] = {}
    for batch in batches:
        pipeline.feed(batch.records, batch.watermark)
        for stage, watermark in pipeline.watermarks().items():
            assert watermark >= heard.get(stage, 0)
            heard[stage] = watermark
    pipeline.finish()
    for documents in pipeline.documents().values():
        versions = [one["version"] for one in documents]
        assert versions == sorted(set(versions))
        if not pipeline.crashes:
            revisions = [one["revision"] for one in documents]
            assert revisions == sorted(revisions)
            assert all(later - earlier <= 1 for earlier, later in pairwise(revisions))
