"""The laws of the pipeline, held against the definitions."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.compare import (
    asked_oracle,
    differences,
    document,
    expected,
    expected_rates,
    of_verdict,
    without_sending,
)
from tests.property.delivery import delivery
from tests.property.driver import Pipeline
from tests.property.worlds import World, worlds

seeds = st.integers(0, 2**32 - 1)


@given(worlds(), seeds)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_pipeline_comes_to_what_the_definitions_say(world: World, seed: int) -> None:
    random = Random(seed)
    answer = asked_oracle(world)
    pipeline = Pipeline(random.choice((1, 2, 3)), random).run(delivery(world, random))
    assert pipeline.watermark() == world.reached
    verdicts = pipeline.verdicts()
    assert not differences({key: of_verdict(one) for key, one in verdicts.items()}, expected(answer))
    assert {key: without_sending(one) for key, one in pipeline.told().items()} == {
        key: document(one) for key, one in verdicts.items()
    }
    assert pipeline.rates() == expected_rates(answer)
