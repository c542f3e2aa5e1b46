"""One small world through the whole pipeline and through the oracle, which must agree; the verdicts are handed back."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.core.timeline import DAY
from schemas.verdict import Verdict
from tests.oracle.model import OOutcome, OSpan
from tests.property.compare import asked_oracle, differences, expected, expected_rates, of_verdict
from tests.property.delivery import in_order, time_of
from tests.property.driver import Pipeline
from tests.property.worlds import World

FAR = 10 * DAY
"""After the end: past every window, within retention."""


def judged(
    spans: Sequence[OSpan], outcomes: Sequence[OOutcome] = (), watermark: int = 0, conversation: str = "c"
) -> list[Verdict]:
    """The sessions of a conversation at `watermark` (default: far), in order."""
    pipeline = run(spans, outcomes, watermark)
    found = sorted(pipeline.verdicts().items())
    return [verdict for (_, name, _), verdict in found if name == conversation]


def arrived(*records: OSpan | OOutcome, watermark: int = 0) -> Pipeline:
    """The same where it matters in which order things come: one by one as they are named, event time behind them."""
    return together(*([one] for one in records), watermark=watermark)


def together(*groups: Sequence[OSpan | OOutcome], watermark: int = 0) -> Pipeline:
    """The same with groups of records, each of which comes at once."""
    records = [one for group in groups for one in group]
    spans = tuple(one for one in records if isinstance(one, OSpan))
    outcomes = tuple(one for one in records if isinstance(one, OOutcome))
    world = World(spans, outcomes, watermark or max(map(time_of, records)) + FAR)
    pipeline = Pipeline(2)
    fed = 0
    for group in groups:
        fed += len(group)
        pipeline.feed(group, min(map(time_of, [*group[-1:], *records[fed:]])))
    pipeline.feed([], world.watermark)
    _agrees(pipeline.finish(), world)
    return pipeline


def run(spans: Sequence[OSpan], outcomes: Sequence[OOutcome] = (), watermark: int = 0) -> Pipeline:
    end = max([one.end for one in spans] + [one.event_time for one in outcomes])
    world = World(tuple(spans), tuple(outcomes), watermark or end + FAR)
    pipeline = Pipeline(2).run(in_order(world))
    _agrees(pipeline, world)
    return pipeline


def _agrees(pipeline: Pipeline, world: World) -> None:
    answer = asked_oracle(world)
    ours = {key: of_verdict(one) for key, one in pipeline.verdicts().items()}
    assert not differences(ours, expected(answer))
    assert pipeline.rates() == expected_rates(answer)
