"""What an erasure may do and may not, in any order of arrival, over crashes, and when all is sent again."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from pipeline.core.resolving.leads import pseudo
from schemas.erasing import ERASE_ROWS, Forget
from schemas.rows import ERASURES
from schemas.topics import Stage, Topic, partition_of
from tests.builders import T0, trace
from tests.property.delivery import Batch, delivery, in_order
from tests.property.driver import Pipeline
from tests.property.worlds import RULES, World, worlds
from tests.thorough import EXAMPLES

law = settings(max_examples=EXAMPLES // 5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32 - 1)
MARK = "-Qz7vX9kept"
"""Behind the name of every conversation: what is found by it is found for nothing else."""


def marked(world: World) -> World:
    """The world, with names that can be searched for."""

    def name(raw: object) -> str:
        return f"{raw}{MARK}"

    spans = tuple(
        replace(one, conversation_ids=tuple((place, name(raw)) for place, raw in one.conversation_ids))
        for one in world.spans
    )
    outcomes = tuple(
        replace(one, session_id=name(one.session_id)) if one.session_id is not None else one for one in world.outcomes
    )
    return World(spans, outcomes, world.watermark)


def names_of(world: World) -> list[str]:
    """The conversations that no trace names beside another one: such a trace is the other's, with all that it says."""
    said: dict[str, set[str]] = {}
    for one in world.spans:
        said.setdefault(one.trace_id, set()).update(str(raw) for _, raw in one.conversation_ids)
    found = {name for names in said.values() for name in names}
    return sorted(found - {name for names in said.values() if len(names) > 1 for name in names})


def order(pipeline: Pipeline, conversation: str, at: int, number: int = 1) -> None:
    """The order to erase a conversation, where its stage 4 reads it."""
    record = Forget("default", conversation, "", f"order-{number}", at, b"salt" * 4)
    where = partition_of(pipeline.partitions, "default", conversation)
    pipeline.runner.feed_records(Topic.SESSION_EVENTS, where, [record])


def holders(pipeline: Pipeline, text: str) -> list[str]:
    """The stages whose newest snapshot holds the text."""
    found = []
    for stage in (Stage.RESOLVE, Stage.CORRELATE, Stage.JUDGE, Stage.MEASURE):
        for states in pipeline.runner.snapshots(stage).values():
            if any(text.encode() in key + state for key, state in states.items()):
                found.append(stage.value)
    return found


def others(pipeline: Pipeline, erased: str) -> dict[object, object]:
    """What the stages hold of every other session; how the erased one is named to them does not count."""
    return {
        key: structs.replace(one, reopened_by="", reopens_elsewhere=())
        for key, one in pipeline.verdicts().items()
        if key[1] != erased
    }


def totals(pipeline: Pipeline) -> object:
    states = {
        segment: {name: n for name, n in counts.items() if name not in ("erased", "open") and n}
        for segment, counts in pipeline.states().items()
    }
    return pipeline.rates(), {segment: counts for segment, counts in states.items() if counts}


def told(pipeline: Pipeline) -> set[str]:
    """The conversations that the sink is told to erase."""
    return {row[1] for row in pipeline.runner.rows(ERASE_ROWS)}


def belongs(world: World, other: str) -> set[str]:
    """Where the trace that a conversation is named after ends up when nothing is erased; and if it said no id itself,
    as it did not while its spans with one were on their way."""
    said = [one.trace_id for one in world.spans if pseudo(bytes.fromhex(one.trace_id)) == other]
    unsaid = tuple(replace(one, conversation_ids=()) if one.trace_id in said else one for one in world.spans)
    found = set()
    for each in (world, World(unsaid, world.outcomes, world.watermark)):
        pipeline = Pipeline(1).run(in_order(each))
        traces = [one for step in pipeline.resolvers() for one in step.traces.values()]
        found |= {one.conversation for one in traces if pseudo(one.trace_id) == other}
    return found


def left_of(pipeline: Pipeline, withdrawn: str) -> list[object]:
    """Sessions, spans and outcomes that stage 4 still has, or shows, of a conversation."""
    shown = {key: value for key, value in pipeline.runner.verdicts() if f"\0{withdrawn}\0".encode() in key}
    left: list[object] = [key for key, value in shown.items() if value and not json.loads(value)["deleted"]]
    for step in pipeline.judges():
        for one in step.conversations.values():
            if one.name == withdrawn:
                left += [session.verdict for session in one.published if session.verdict]
                left += [held.spans for held in one.traces.values() if held.spans]
                left += [via for held in one.outcomes.values() for via, _, content in held.ways if content]
    return left


@given(worlds(), seeds)
@law
def test_totals_and_other_sessions_stay_and_nothing_comes_again(world: World, seed: int) -> None:
    random = Random(seed)
    world = marked(world)
    names = names_of(world)
    assume(names)
    erased = random.choice(names)
    batches = delivery(world, random)
    pipeline = Pipeline(random.choice((1, 2, 3)), random).run(batches)
    before, beside = totals(pipeline), others(pipeline, erased)

    order(pipeline, erased, world.watermark)
    pipeline.finish()
    assert holders(pipeline, erased) == []
    assert totals(pipeline) == before
    assert others(pipeline, erased) == beside

    again = [record for batch in batches for record in batch.records]
    random.shuffle(again)
    pipeline.feed(again, 0)
    order(pipeline, erased, world.watermark, 2)
    pipeline.finish()
    assert holders(pipeline, erased) == []
    assert totals(pipeline) == before
    assert others(pipeline, erased) == beside


@given(worlds(), seeds)
@law
def test_an_order_at_any_moment_and_over_crashes_leaves_nothing(world: World, seed: int) -> None:
    random = Random(seed)
    world = marked(world)
    names = names_of(world)
    assume(names)
    erased = random.choice(names)
    batches = delivery(world, random)
    pipeline = Pipeline(random.choice((1, 2)), random, crashes=0.5, patience=random.choice((0, 1)))
    moment = random.randrange(len(batches) + 1)
    for batch in batches[:moment]:
        pipeline.feed(batch.records, batch.watermark)
    order(pipeline, erased, world.watermark)
    for batch in batches[moment:]:
        pipeline.feed(batch.records, batch.watermark)
    pipeline.crash()
    pipeline.finish()

    assert holders(pipeline, erased) == []
    assert erased not in {conversation for _, conversation, _ in pipeline.verdicts()}
    last = {key: value for key, value in pipeline.runner.verdicts() if f"\0{erased}\0".encode() in key}
    assert not any(last.values())
    assert all(row[3].startswith("erased:") for row in pipeline.runner.rows(ERASURES))
    assert erased in told(pipeline)
    for other in told(pipeline) - {erased}:  # a trace that went there was withdrawn when it turned out to be the erased
        assert erased in belongs(world, other)
        assert not left_of(pipeline, other)


@given(worlds(), seeds)
@law
def test_what_is_remembered_of_it_goes_when_it_is_too_old_to_come_again(world: World, seed: int) -> None:
    random = Random(seed)
    world = marked(world)
    names = names_of(world)
    assume(names)
    pipeline = Pipeline(2, random).run(delivery(world, random))
    order(pipeline, random.choice(names), world.watermark)
    pipeline.finish()
    assert any(key[:1] == b"x" for states in pipeline.runner.snapshots(Stage.JUDGE).values() for key in states)

    pipeline.feed([], world.watermark + 3 * RULES.retention)
    pipeline.finish()
    left = [
        key
        for stage in (Stage.RESOLVE, Stage.CORRELATE, Stage.JUDGE)
        for states in pipeline.runner.snapshots(stage).values()
        for key in states
        if key[:1] == b"x"
    ]
    assert left == []


def test_the_search_finds_names() -> None:
    world = marked(World(tuple(trace(1, T0)), (), 0))
    pipeline = Pipeline(1).run([Batch(tuple(world.spans), 0)])
    assert set(holders(pipeline, names_of(world)[0])) >= {"resolve", "judge"}
