"""The laws of what is over: settled sessions stay as they are, and past retention no state is left."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.core.timeline import DAY, MINUTE, SECOND
from schemas.topics import Stage
from tests.builders import T0, span
from tests.oracle.model import OSpan
from tests.oracle.world import settles_at
from tests.property.compare import SETTINGS, asked_oracle, differences, expected, of_verdict
from tests.property.contracts import ORACLE_CONTRACTS
from tests.property.delivery import SETTLES, Batch, delivery
from tests.property.driver import KEYED, Pipeline
from tests.property.statistics import STATISTICS
from tests.property.worlds import RULES, World, worlds
from tests.thorough import EXAMPLES

law = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32 - 1)


def end_of(world: World) -> int:
    return max([one.end for one in world.spans] + [one.event_time for one in world.outcomes])


def test_rule_48_a_bucket_settles_when_the_definitions_say() -> None:
    assert settles_at(T0, ORACLE_CONTRACTS, SETTINGS) == T0 + SETTLES


@given(worlds(), seeds)
@law
def test_rule_48_past_retention_no_state_is_left_and_the_counts_stay(world: World, seed: int) -> None:
    random = Random(seed)
    batches = delivery(world, random)
    STATISTICS.note("end of time", world, asked_oracle(world), batches)
    pipeline = Pipeline(2, random).run(batches)
    settled = max(one.end for one in world.spans) + SETTLES + RULES.bucket + MINUTE
    pipeline.run([Batch((), settled)])
    rates = pipeline.rates()
    end = end_of(world) + RULES.retention + SETTLES + DAY
    pipeline.run([Batch((), end), Batch((), end + RULES.retention), Batch((), end + 2 * RULES.retention)])
    assert pipeline.rates() == rates
    assert pipeline.keys_left() == 0
    for stage in KEYED:
        for number in range(2):
            pipeline.runner.crash(stage, number)
    pipeline.finish()
    assert pipeline.keys_left() == 0
    assert pipeline.rates() == rates


@given(worlds(), seeds)
@law
def test_rule_48_a_settled_session_takes_no_span_and_still_hears_outcomes(world: World, seed: int) -> None:
    random = Random(seed)
    settled = max(one.end for one in world.spans) + SETTLES + RULES.bucket + 1
    far = replace(world, watermark=max(settled, world.watermark))
    held_back = [one for one in world.outcomes if random.random() < 0.8]
    early = replace(far, outcomes=tuple(one for one in world.outcomes if one not in held_back))
    pipeline = Pipeline(2, random).run(delivery(early, random))
    answer = asked_oracle(far)
    STATISTICS.note("settled", far, answer, [Batch((), far.watermark), Batch(tuple(held_back), far.watermark)])
    before = expected(asked_oracle(early))
    assert not differences({key: of_verdict(one) for key, one in pipeline.verdicts().items()}, before)

    versions = pipeline.versions()
    late = [late_span(one, index) for index, one in enumerate(random.sample(world.spans, min(3, len(world.spans))))]
    late.append(span(8888, 888_800, late[0].start, late[0].end, id="c0"))
    pipeline.feed(late, far.watermark)
    pipeline.finish()
    assert pipeline.versions() == versions
    refused = pipeline.count(Stage.RESOLVE, "dead_lettered", "settled")
    refused += pipeline.count(Stage.JUDGE, "dead_lettered", "settled")
    assert refused == len(late)

    pipeline.feed(held_back, far.watermark)
    pipeline.finish()
    assert not differences({key: of_verdict(one) for key, one in pipeline.verdicts().items()}, expected(answer))


def late_span(beside: OSpan, index: int) -> OSpan:
    """A span that nobody knew, of a trace that has settled."""
    number = 900_000 + index
    return span(int(beside.trace_id, 16), number, beside.start, beside.end + SECOND, "tool", tool="late")
