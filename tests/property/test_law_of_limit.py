"""The law of the limit: of a trace with too many spans some count for everything, whatever came when (RULES.md 8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.core.timeline import SECOND
from schemas.rows import TABLES
from tests.property.compare import asked_oracle
from tests.property.delivery import delivery, in_order
from tests.property.driver import Pipeline
from tests.property.test_laws import (
    a_replay_changes_nothing_and_is_counted,
    check,
    everything_received_is_accounted_for,
)
from tests.property.worlds import RULES, World, worlds
from tests.thorough import EXAMPLES

law = settings(max_examples=EXAMPLES // 8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
limits = st.sampled_from((1, 2, 2, 3))


def other_start(world: World, random: Random) -> World:
    """With a better copy of a span that says that it started earlier or later; times needed no record time.

    Of a trace of more than twice the limit what is forgotten is not known again, so that copies may not disagree there.
    """
    one = random.choice(world.spans)
    known = {span.span_id for span in world.spans if span.trace_id == one.trace_id}
    if one.start == 0 or one.end < one.start or len(known) > 2 * world.most:
        return world
    start = max(one.start + random.choice((-2, 2, 5)) * SECOND, 1)
    copy = replace(one, start=start, end=max(one.end, start) + SECOND, attribute_count=9)
    if (one.record_time or 0) + RULES.max_clock_skew < copy.end:
        return world
    changed = replace(world, spans=(*world.spans, copy))
    return world if changed.held and any(span.links or span.response_id for span in world.spans) else changed


def test_rule_08_what_is_above_the_limit_counts_for_nothing_in_any_order_of_arrival() -> None:
    held: Counter[str] = Counter()

    @given(limits.flatmap(lambda most: worlds(most=most)), st.integers(0, 2**32 - 1))
    @law
    def one_life(world: World, seed: int) -> None:
        random = Random(seed)
        if random.random() < 0.3:
            world = other_start(world, random)
        answer = asked_oracle(world)
        held["worlds"] += 1
        held["truncated"] += any("truncated" in one.flags for one in answer.sessions)
        batches = delivery(world, random)
        pipeline = Pipeline(random.choice((1, 2, 3)), random, most=world.most).run(batches)
        check(pipeline, world, answer)
        everything_received_is_accounted_for(pipeline, world)
        straight = Pipeline(1, most=world.most).run(in_order(world))
        assert pipeline.verdicts() == straight.verdicts()
        assert pipeline.rates() == straight.rates()
        a_replay_changes_nothing_and_is_counted(pipeline, batches, random)

    one_life()
    assert held["truncated"] > held["worlds"] / 2


def test_rule_08_a_crash_anywhere_changes_nothing_of_that() -> None:
    @given(limits.flatmap(lambda most: worlds(most=most)), st.integers(0, 2**32 - 1))
    @law
    def one_life(world: World, seed: int) -> None:
        random = Random(seed)
        pipeline = Pipeline(random.choice((1, 2)), random, crashes=0.5, patience=random.choice((0, 3)), most=world.most)
        pipeline.run(delivery(world, random))
        pipeline.crash()
        pipeline.finish()
        check(pipeline, world, asked_oracle(world))
        rows = [dict(zip(TABLES["revisions"], row, strict=True)) for row in pipeline.runner.rows("revisions")]
        assert len({(row["conversation"], row["began"]) for row in rows}) == len({row["conversation"] for row in rows})

    one_life()
