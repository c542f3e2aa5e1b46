"""The hard world as it is built: the same by seed, every kind in it, its truth the sum of what its scenes say."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cache

import pytest

from pipeline.demo.verdicts import ABSENT, ELSEWHERE, FOLLOW_UP, differences, facts_of_account, tally
from pipeline.simulation.deliver import requests
from pipeline.simulation.hard.kinds import KINDS
from pipeline.simulation.hard.world import USUAL_SHARE
from pipeline.simulation.ledger import RATES, SYSTEM
from pipeline.simulation.plan import HOUR_NS
from pipeline.simulation.profiles import FAMILIES
from pipeline.simulation.traffic import OutcomeBatch, SpanBatch, end_ns, trace_and_span
from pipeline.simulation.world import World, build_hard

NOW = datetime(2026, 4, 8, 12, 0, tzinfo=UTC)
NOW_NS = round(NOW.timestamp()) * 1_000_000_000


@cache
def world(seed: int = 1, sessions: int = 500) -> World:
    return build_hard(seed, sessions, NOW)


def test_the_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    first, again, other = world(7, 150), build_hard(7, 150, NOW), world(8, 150)

    assert list(requests(again)) == list(requests(first))
    assert (again.truth, again.verdicts, again.kinds) == (first.truth, first.verdicts, first.kinds)
    assert list(requests(other)) != list(requests(first))


def test_it_needs_an_aware_now_and_a_session() -> None:
    with pytest.raises(ValueError, match="aware"):
        build_hard(1, 10, NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="at least one"):
        build_hard(1, 0, NOW)


def test_every_kind_is_played_in_the_smallest_world_and_often_in_a_large_one() -> None:
    smallest, large = world(2, 1), world(1, 2000)

    assert set(smallest.kinds) == set(large.kinds) == set(KINDS)
    assert min(smallest.kinds.values()) == 1
    for name, times in large.kinds.items():
        assert times >= (2 if KINDS[name].every > 1 else 5), name
    assert 2000 <= large.sessions <= 2210


def test_half_of_it_is_the_usual_week() -> None:
    usual = [where for where in world().verdicts if where[1].startswith(("conv-", "trace:"))]

    assert len(usual) >= USUAL_SHARE * 500
    assert world().sessions - len(usual) > 150


def test_the_truth_is_what_the_scenes_say_and_the_system_is_all_of_it() -> None:
    made = world()
    old = {f"{name}-" for name, kind in KINDS.items() if kind.days_ago is not None}
    young = [one for where, one in made.verdicts.items() if not where[1].startswith(tuple(old))]

    assert made.truth[SYSTEM, "completion"] == (
        sum(one.eligible and one.complete for one in young),
        sum(one.eligible for one in young),
    )
    assert {family for family, _ in made.truth} == {SYSTEM, *FAMILIES, "gift_advice"}
    assert made.truth["gift_advice", "completion"] == (0, 0)
    assert made.truth["gift_advice", "attribution"][1] == made.kinds["family_unknown"]
    for rate in RATES:
        families = sum(made.truth[family, rate][1] for family in {family for family, _ in made.truth} - {SYSTEM})
        assert families <= made.truth[SYSTEM, rate][1]


def test_names_of_sessions_are_of_their_kinds_and_no_two_scenes_share_one() -> None:
    scenes = [conversation for _, conversation, ordinal in world().verdicts if "-a" in conversation and ordinal == 1]
    played = Counter(name.rsplit("-", 2)[0] for name in scenes if not name.startswith("conv-"))

    assert played["follow_up"] == world().kinds["follow_up"]
    assert played["key_of_two_tenants"] == 2 * world().kinds["key_of_two_tenants"]


def test_only_what_has_no_true_time_is_sent_last_and_nothing_else_is_ahead_of_now() -> None:
    *others, last = world().arrivals

    assert isinstance(last, SpanBatch)
    assert len(last.spans) == world().kinds["clock_ahead"]
    assert all(end_ns(span) > NOW_NS for span in last.spans)
    spans = [span for batch in others if isinstance(batch, SpanBatch) for span in batch.spans]
    assert max(map(end_ns, spans)) < NOW_NS - 72 * HOUR_NS


def test_copies_that_differ_are_sent() -> None:
    seen: dict[tuple[int, int], set[int]] = {}
    for batch in world().arrivals:
        for span in batch.spans if isinstance(batch, SpanBatch) else []:
            seen.setdefault(trace_and_span(span), set()).add(end_ns(span))

    assert sum(len(ends) > 2 for ends in seen.values()) == world().kinds["unequal_copies"]
    pairs = world().kinds["unequal_tools"] + world().kinds["unequal_keys"]
    assert sum(len(ends) == 2 for ends in seen.values()) == pairs


def test_versions_come_in_any_order_with_equal_numbers_and_with_other_kinds_and_addresses() -> None:
    events: dict[object, list[dict[str, object]]] = {}
    for batch in world().arrivals:
        for event in batch.events if isinstance(batch, OutcomeBatch) else []:
            told = events.setdefault(event["event_id"], [])
            told += [] if event in told else [event]
    equal, backwards, renamed, readdressed = Counter[str](), 0, 0, 0
    for told in events.values():
        numbers = [each["event_version"] for each in told]
        said = [each for each in told if each["kind"] != "retract"]
        equal[str(said[0]["kind"])] += len(set(numbers)) < len(numbers)
        backwards += numbers != sorted(numbers, key=str)
        renamed += len({str(each["kind"]) for each in said}) > 1
        addresses = {str(each.get("correlation") or each.get("session_id") or each.get("trace_id")) for each in said}
        readdressed += len(addresses) > 1

    assert +equal == {"escalation": world().kinds["retract_at_once"], "reopen": world().kinds["retract_at_once"]}
    assert backwards > 10
    assert renamed == 2 * world().kinds["correct_kind"]
    assert readdressed == world().kinds["correct_address"] + world().kinds["correct_sort_of_address"]


def test_what_differs_is_told_fact_by_fact() -> None:
    made = world()
    seen = {where: facts_of_account(account) for where, account in made.verdicts.items()}
    assert differences(made.verdicts, seen) == []
    first, second, *_ = sorted(seen)
    seen[first] = {**seen[first], "tool_calls": -1}
    del seen[second]
    seen["t", "stranger", 1] = {**seen[first]}
    told = [str(one) for one in differences(made.verdicts, seen)]

    assert told[0].startswith(f"default/{first[1]}#{first[2]} tool_calls: true ")
    assert told[1] == f"default/{second[1]}#{second[2]} session: true present, measured absent"
    assert told[2:] == ["t/stranger#1 session: true absent, measured present"]
    assert ABSENT == {"session": "absent"}


def test_what_a_source_does_not_tell_is_no_difference() -> None:
    made = world()
    listed = {
        where: {name: value for name, value in facts_of_account(account).items() if name != "follow_up"}
        for where, account in made.verdicts.items()
    }

    assert differences(made.verdicts, listed) == []


def test_follow_ups_and_returns_elsewhere_are_added_up_by_family() -> None:
    made = world()
    counted = tally(map(facts_of_account, made.verdicts.values()))
    across = [one for one in made.verdicts.values() if one.across]

    assert counted["", FOLLOW_UP] == (sum(one.follow_up for one in made.verdicts.values()), made.sessions)
    # A session that was refused lost its claim by that, and is in no denominator.
    assert counted["", ELSEWHERE][0] == len(across) - made.kinds["elsewhere_refused"] > 0
    assert counted["order_status", ELSEWHERE] == (
        counted["", ELSEWHERE][0],
        sum(one.eligible and one.claimed for one in made.verdicts.values() if one.family == "order_status"),
    )
