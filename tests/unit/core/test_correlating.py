"""Stage 3 alone: versions meet, and nothing stays for ever (RULES.md 32, 36, 37)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.correlating.keys import MOST_TRACES
from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.effects import Result
from pipeline.core.timeline import DAY, TimeRules
from schemas.outcome import Attached
from schemas.span import Stated
from schemas.topics import Topic
from tests.builders import T0, outcome, outcome_arrival
from tests.oracle.model import OOutcome

RULES = TimeRules()


class Correlate:
    """One partition with its loop, caught up."""

    def __init__(self) -> None:
        self.step = CorrelateStep(0, 1, RULES)
        self.step.opened(0)
        self.step.caught_up()
        self.dead = 0

    def apply(self, *records: Any) -> list[Attached]:
        """What goes to conversations, when the loop has come to rest."""
        waiting = [outcome_arrival(one) if isinstance(one, OOutcome) else one for one in records]
        attached: list[Attached] = []
        while waiting:
            self.step.apply(waiting)
            sent, counts = self.step.outbox.take()
            self.dead += sum(n for (result, _), n in counts.items() if result is Result.DEAD_LETTERED)
            waiting = sent.pop((Topic.CORRELATIONS, 0), [])
            attached += sent.get((Topic.SESSION_EVENTS, 0), [])
        return attached


def stated(trace: int, start: int, conversation: str, stamp: int = 1) -> Stated:
    return Stated("default", "order", "k", trace.to_bytes(16), stamp, start, conversation)


KEY = {"order": "k"}


def test_a_newer_version_with_another_address_is_withdrawn_from_the_old_one() -> None:
    stage = Correlate()
    stage.apply(outcome("e", T0, session_id="a"))
    moved = stage.apply(outcome("e", T0, session_id="b", event_version=2))
    assert {(one.conversation, one.outcome is None) for one in moved} == {("a", True), ("b", False)}


def test_an_older_version_changes_nothing() -> None:
    stage = Correlate()
    stage.apply(outcome("e", T0, event_version=2))
    assert stage.apply(outcome("e", T0, event_version=1, data={"x": 1})) == []


@pytest.mark.parametrize("turned", [False, True])
def test_evidence_finds_its_conversations_whichever_comes_first(turned: bool) -> None:
    stage = Correlate()
    records = [outcome("e", T0, correlation=KEY), stated(1, T0, "a"), stated(2, T0, "b")]
    sent = [one for record in (reversed(records) if turned else records) for one in stage.apply(record)]
    assert {one.conversation for one in sent if one.outcome is not None} == {"a", "b"}


def test_a_trace_that_moves_takes_the_outcome_along() -> None:
    stage = Correlate()
    stage.apply(outcome("e", T0, "escalation", correlation=KEY), stated(1, T0, "a"))
    moved = stage.apply(stated(1, T0, "b", stamp=2))
    assert {(one.conversation, one.outcome is None) for one in moved} == {("a", True), ("b", False)}
    assert stage.apply(stated(1, T0, "a", stamp=1)) == []


def test_a_key_is_too_broad_beyond_two_hundred_traces_that_had_begun() -> None:
    stage = Correlate()
    stage.apply(*(stated(number, T0, "a") for number in range(1, MOST_TRACES + 1)))
    assert len(stage.apply(outcome("e", T0, correlation=KEY))) == 1
    stage.apply(stated(MOST_TRACES + 1, T0 + DAY, "a"))
    assert len(stage.apply(outcome("f", T0, correlation=KEY))) == 1
    assert stage.apply(outcome("g", T0 + DAY, correlation=KEY)) == []


def test_an_outcome_older_than_retention_is_refused_and_one_at_its_edge_is_not() -> None:
    stage = Correlate()
    stage.step.advance(T0 + RULES.retention)
    assert len(stage.apply(outcome("e", T0))) == 1
    assert stage.apply(outcome("f", T0 - 1)) == []
    assert stage.dead == 1


def test_what_waits_for_a_session_expires_with_its_retention() -> None:
    stage = Correlate()
    stage.apply(outcome("e", T0, correlation=KEY))
    assert stage.step.waiting_outcomes() == 1
    stage.step.advance(T0 + RULES.retention)
    assert stage.step.waiting_outcomes() == 1
    stage.step.advance(T0 + RULES.retention + 1)
    assert stage.step.waiting_outcomes() == 0
    assert not stage.step.keys
    assert not stage.step.identities


def test_a_key_from_which_all_was_withdrawn_does_not_stay() -> None:
    stage = Correlate()
    event = outcome("e", T0, correlation=KEY)
    stage.apply(event)
    stage.apply(replace(event, kind="retract", data={}, correlation={}))
    for days in (40, 80):
        stage.step.advance(T0 + days * DAY)
    assert not stage.step.keys
