"""When a contract was loaded makes no difference to what it judges, while that has not settled (RULES.md 31)."""

from __future__ import annotations

from random import Random

from hypothesis import given

from pipeline.core.contracts.parse import load, read
from pipeline.core.timeline import HOUR
from pipeline.topology import contracts_changed
from tests.property.compare import asked_oracle
from tests.property.contracts import ASK, BOOK, ORDER, ORDER_LATER, SEARCH
from tests.property.delivery import delivery
from tests.property.driver import KEYED, Pipeline
from tests.property.statistics import STATISTICS
from tests.property.test_laws import check, law, seeds
from tests.property.worlds import RULES, World, worlds

LATER = read("later", ORDER_LATER, RULES).contract
SOON = LATER.effective_from + 60 * HOUR
"""Nothing that began since it takes effect has settled by then."""


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
