"""The simulated world: the same by seed, rich enough, within its bounds, and sent the way that traffic is."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from pipeline.simulation.deliver import requests
from pipeline.simulation.ledger import RATES, SYSTEM, claimed
from pipeline.simulation.plan import Ending, FactKind, HandOff, Kind, SessionPlan, Shape, Standing
from pipeline.simulation.profiles import FAMILIES, LONGEST_HORIZON_NS
from pipeline.simulation.spans import CONVERSATION_ID
from pipeline.simulation.traffic import OutcomeBatch, SpanBatch, end_ns, trace_and_span
from pipeline.simulation.world import EPOCH, World, build

NOW = datetime(2026, 4, 8, 12, 0, tzinfo=UTC)
SEEDS = (1, 2, 3, 4)


@pytest.fixture(scope="module", params=SEEDS, ids="seed {}".format)
def seeded(request: pytest.FixtureRequest) -> World:
    """One big world at a time: pytest runs all tests of a seed before it makes the next."""
    return build(request.param, 2000, NOW)


@cache
def world(seed: int = 1, sessions: int = 1200) -> World:
    return build(seed, sessions, NOW)


def sent_spans(of: World) -> list[ReadableSpan]:
    return [span for arrival in of.arrivals if isinstance(arrival, SpanBatch) for span in arrival.spans]


def sent_events(of: World) -> list[dict[str, object]]:
    return [event for arrival in of.arrivals if isinstance(arrival, OutcomeBatch) for event in arrival.events]


def all_sessions(of: World) -> list[SessionPlan]:
    return [session for conversation in of.conversations for session in conversation.sessions]


def moment(at_ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=at_ns // 1000)


def event_time(event: dict[str, object]) -> datetime:
    return datetime.fromisoformat(str(event["event_time"]))


def test_the_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    first, again, other = build(7, 60, NOW), build(7, 60, NOW), build(8, 60, NOW)

    assert list(requests(again)) == list(requests(first))
    assert (again.truth, again.faults, again.stories) == (first.truth, first.faults, first.stories)
    assert list(requests(other)) != list(requests(first))


def test_a_world_needs_an_aware_now_and_a_session() -> None:
    with pytest.raises(ValueError, match="aware"):
        build(1, 10, NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="at least one"):
        build(1, 0, NOW)


def test_every_rate_is_strictly_between_nothing_and_everything_in_four_families(seeded: World) -> None:
    truth = seeded.truth
    for rate in RATES:
        telling = [family for family in FAMILIES if 0 < truth[family, rate][0] < truth[family, rate][1]]

        assert len(telling) >= 4, rate


def test_the_world_is_of_the_size_that_was_asked_for(seeded: World) -> None:
    assert 2000 <= seeded.sessions <= 2400
    assert seeded.sessions == len(all_sessions(seeded))
    assert 30_000 <= len({trace_and_span(span) for span in sent_spans(seeded)}) <= 50_000
    assert {session.family for session in all_sessions(seeded)} == set(FAMILIES)


def test_the_truth_has_a_row_for_every_family_and_rate_and_the_system_is_their_sum() -> None:
    truth = world().truth

    assert set(truth) == {(family, rate) for family in (SYSTEM, *FAMILIES) for rate in RATES}
    for rate in RATES:
        summed = tuple(sum(truth[family, rate][part] for family in FAMILIES) for part in (0, 1))
        assert truth[SYSTEM, rate] == summed
    assert truth["order_status", "verified_completion"] == (0, 0)


def test_every_kind_of_scenario_occurs_in_every_family(seeded: World) -> None:
    of_family: dict[str, set[object]] = {family: set() for family in FAMILIES}
    for conversation in seeded.conversations:
        for session in conversation.sessions:
            of_family[session.family] |= {conversation.kind, session.ending, session.shape, session.hand_off}
            of_family[session.family] |= {session.standing, *(fact.kind for fact in session.facts)}
    everywhere = {Kind.SINGLE, Kind.UNATTRIBUTED, Kind.RETURNS_SAME_ISSUE, Kind.TURNS_TO_OTHER_TASK}
    everywhere |= {*Ending} | {*Shape} | {*HandOff} | {*Standing}

    assert set.union(*of_family.values()) == {*Kind, *Ending, *Shape, *HandOff, *Standing, *FactKind}
    for family, seen in of_family.items():
        # What is rare by design may miss one family of one world, but never more than a few of all kinds.
        assert len(everywhere - seen) <= 3, (family, everywhere - seen)


def test_every_session_ends_within_the_days_that_are_compared_and_is_mature() -> None:
    earliest, latest = NOW - timedelta(days=6.9), NOW - timedelta(microseconds=LONGEST_HORIZON_NS // 1000, hours=2)
    ends = [moment(session.end_ns) for session in all_sessions(world())]

    assert earliest <= min(ends)
    assert max(ends) <= latest
    assert timedelta(days=3) < max(ends) - min(ends)


def test_every_span_and_every_outcome_is_in_the_past() -> None:
    assert max(moment(end_ns(span)) for span in sent_spans(world())) <= NOW - timedelta(hours=74)
    assert max(event_time(event) for event in sent_events(world())) <= NOW - timedelta(minutes=1)


def test_planned_ends_are_the_ends_of_the_spans_that_were_made() -> None:
    made = world(5, 300)
    last: dict[str, int] = {}
    for span in sent_spans(made):
        name = dict(span.attributes or {}).get(CONVERSATION_ID)
        if isinstance(name, str):
            last[name] = max(last.get(name, 0), end_ns(span))

    for conversation in made.conversations:
        if conversation.attributed:
            assert last[conversation.name] == conversation.sessions[-1].end_ns


def test_half_of_the_traces_with_an_id_carry_it_on_the_root_only() -> None:
    carriers: dict[int, list[bool]] = {}
    for span in {trace_and_span(each): each for each in sent_spans(world())}.values():
        carriers.setdefault(trace_and_span(span)[0], []).append(CONVERSATION_ID in (span.attributes or {}))
    with_id = [carried for carried in carriers.values() if any(carried)]
    root_only = [carried for carried in with_id if sum(carried) == 1]

    assert 0.45 < len(root_only) / len(with_id) < 0.55
    assert len(with_id) < len(carriers)


def test_children_end_before_their_parents() -> None:
    ends = {trace_and_span(span): end_ns(span) for span in sent_spans(world())}
    children = [span for span in sent_spans(world()) if span.parent is not None]

    assert len(children) > 10_000
    for span in children:
        assert span.parent is not None
        assert end_ns(span) < ends[span.parent.trace_id, span.parent.span_id]


def test_corrections_and_retractions_come_for_every_kind_of_outcome() -> None:
    kinds: dict[object, str] = {e["event_id"]: str(e["kind"]) for e in sent_events(world()) if e["kind"] != "retract"}
    versions = Counter((kinds[e["event_id"]], e["kind"] == "retract", e["event_version"]) for e in sent_events(world()))

    assert versions["evidence", False, 2] > 0
    assert versions["evidence", False, 3] > 0
    assert versions["resolution", False, 2] > 0
    assert versions["escalation", False, 2] > 0
    for kind in FactKind:
        assert versions[str(kind), True, 2] > 0, kind


def test_outcomes_are_addressed_by_key_by_conversation_and_by_ordinal() -> None:
    addresses = [set(event) & {"session_id", "ordinal", "correlation"} for event in sent_events(world())]

    assert {"correlation"} in addresses
    assert {"session_id"} in addresses
    assert {"session_id", "ordinal"} in addresses
    for event, address in zip(sent_events(world()), addresses, strict=True):
        assert (event["kind"] == "retract") == (address == set())


def test_some_outcomes_arrive_before_their_sessions_first_span() -> None:
    seen_keys: set[object] = set()
    ahead = 0
    for arrival in world().arrivals:
        if isinstance(arrival, SpanBatch):
            for span in arrival.spans:
                values = {v for k, v in (span.attributes or {}).items() if k.startswith("trueup.correlation.")}
                seen_keys |= values
        else:
            for event in arrival.events:
                keys = event.get("correlation")
                ahead += isinstance(keys, dict) and not seen_keys & set(keys.values())

    assert ahead > 10


def test_stories_tell_of_claims_that_did_not_hold() -> None:
    made = world()
    by_name = {conversation.name: conversation for conversation in made.conversations}

    assert len(made.stories) >= 3
    for story in made.stories:
        assert claimed(by_name[story.conversation].sessions[0])
        assert story.what_happened.startswith(by_name[story.conversation].sessions[0].family)
