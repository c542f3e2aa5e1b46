"""Erasure through all stages, case by case: who is told, what is refused, and what stays with others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pipeline.core.erasing import Tombstone, Tombstones, conversation_digest, digest_of
from pipeline.core.ingest import subject_hash
from pipeline.core.judging.step import JudgeStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from schemas.erasing import ERASE_ROWS, EraseRows, Forget
from schemas.topics import Stage, Topic, partition_of
from tests.builders import T0, trace_id
from tests.unit.core.line import CHAT, ORDER, Line, sent, turn

KEY = b"a key of sixteen"
SUBJECT = {"trueup.subject": "ada"}
LATER = T0 + 6 * HOUR


def line() -> Line:
    return Line(subject_key=KEY)


def order(to: Line, conversation: str = "", subject: str = "", ordinals: int = 0, at: int = LATER) -> Line:
    """An order, where the worker puts it."""
    hashed = subject_hash(KEY, subject.encode()) if subject else ""
    record = Forget("default", conversation, hashed, "o1", at, b"s" * 16, ordinals)
    partitions = range(2) if subject else [partition_of(2, "default", conversation)]
    for number in partitions:
        to.runner.feed_records(Topic.SESSION_EVENTS, number, [record])
    to.runner.drain()
    return to


def holders(of: Line, text: str) -> set[str]:
    stages = (Stage.RESOLVE, Stage.CORRELATE, Stage.JUDGE)
    states = {stage: of.runner.snapshots(stage).values() for stage in stages}
    return {
        stage.value
        for stage, partitions in states.items()
        if any(text.encode() in key + state for held in partitions for key, state in held.items())
    }


def says(conversation: str, **more: Any) -> dict[str, Any]:
    return {**ORDER, "gen_ai.conversation.id": conversation, **more}


def receipts(of: Line) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in of.rows("erasures"):
        if one["alias"]:
            place = one["stage"], one["what"]
            found[place] = found.get(place, 0) + one["n"]
    return found


def test_a_late_span_and_a_late_outcome_of_an_erased_conversation_become_nameless_letters() -> None:
    here = line().spans(*turn(1, T0, says("secret-chat"))).until(LATER)
    order(here, "secret-chat")
    here.spans(*turn(2, T0 + MINUTE, says("secret-chat")), record_time=LATER)
    here.outcome("secret-event", T0 + HOUR, session_id="secret-chat", data={"settled": True})

    assert holders(here, "secret") == set()
    assert [one.reason for one in here.letters()] == ["erased", "erased"]
    assert not any("secret" in str(msgspec.to_builtins(one)) for one in here.letters())
    assert here.counted("dead_lettered", "erased") == 3
    assert here.sessions() == []


def test_verdicts_become_tombstones_also_of_sessions_that_only_the_store_knows() -> None:
    here = line().spans(*turn(1, T0, says("c"))).until(LATER)
    order(here, "c", ordinals=3)
    order(here, "unknown", ordinals=2)

    last = dict(here.runner.verdicts())
    assert [last[f"default\0c\0{n}".encode()] for n in (1, 2, 3)] == [None] * 3
    assert [last[f"default\0unknown\0{n}".encode()] for n in (1, 2)] == [None] * 2
    told = sorted((EraseRows(*values) for values in here.runner.rows(ERASE_ROWS)), key=lambda one: one.conversation)
    assert [one.conversation for one in told] == ["c", "unknown"]
    assert told[0].digest == conversation_digest("default", "c")


def test_a_trace_without_an_id_that_follows_one_goes_with_it_before_and_after() -> None:
    link = [{"traceId": trace_id(1), "spanId": "1" * 16}]
    follower = sent(2, 200, T0, T0 + SECOND, {**CHAT, "gen_ai.response.id": "secret-answer"}, links=link)
    late = sent(3, 300, T0, T0 + SECOND, CHAT, links=link)
    shares = sent(4, 400, T0, T0 + SECOND, {**CHAT, "gen_ai.response.id": "secret-answer"})
    here = line().spans(*turn(1, T0, says("secret-chat"))).spans(follower).until(LATER)
    assert holders(here, "secret-answer") == {"resolve", "judge"}
    order(here, "secret-chat")
    assert holders(here, "secret") == set()
    here.spans(late, record_time=LATER).spans(shares, record_time=LATER).until(LATER + HOUR)

    assert holders(here, "secret") == set()
    assert here.sessions() == []
    assert here.counted("noted", "erased", Stage.RESOLVE) == 4
    assert receipts(here)["resolve", "traces"] == 2
    told = [EraseRows(*values) for values in here.runner.rows(ERASE_ROWS)]
    without_a_name = {one.conversation for one in told if not one.alias}  # sent before it was known where they lead
    assert without_a_name == {f"trace:{trace_id(3)}", f"trace:{trace_id(4)}"}


def test_what_another_conversation_has_by_the_same_key_stays_with_it_and_it_gains_nothing() -> None:
    both = {"trueup.correlation.order_id": "A-1"}
    own = {"trueup.correlation.ticket": "secret-ticket"}
    here = line()
    here.spans(*turn(1, T0, says("stays", **both)))
    here.spans(*turn(2, T0 + HOUR, says("goes", **both, **own)))
    here.outcome("of-both", T0 + 2 * HOUR, correlation={"order_id": "A-1"}, data={"settled": True})
    here.outcome("secret-own", T0 + 2 * HOUR, correlation={"ticket": "secret-ticket"}, data={"settled": True})
    here.outcome("of-latest", T0 + 2 * HOUR, kind="reopen", correlation={"order_id": "A-1"}).until(LATER)
    before = here.sessions("stays")
    assert before[0]["evidence"]["settled"]["value"] is True
    order(here, "goes")

    here.outcome("secret-new", T0 + 3 * HOUR, correlation={"ticket": "secret-ticket"}, data={"settled": False})
    here.outcome("later-latest", T0 + 3 * HOUR, kind="reopen", correlation={"order_id": "A-1"})
    here.until(LATER + HOUR)

    assert holders(here, "secret") == holders(here, "of-latest") == holders(here, "later-latest") == set()
    assert "correlate" in holders(here, "of-both")
    unsent = {"version", "as_of", "revision", "reason"}
    assert [{k: v for k, v in one.items() if k not in unsent} for one in here.sessions("stays")] == [
        {k: v for k, v in one.items() if k not in unsent} for one in before
    ]


def test_an_outcome_under_two_keys_goes_with_the_last_of_them() -> None:
    here = line()
    for number, name in ((1, "one"), (2, "two")):
        here.spans(*turn(number, T0, says(name, **{f"trueup.correlation.k{number}": name})))
    here.outcome("shared-event", T0 + HOUR, correlation={"k1": "one", "k2": "two"}, data={"settled": True}).until(LATER)
    order(here, "one")
    assert "correlate" in holders(here, "shared-event")
    order(here, "two")
    assert holders(here, "shared-event") == set()
    here.outcome("shared-event", T0 + HOUR, event_version=2, correlation={"k1": "one"}, data={})
    assert here.counted("dead_lettered", "erased") == 1
    assert holders(here, "shared-event") == set()


def test_a_subject_takes_all_its_conversations_and_what_comes_late_of_that_time() -> None:
    here = line()
    here.spans(*turn(1, T0, says("a-of-ada", **SUBJECT)))
    here.spans(*turn(2, T0, says("b-of-ada", **SUBJECT)))
    here.spans(*turn(3, T0, says("c-of-bob", **{"trueup.subject": "bob"}))).until(LATER)
    order(here, subject="ada")
    here.spans(*turn(4, T0 + HOUR, says("d-of-ada", **SUBJECT)), record_time=LATER)
    here.spans(*turn(5, LATER + HOUR, says("e-of-ada", **SUBJECT))).until(LATER + 5 * HOUR)

    assert [one["conversation"] for one in here.sessions()] == ["c-of-bob", "e-of-ada"]
    assert [holders(here, f"{name}-of-ada") for name in "abd"] == [set()] * 3
    found = {
        (one["stage"], one["what"], one["partition"]): one["n"] for one in here.rows("erasures") if not one["alias"]
    }
    assert found["judge", "conversations", 0] + found["judge", "conversations", 1] == 2
    assert receipts(here)["judge", "conversations"] == 3


def test_the_counts_of_an_erased_session_stay_and_it_is_counted_as_erased() -> None:
    here = line()
    here.spans(*turn(1, T0, says("goes", **{"trueup.task.outcome": "completed"})))
    here.spans(*turn(2, T0, says("stays", **{"trueup.task.outcome": "completed"}))).until(LATER)
    before = here.rate("claimed_completion")
    order(here, "goes")
    here.until(LATER + DAY)

    assert here.rate("claimed_completion") == before == (2, 2)
    assert here.counted("noted", "erased", Stage.JUDGE) == 1


def test_an_open_session_leaves_no_count() -> None:
    here = line().spans(*turn(1, T0, says("open"))).until(T0 + MINUTE)
    order(here, "open", at=T0 + MINUTE)
    here.until(LATER)
    assert here.rate("attribution") == (0, 0)
    assert receipts(here)["judge", "sessions"] == 0


def test_a_conversation_may_begin_anew_when_nothing_of_the_old_one_can_come() -> None:
    here = line().spans(*turn(1, T0, says("c"))).until(LATER)
    order(here, "c")
    again = LATER + TimeRules().retention + DAY
    here.until(again).spans(*turn(2, again, says("c"))).until(again + 6 * HOUR)
    assert [one["ordinal"] for one in here.sessions("c")] == [1]


@pytest.mark.parametrize("times", [1, 3])
def test_tombstones_come_back_from_a_snapshot_and_go_in_time(times: int) -> None:
    stones = Tombstones()
    assert not stones
    for number in range(times):
        stones.add(digest_of("a", "b"), Tombstone(100 + number, 7, "o", b"s"))
    stones.add(digest_of("a", "b"), Tombstone(5))  # an earlier end is no news
    changed = stones.with_changes([], [])

    loaded = Tombstones()
    assert [loaded.load(key, state) for key, state in changed.states] == [True]
    assert not loaded.load(b"c-of-another-kind", b"")
    assert loaded.find("a", "b") == Tombstone(99 + times, 7, "o", b"s")
    assert loaded.find("a\0b") is None or digest_of("a\0b") == digest_of("a", "b")
    loaded.expire(99 + times)
    assert loaded
    loaded.expire(100 + times)
    assert not loaded
    assert loaded.with_changes([], []).gone == [key for key, _ in changed.states]


def test_a_settled_session_goes_by_its_subject_and_by_its_name_and_counts_on() -> None:
    here = line()
    for number, name in ((1, "a-of-ada"), (2, "b-of-bob"), (3, "c-of-bob")):
        here.spans(*turn(number, T0, says(name, **{"trueup.subject": name[-3:], "trueup.task.outcome": "completed"})))
    settled = T0 + 9 * DAY
    here.until(settled)
    order(here, subject="ada", at=settled)
    order(here, "b-of-bob", at=settled)
    here.until(settled + DAY)

    assert [one["conversation"] for one in here.sessions()] == ["c-of-bob"]
    assert holders(here, "a-of-ada") == holders(here, "b-of-bob") == set()
    assert here.rate("claimed_completion") == (3, 3)
    assert receipts(here)["judge", "sessions"] == 2
    here.spans(*turn(1, T0, says("a-of-ada", **{"trueup.subject": "ada"})), record_time=settled)
    assert holders(here, "a-of-ada") == set()
    assert here.counted("dead_lettered", "erased") == 2


def test_a_retraction_that_names_the_erased_goes_on_without_the_name_where_another_has_the_outcome() -> None:
    here = line().spans(*turn(1, T0, says("stays"))).spans(*turn(2, T0, says("secret-chat")))
    here.outcome("e", T0 + HOUR, session_id="stays", data={"settled": True})
    here.outcome("e", T0 + 2 * HOUR, kind="retract", session_id="secret-chat", event_version=2).until(LATER)
    before = here.sessions("stays")
    assert "correlate" in holders(here, "secret-chat")
    order(here, "secret-chat")
    here.outcome("e", T0 + HOUR, session_id="stays", data={"settled": True}).until(LATER + HOUR)

    assert holders(here, "secret-chat") == set()
    assert here.sessions() == before
    assert before[0]["evidence"] == {}


def test_what_a_trace_took_elsewhere_before_it_was_known_where_it_leads_is_withdrawn_with_its_outcomes() -> None:
    key = {"trueup.correlation.order_id": "A-1"}
    here = line().spans(*turn(1, T0, says("secret-chat"))).spans(*turn(2, T0, says("stays", **key)))
    here.spans(*turn(3, T0, {**ORDER, **key}))
    here.outcome("of-both", T0 + HOUR, correlation={"order_id": "A-1"}, data={"settled": True}).until(LATER)
    elsewhere = f"trace:{trace_id(3)}"
    assert [one["conversation"] for one in here.sessions()] == ["secret-chat", "stays", elsewhere]
    order(here, "secret-chat")
    link = [{"traceId": trace_id(1), "spanId": "1" * 16}]
    here.spans(sent(3, 302, T0, T0 + SECOND, CHAT, links=link), record_time=LATER).until(LATER + HOUR)

    assert [one["conversation"] for one in here.sessions()] == ["stays"]
    assert here.only()["evidence"]["settled"]["value"] is True
    judges = [step for step in here.runner.steps(Stage.JUDGE).values() if isinstance(step, JudgeStep)]
    (left,) = [one for step in judges for one in step.conversations.values() if one.name == elsewhere]
    assert [content for held in left.outcomes.values() for _, _, content in held.ways] == [None]
    assert not any(held.spans for held in left.traces.values())
    told = [EraseRows(*values) for values in here.runner.rows(ERASE_ROWS)]
    assert {one.conversation: bool(one.alias) for one in told} == {"secret-chat": True, elsewhere: False}
