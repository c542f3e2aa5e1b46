"""Customers who come back in another conversation, in any order and over crashes, by the definitions (rule 42)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from tests.builders import T0, outcome, trace
from tests.oracle.model import OOutcome, OSpan
from tests.property.compare import asked_oracle, differences, expected, expected_rates, of_verdict
from tests.property.delivery import delivery
from tests.property.driver import Pipeline
from tests.property.worlds import World
from tests.thorough import EXAMPLES

Draw = Callable[..., Any]
PAUSES = (0, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR)
"""Limits of the contract `order`, of both versions, and of sessions that no contract judges."""
SUBJECTS: tuple[tuple[str, ...], ...] = (("s",), ("s",), ("s", "t"), ("t",), ())
COMMON: tuple[dict[str, Any], ...] = (
    {"issues": ("i",)},
    {"issues": ("i", "j")},
    {"issues": ("j",), "keys": {"order": ("k",)}},
    {"keys": {"order": ("k", "l")}},
    {"keys": {"order": ("k",), "parcel": ("l",)}},
    {},
)
CLAIMS = (None, None, "completed", "completed", "failed")
FAMILIES = ("order", "order", "order", "ask", "none", None)


@st.composite
def returning(draw: Draw) -> World:
    """One to three conversations of a few subjects; some of their traces come with an id later than their spans."""
    spans: list[OSpan] = []
    clock = T0
    for number in range(1, draw(st.integers(2, 6)) + 1):
        usual = draw(st.integers(0, 3)) > 0
        family = "order" if usual else draw(st.sampled_from(FAMILIES))
        stated = {
            "subject": ("s",) if usual else draw(st.sampled_from(SUBJECTS)),
            "claim": draw(st.sampled_from(CLAIMS)),
            "family": (family,) if family else (),
            **draw(st.sampled_from(COMMON[:4] if usual else COMMON)),
        }
        conversation = draw(st.sampled_from(("a", "b", "c", "c", None)))
        made = trace(number, clock, conversation, finish=draw(st.sampled_from(("stop", "length"))), **stated)
        if draw(st.integers(0, 5)) == 0:
            made.append(replace(made[0], subject=("u",), attribute_count=1))  # of unequal copies the fuller one
        spans += made
        clock += 10 * SECOND + draw(st.sampled_from(PAUSES)) + draw(st.sampled_from((0, 0, 1, -SECOND)))
    outcomes: list[OOutcome] = []
    for number in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(("refusal", "reopen", "escalation")))
        anchor = draw(st.sampled_from(spans))
        outcomes.append(
            outcome(f"e{number}", anchor.end + MINUTE, kind, trace_id=anchor.trace_id, data={"state": "accepted"})
        )
    watermark = max(one.end for one in spans) + draw(st.sampled_from((11 * MINUTE, 3 * HOUR, 80 * HOUR)))
    return World(tuple(spans), tuple(outcomes), watermark)


def check(pipeline: Pipeline, world: World) -> None:
    answer = asked_oracle(world)
    ours = {key: of_verdict(one) for key, one in pipeline.verdicts().items()}
    assert not differences(ours, expected(answer))
    assert pipeline.rates() == expected_rates(answer)
    assert pipeline.waiting() == len(answer.waiting)


@given(returning(), st.integers(0, 2**32 - 1))
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_who_came_back_elsewhere_is_what_the_definitions_say_in_any_order_and_after_any_crash(
    world: World, seed: int
) -> None:
    random = Random(seed)
    crashes = random.choice((0.0, 0.5))
    pipeline = Pipeline(random.choice((1, 2, 3)), random, crashes, random.choice((0, 1, 3)) if crashes else 0)
    pipeline.run(delivery(world, random))
    if crashes:
        pipeline.crash()
    check(pipeline.finish(), world)
