"""The law of packing: to whoever hears of a session it is the same whether it was packed or not (RULES.md 48)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.core.correlating.packed import KeyStates
from pipeline.core.judging.settled import Settled
from pipeline.core.resolving.traces import Traces
from schemas.topics import Stage
from tests.property.compare import asked_oracle, differences, expected, expected_rates, of_verdict, without_sending
from tests.property.delivery import SETTLES, Batch, delivery
from tests.property.driver import Pipeline
from tests.property.statistics import STATISTICS
from tests.property.worlds import RULES, World, worlds
from tests.thorough import EXAMPLES

law = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32 - 1)


@contextmanager
def nothing_is_packed() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(Settled, "settle", lambda *_: 0))
        stack.enter_context(patch.object(Settled, "settles_next", lambda *_: 0))
        stack.enter_context(patch.object(Traces, "settle", lambda *_: None))
        stack.enter_context(patch.object(KeyStates, "_pack", lambda *_: None))
        yield


class Life:
    """All spans, then everything settles, then the outcomes that were held back, one by one."""

    def __init__(self, world: World, seed: int, name: str) -> None:
        self.far = max(world.watermark, max(one.end for one in world.spans) + SETTLES + RULES.bucket + 1)
        self.world = replace(world, watermark=self.far)
        self.answer = asked_oracle(self.world)
        self._random = Random(seed)
        self.held_back = [one for one in world.outcomes if self._random.random() < 0.8]
        self.early = tuple(one for one in world.outcomes if one not in self.held_back)
        self.batches = delivery(replace(self.world, outcomes=self.early), self._random)
        self._random.shuffle(self.held_back)
        STATISTICS.note(name, self.world, self.answer, [*self.batches, Batch(tuple(self.held_back), self.far)])

    def lived(self, crashes: bool = False) -> Pipeline:
        pipeline = Pipeline(2).run([*self.batches, Batch((), self.far)])
        for one in self.held_back:
            pipeline.feed([one], self.far)
            if crashes and self._random.random() < 0.4:
                pipeline.random = self._random
                pipeline.crash()
                pipeline.random = None
            pipeline.finish()
        return pipeline


def told(pipeline: Pipeline) -> dict[bytes, list[dict[str, Any]]]:
    """What was sent about each session, without the numbers that order messages."""
    return {
        key: [{name: value for name, value in one.items() if name != "version"} for one in documents]
        for key, documents in pipeline.documents().items()
    }


@given(worlds(), seeds)
@law
def test_rule_48_a_packed_session_is_revised_as_if_it_had_never_been_packed(world: World, seed: int) -> None:
    life = Life(world, seed, "packing")
    packed = life.lived()
    with nothing_is_packed():
        plain = life.lived()
    assert told(packed) == told(plain)
    assert packed.rates() == plain.rates()
    assert packed.states() == plain.states()


@given(worlds(), seeds)
@law
def test_rule_48_a_packed_session_is_revised_as_the_definitions_say_over_crashes(world: World, seed: int) -> None:
    life = Life(world, seed, "packing over crashes")
    pipeline = life.lived(crashes=True)
    found = {key: of_verdict(one) for key, one in pipeline.verdicts().items()}
    assert not differences(found, expected(life.answer))


@given(worlds(), seeds)
@law
def test_rule_48_outcomes_for_sealed_sessions_change_nothing_and_the_others_are_judged(world: World, seed: int) -> None:
    """Some sessions have sealed, others have not yet; then new outcomes come, which happened within retention."""
    random = Random(seed)
    life = Life(world, seed, "sealing")
    pipeline = Pipeline(2).run([*life.batches, Batch((), life.far)])
    before = pipeline.told()
    sealing = sorted(_seals(one.end) for one in life.answer.sessions)
    now = max(life.far, random.choice(sealing) + 1) if sealing else life.far
    if random.random() < 0.5:
        pipeline.feed((), max(life.far, now - RULES.bucket * random.randint(0, 300)))
    pipeline.feed((), now)
    pipeline.finish()
    reread = random.random() < 0.3
    known = {one.event_id for one in life.early}
    held_back = {one.event_id: one for one in life.held_back if one.event_id not in known}.values()
    late = [
        replace(one, event_time=max(one.event_time, now - RULES.retention + number), record_time=None, came=now)
        for number, one in enumerate(held_back)
    ]
    for one in late:
        pipeline.feed([one], now)
        if reread:
            pipeline.random = random
            pipeline.crash()
            pipeline.random = None
    pipeline.finish()

    after = asked_oracle(replace(life.world, outcomes=(*life.early, *late), watermark=now))
    ours = {key: of_verdict(one) for key, one in pipeline.verdicts().items()}
    theirs = {key: one for key, one in expected(after).items() if key in ours}
    assert not differences(ours, theirs)
    left = {one.key for one in after.sessions if _seals(one.end) >= now}
    assert left <= ours.keys()
    assert pipeline.rates() == expected_rates(after)
    told = pipeline.told()
    for key in before.keys() - ours.keys():
        assert without_sending(told[key]) == without_sending(before[key])
    if not reread:  # stage 3 knows conversations for ever, keys and traces as long as they were stated within retention
        kept = {key[1] for key in ours}
        sure = [one for one in late if one.session_id in kept]
        fewest = asked_oracle(replace(life.world, outcomes=(*life.early, *sure), watermark=now)).counted["sealed"]
        assert fewest <= pipeline.count(Stage.JUDGE, "dead_lettered", "sealed") <= after.counted["sealed"]


def _seals(end: int) -> int:
    """The last moment at which the bucket of what ended then takes outcomes."""
    return end // RULES.bucket * RULES.bucket + RULES.bucket + RULES.retention
