"""Stage 5 alone: of equal owners the highest version holds, and what a dead worker sent is void."""

from __future__ import annotations

from itertools import permutations

from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import TimeRules
from schemas.segment import Cell, Partial, PartialReset
from tests.builders import T0
from tests.property.contracts import BOOK

BUCKET = T0
FAR = T0 + TimeRules().retention


def partial(owner: int, version: int, n: int) -> Partial:
    cell = Cell("completion", "order@1", n, n, (n,))
    return Partial("system", (), BUCKET, TimeRules().bucket, owner, version, (cell,), {"judged": n})


def total(*records: Partial | PartialReset) -> int:
    step = MeasureStep(0, BOOK, TimeRules())
    step.opened(0)
    step.caught_up()
    for record in records:
        step.apply([record])
    return sum(counts.get("judged", 0) for counts in step.states(0, FAR).values())


def test_partials_of_several_owners_add_up_and_of_one_the_newest_holds() -> None:
    for order in permutations([partial(0, 1, 5), partial(0, 2, 3), partial(1, 1, 10)]):
        assert total(*order) == 13


def test_a_reset_voids_what_its_owner_sent_before_it_wherever_it_is_heard() -> None:
    records: list[Partial | PartialReset] = [partial(0, 1, 5), partial(1, 1, 10), PartialReset(0, 2)]
    for order in permutations(records):
        assert total(*order) == 10


def test_what_an_owner_sends_after_its_reset_counts() -> None:
    records: list[Partial | PartialReset] = [partial(0, 1, 5), PartialReset(0, 2), partial(0, 3, 4)]
    for order in permutations(records):
        assert total(*order) == 4
