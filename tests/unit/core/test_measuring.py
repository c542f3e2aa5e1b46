"""Stage 5 alone: of equal owners the highest version holds, and what a dead worker sent is void."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from pipeline.core.effects import Result
from pipeline.core.measuring.step import MeasureStep
from pipeline.core.timeline import DAY, SECOND, TimeRules
from pipeline.core.windows import forgotten_before
from schemas.segment import WINDOWS, Cell, Partial, PartialReset
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


FORGOTTEN = forgotten_before(T0 + 100 * DAY, TimeRules(), BOOK.longest_horizon(TimeRules().reopen_window))
"""The first bucket that is kept at a watermark of `T0` + 100 days."""


def at(bucket: int, version: int = 1) -> Partial:
    return replace(partial(0, version, 5), bucket=bucket)


@pytest.mark.parametrize(
    ("bucket", "kept"),
    [
        pytest.param(FORGOTTEN - TimeRules().bucket, 0, id="the last that is forgotten"),
        pytest.param(FORGOTTEN, 1, id="the first that stays"),
    ],
)
def test_rule_48_a_sealed_bucket_is_forgotten_when_no_window_looks_at_it(bucket: int, kept: int) -> None:
    step = MeasureStep(0, BOOK, TimeRules())
    step.opened(T0)
    step.caught_up()
    step.apply([at(bucket)])
    step.advance(T0 + 100 * DAY)
    step.publish()
    changed = step.changed()
    assert (len(changed.states), len(changed.gone)) == (kept, 1 - kept)
    assert len(step.states(0, T0 + 100 * DAY)) == kept
    step.apply([at(bucket, version=2)])
    _, counts = step.outbox.take()
    assert counts[Result.DROPPED, "sealed_partial"] == 1 - kept
    assert len(step.states(0, T0 + 100 * DAY)) == kept


def test_rule_48_what_is_forgotten_is_sealed_and_older_than_every_window() -> None:
    rules = TimeRules()
    now = T0 + 100 * DAY
    oldest_looked_at = now - max(WINDOWS.values()) * SECOND - BOOK.longest_horizon(rules.reopen_window)
    assert FORGOTTEN + rules.bucket + rules.retention < now
    assert oldest_looked_at > FORGOTTEN
