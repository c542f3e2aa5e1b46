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
    expected_sums,
    of_verdict,
    without_sending,
)
from tests.property.delivery import Batch, delivery, in_order
from tests.property.driver import Pipeline
from tests.property.statistics import STATISTICS
from tests.property.worlds import World, worlds
from tests.thorough import EXAMPLES

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
    assert pipeline.sums() == expected_sums(answer)
    assert pipeline.waiting() == len(answer.waiting)


@given(worlds(), seeds)
@law
def test_rule_49_one_life_of_a_world_keeps_every_law_that_needs_no_crash(world: World, seed: int) -> None:
    """Definitions, growth, balance, order and replay, of one and the same delivery."""
    random = Random(seed)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    pipeline = Pipeline(random.choice((1, 2, 3, 8)), random)
    watermarks_grow(pipeline, batches)
    STATISTICS.note("one life", world, answer, batches, pipeline)

    check(pipeline, world, answer)
    versions_and_revisions_grow(pipeline)
    everything_received_is_accounted_for(pipeline, world)

    straight = Pipeline(1).run(in_order(world))
    assert pipeline.verdicts() == straight.verdicts()
    assert pipeline.rates() == straight.rates()
    assert pipeline.states() == straight.states()

    a_replay_changes_nothing_and_is_counted(pipeline, batches, random)


@given(worlds(), seeds)
@law
def test_rule_49_a_crash_anywhere_ends_in_the_same_numbers(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    answer = asked_oracle(world)
    pipeline = Pipeline(random.choice((1, 2, 3)), random, crashes=0.5, patience=random.choice((0, 1, 3)))
    pipeline.run(batches)
    pipeline.crash()
    pipeline.finish()
    STATISTICS.note("crash", world, answer, batches, pipeline)
    check(pipeline, world, answer)
    for documents in pipeline.documents().values():
        versions = [one["version"] for one in documents]
        assert versions == sorted(set(versions))


def watermarks_grow(pipeline: Pipeline, batches: list[Batch]) -> None:
    """Deliver; no stage's event time ever goes back, where nobody dies: a crash loses what no marker says."""
    heard: dict[tuple[Stage, int], int] = {}
    for batch in batches:
        pipeline.feed(batch.records, batch.watermark)
        for stage, watermark in pipeline.watermarks().items():
            assert watermark >= heard.get(stage, 0)
            heard[stage] = watermark
    pipeline.finish()


def versions_and_revisions_grow(pipeline: Pipeline) -> None:
    """Of each session every version is new and the greatest so far; revisions are dense."""
    for documents in pipeline.documents().values():
        versions = [one["version"] for one in documents]
        assert versions == sorted(set(versions))
        revisions = [one["revision"] for one in documents]
        assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(revisions))


def everything_received_is_accounted_for(pipeline: Pipeline, world: World) -> None:
    """Used, dropped, dead-lettered or held; every stage's counts balance."""
    received = pipeline.count(Stage.RESOLVE, "used") + pipeline.count(Stage.RESOLVE, "dropped")
    received += pipeline.count(Stage.RESOLVE, "dead_lettered") + pipeline.held_spans()
    assert received == len(world.spans)
    outcomes = sum(pipeline.count(Stage.CORRELATE, fate) for fate in ("used", "dropped", "dead_lettered"))
    assert outcomes == len(world.outcomes)
    judged = sum(pipeline.count(Stage.JUDGE, fate) for fate in ("used", "dropped", "dead_lettered"))
    assert judged == pipeline.received[Stage.JUDGE]
    partials = pipeline.count(Stage.MEASURE, "used") + pipeline.count(Stage.MEASURE, "dropped")
    assert partials == pipeline.received[Stage.MEASURE]


def a_replay_changes_nothing_and_is_counted(pipeline: Pipeline, batches: list[Batch], random: Random) -> None:
    """Some of what was sent, sent once more in any order: dropped, each one."""
    versions, rates, dropped = pipeline.versions(), pipeline.rates(), pipeline.dropped()
    again = [record for batch in batches for record in batch.records]
    again = again[random.randrange(len(again)) :]
    random.shuffle(again)
    pipeline.feed(again, 0)
    pipeline.finish()
    assert pipeline.versions() == versions
    assert pipeline.rates() == rates
    assert pipeline.dropped() == dropped + len(again)
