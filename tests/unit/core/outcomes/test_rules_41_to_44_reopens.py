"""Customers who come back: within a conversation, in another one, by an outcome; who merely follows up
(RULES.md 41 to 44)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.core.timeline import HOUR, MINUTE, SECOND
from schemas.topics import Stage
from tests.builders import T0, outcome, span, trace, trace_id
from tests.oracle.model import OOutcome, OSpan
from tests.unit.core.judged import arrived, judged, run

END = T0 + 10 * SECOND
WINDOW, RESUME, GAP = 48 * HOUR, HOUR, 30 * MINUTE  # of the contract `order`
LATER = T0 + 150 * MINUTE


def order(number: int, start: int = T0, conversation: str | None = "c", **more: Any) -> list[OSpan]:
    return trace(number, start, conversation, tool="place_order", **{"family": ("order",), **more})


def reopened(*records: OSpan | OOutcome, watermark: int = 0) -> dict[str, bool]:
    """Session as it is printed -> whether it was reopened; the records come in this order."""
    found = arrived(*records, watermark=watermark).verdicts().items()
    return {f"{name}#{ordinal}": one.reopened for (_, name, ordinal), one in found}


# -- 41: in the same conversation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        pytest.param(RESUME + 1, True, id="past the resume window: a session of its own"),
        pytest.param(WINDOW, True, id="at the end of the reopen window"),
        pytest.param(WINDOW + 1, False, id="past it"),
    ],
)
def test_rule_41_a_return_within_the_reopen_window_takes_the_assumed_claim_back(pause: int, expected: bool) -> None:
    assert reopened(*order(1), *order(2, END + pause)) == {"c#1": expected, "c#2": False}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param({}, {"family": ("other",)}, False, id="another family"),
        pytest.param({}, {"family": ()}, True, id="an inherited one"),
        pytest.param({"family": ()}, {"family": ()}, False, id="two unknown ones"),
        pytest.param({"issues": ("i",)}, {}, True, id="one states an issue"),
        pytest.param({"issues": ("i", "j")}, {"issues": ("j", "k")}, True, id="a common issue"),
        pytest.param({"issues": ("i",)}, {"issues": ("k",)}, False, id="no common issue"),
        pytest.param({"claim": "failed"}, {}, False, id="it claimed no completion"),
        pytest.param({"finish": "length", "failed": True}, {}, False, id="it could not be assumed"),
        pytest.param({"subject": "s"}, {"subject": "t"}, True, id="whoever it was"),
    ],
)
def test_rule_41_what_the_two_must_have_in_common(
    first: dict[str, Any], second: dict[str, Any], expected: bool
) -> None:
    assert reopened(*order(1, **first), *order(2, LATER, **second))["c#1"] is expected


@pytest.mark.parametrize(("pause", "expected"), [(10 * MINUTE + 1, True), (10 * MINUTE, None)], ids=["past", "within"])
def test_rule_41_an_explicit_claim_is_taken_back_as_soon_as_a_session_follows(
    pause: int, expected: bool | None
) -> None:
    found = reopened(*order(1, claim="completed"), *order(2, END + pause))
    assert found == ({"c#1": True, "c#2": False} if expected else {"c#1": False})


@pytest.mark.parametrize(
    ("start", "reopens"), [(HOUR, 0), (2 * HOUR, 0), (2 * HOUR + 1, 1)], ids=["within", "at its end", "after it"]
)
def test_rule_41_what_begins_before_a_session_has_ended_does_not_take_its_claim_back(start: int, reopens: int) -> None:
    long = [span(1, 100, T0, T0 + 2 * HOUR, "agent", agent="helper", id="c", family=("order",))]
    claim = span(1, 101, T0, END, "inference", 100, finish_reasons=("stop",), claim="completed")
    first, second = judged([*long, claim, *order(2, T0 + start)])
    assert (first.claimed, first.end) == ("explicit", T0 + 2 * HOUR)
    assert (first.reopened, second.reopens, second.follow_up) == (bool(reopens), reopens, not reopens)


def test_rule_41_an_assumed_claim_is_not_taken_back_by_another_family_within_the_quiet_time() -> None:
    soon = [*order(1), *order(2, END + MINUTE, family=("other",)), *order(3, END + 20 * MINUTE)]
    late = [*order(1), *order(2, END + MINUTE, family=("other",)), *order(3, END + RESUME + 1)]
    assert reopened(*soon)["c#1"] is False
    assert reopened(*late)["c#1"] is True


def test_rule_41_the_latest_that_qualifies_is_reopened_and_since_the_earliest_return() -> None:
    times = (T0, LATER, T0 + 4 * HOUR)
    first, second, third = judged([span for n, start in enumerate(times, 1) for span in order(n, start)])
    assert [one.reopened for one in (first, second, third)] == [True, True, False]
    assert (first.reopened_at, second.reopened_at) == times[1:]
    assert [one.reopens for one in (first, second, third)] == [0, 1, 2]
    spans = [*order(1), *order(2, LATER, claim="failed"), *order(3, T0 + 4 * HOUR)]
    first, second, third = judged(spans)
    assert (first.reopened_at, second.reopened, third.reopens) == (LATER, False, 1)


def test_rule_41_a_session_cut_anew_reopens_from_its_new_start() -> None:
    late = order(3, T0 + 90 * MINUTE)  # joins what comes later, and makes it begin earlier
    found = arrived(*order(1), *order(2, LATER), *late).verdicts()
    assert found["default", "c", 1].reopened_at == T0 + 90 * MINUTE


# -- 42: in another conversation ---------------------------------------------------------------------------------------

SAME: dict[str, Any] = {"subject": "s", "issues": ("i",)}


def both(first: dict[str, Any], second: dict[str, Any], pause: int = 2 * HOUR) -> list[OSpan]:
    return [
        *order(1, **{"conversation": "a", **SAME, **first}),
        *order(2, END + pause, **{"conversation": "b", **SAME, **second}),
    ]


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "the later one first"])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param({}, {}, True, id="a common issue"),
        pytest.param({"issues": ("i", "j")}, {"issues": ("j", "k")}, True, id="one of several issues"),
        pytest.param({"issues": (), "keys": {"o": (7,)}}, {"issues": (), "keys": {"o": ("7",)}}, True, id="a key"),
        pytest.param({"keys": {"o": ("7",)}, "issues": ()}, {"keys": {"o": ("7",)}}, True, id="a key, one issue"),
        pytest.param({"keys": {"o": ("7",)}}, {"keys": {"o": ("7",)}, "issues": ("j",)}, False, id="other issues"),
        pytest.param({"keys": {"o": ("7",)}, "issues": ()}, {"keys": {"p": ("7",)}, "issues": ()}, False, id="names"),
        pytest.param({"issues": ()}, {"issues": ()}, False, id="nothing in common"),
        pytest.param({}, {"issues": ()}, False, id="one of them states nothing"),
        pytest.param({"subject": ("s", "t")}, {"subject": ("t", "u")}, True, id="one of several subjects"),
        pytest.param({}, {"subject": "t"}, False, id="another subject"),
        pytest.param({"subject": ()}, {"subject": ()}, False, id="nobody that is known"),
        pytest.param({}, {"family": ("ask",)}, False, id="another family"),
        pytest.param({"family": ()}, {"family": ()}, False, id="two unknown families"),
        pytest.param({"claim": "failed"}, {}, False, id="it claimed nothing"),
        pytest.param({"claim": "completed"}, {}, True, id="it said so itself"),
        pytest.param({"conversation": None}, {}, False, id="the earlier one has no id"),
        pytest.param({}, {"conversation": None}, False, id="the later one has no id"),
    ],
)
def test_rule_42_another_conversation_of_the_subject_takes_the_claim_back(
    first: dict[str, Any], second: dict[str, Any], expected: bool, turned: bool
) -> None:
    spans = both(first, second)
    verdicts = arrived(*(reversed(spans) if turned else spans)).verdicts().values()
    early, late = sorted(verdicts, key=lambda one: one.start)
    assert early.reopened is expected
    assert (early.reopened_at, early.reopened_by) == ((late.start, "b#1") if expected else (0, ""))
    assert late.reopens_elsewhere == (("a#1",) if expected else ())
    assert (late.reopened, late.follow_up) == (False, False)


@pytest.mark.parametrize(
    ("claim", "pause", "expected"),
    [
        pytest.param(None, RESUME, False, id="assumed: at the end of the quiet time"),
        pytest.param(None, RESUME + 1, True, id="assumed: past it"),
        pytest.param("completed", RESUME, False, id="explicit: at the end of the resume window"),
        pytest.param("completed", RESUME + 1, True, id="explicit: past it"),
        pytest.param(None, WINDOW, True, id="at the end of the reopen window"),
        pytest.param(None, WINDOW + 1, False, id="past it"),
    ],
)
def test_rule_42_only_past_the_resume_window_and_within_the_reopen_window(
    claim: str | None, pause: int, expected: bool
) -> None:
    assert reopened(*both({"claim": claim}, {}, pause))["a#1"] is expected


def test_rule_42_the_windows_are_the_earlier_sessions() -> None:
    start = T0 + 4 * HOUR  # the version whose reopen window is a day, and which assumes no claim
    for pause, expected in ((24 * HOUR, True), (24 * HOUR + 1, False)):
        spans = [*order(1, start, "a", claim="completed", **SAME)]
        spans += order(2, start + 10 * SECOND + pause, "b", **SAME)
        assert reopened(*spans)["a#1"] is expected
    across = order(1, start - 2 * HOUR, "a", **SAME) + order(2, start + 40 * HOUR, "b", **SAME)
    assert reopened(*across)["a#1"] is True  # by the version in force when it started: two days


def test_rule_42_every_one_that_qualifies_is_reopened_each_by_the_earliest_return() -> None:
    said = {**SAME, "claim": "completed"}
    spans = [span for n, name in enumerate("abde") for span in order(n + 1, T0 + n * 2 * HOUR, name, **said)]
    verdicts = {one.conversation: one for one in run(spans).verdicts().values()}
    assert {name: one.reopened_by for name, one in verdicts.items()} == {"a": "b#1", "b": "d#1", "d": "e#1", "e": ""}
    assert verdicts["e"].reopens_elsewhere == ("a#1", "b#1", "d#1")


def test_rule_42_an_assumed_claim_is_taken_back_only_once_it_is_assumed() -> None:
    spans = both({}, {}, RESUME + 1)
    for late, expected in ((0, False), (1, True)):
        found = run(spans, watermark=END + RESUME + late).verdicts()["default", "a", 1]
        assert (found.claimed, found.reopened) == ("assumed" if expected else "", expected)


def test_rule_42_a_refusal_outcome_takes_no_assumed_claim_back_across_conversations() -> None:
    refusal = outcome("r", END + MINUTE, "refusal", session_id="a")
    (early, _) = sorted(run(both({}, {}), [refusal]).verdicts().values(), key=lambda one: one.start)
    assert (early.claimed, early.refused, early.reopened) == ("", True, True)
    within = [*order(1, conversation="a", **SAME), *order(2, LATER, "a", **SAME)]
    (first, _) = judged(within, [refusal], conversation="a")
    assert first.reopened is False


def test_rule_42_tenants_do_not_share_subjects() -> None:
    spans = both({}, {})
    other = [replace(one, tenant="other") if one.trace_id == trace_id(2) else one for one in spans]
    assert reopened(*other)["a#1"] is False


def test_rule_42_a_return_counts_in_both_rates_and_says_why() -> None:
    paid = outcome("paid", END + MINUTE, data={"settled": True}, session_id="a")
    before, after = run(order(1, conversation="a", **SAME), [paid]), run(both({}, {}), [paid])
    assert (before.rates()["order", "reopen"], after.rates()["order", "reopen"]) == ((0, 1), (1, 2))
    assert (before.rates()["order", "resolution"], after.rates()["order", "resolution"]) == ((1, 1), (0, 2))
    said = arrived(*order(1, conversation="a", **SAME), paid, *order(2, LATER, "b", **SAME))
    reasons = [
        row["reason"] for row in said.rows("revisions", "conversation", "revision") if row["conversation"] == "a"
    ]
    assert reasons[-1].startswith("the customer came back elsewhere: reopened")


def test_rule_42_what_is_taken_back_is_given_back_when_the_return_goes_elsewhere() -> None:
    spans = both({}, {})
    moved = span(2, 90, END + 2 * HOUR, END + 2 * HOUR, "step", None, conversation_ids=((0, "a"),))  # nearer the root
    found = arrived(*spans, moved).verdicts()
    assert [(name, one.reopened_by, one.reopened) for (_, name, _), one in sorted(found.items())] == [
        ("a", "", True),  # by its own second session
        ("a", "", False),
    ]
    fuller = [replace(one, subject=(), attribute_count=1) for one in spans if one.trace_id == trace_id(2)]
    assert reopened(*spans, *fuller) == {"a#1": False, "b#1": False}


def test_rule_42_a_late_span_moves_the_return_and_what_it_takes_back() -> None:
    spans = both({}, {})
    earlier = trace(3, END + RESUME + MINUTE, "b")  # the same session begins earlier
    early = arrived(*spans, *earlier).verdicts()["default", "a", 1]
    assert (early.reopened, early.reopened_at) == (True, END + RESUME + MINUTE)
    longer = trace(
        3, END + 90 * MINUTE, "a"
    )  # the first session ends later: the other now begins within its quiet time
    assert reopened(*spans, *trace(4, END + 50 * MINUTE, "a"), *longer)["a#1"] is False


def test_rule_42_a_session_that_is_cut_anew_keeps_what_was_said_of_it() -> None:
    before = order(3, T0 - 3 * HOUR, "a", claim="failed")  # comes late: the first session is now the second
    found = arrived(*both({}, {}), *before).verdicts()
    assert {(name, n): one.reopened_by for (_, name, n), one in found.items()} == {
        ("a", 1): "",
        ("a", 2): "b#1",
        ("b", 1): "",
    }
    assert found["default", "b", 1].reopens_elsewhere == ("a#2",)


def test_rule_42_what_one_session_has_in_common_its_neighbours_have_not() -> None:
    spans = [
        *order(1, T0, "a", subject="s", keys={"o": ("k",)}),
        *order(2, LATER, "a", subject="s", keys={"o": ("l",)}),
        *order(3, T0 + 5 * HOUR, "b", subject="s", keys={"o": ("k",)}),
    ]
    found = arrived(*spans).verdicts()
    assert found["default", "b", 1].reopens_elsewhere == ("a#1",)
    assert not found["default", "a", 2].reopened


def test_rule_42_within_and_across_the_earlier_return_says_since_when() -> None:
    spans = [*both({}, {}, 5 * HOUR), *order(3, T0 + 3 * HOUR, "a", **SAME)]
    first = arrived(*spans).verdicts()["default", "a", 1]
    assert (first.reopened_at, first.reopened_by) == (T0 + 3 * HOUR, "b#1")


# -- 43: by an outcome -------------------------------------------------------------------------------------------------

DONE = outcome("paid", END + MINUTE, data={"settled": True})


@pytest.mark.parametrize("claim", [None, "completed", "failed"])
def test_rule_43_a_reopen_outcome_counts_on_any_session_and_the_rate_asks_for_claimed_ones(claim: str | None) -> None:
    pipeline = run(order(1, claim=claim), [DONE, outcome("e", END + HOUR, "reopen")])
    (session,) = pipeline.verdicts().values()
    assert (session.reopened, session.reopened_at, session.resolved) == (True, END + HOUR, False)
    assert pipeline.rates().get(("order", "reopen")) == (None if claim == "failed" else (1, 1))
    assert pipeline.rates()["order", "resolution"] == (0, 1)


def test_rule_43_a_retracted_one_gives_the_resolution_back() -> None:
    told = outcome("e", END + HOUR, "reopen")
    (session,) = judged(order(1), [DONE, told, replace(told, kind="retract", event_version=2)])
    assert (session.reopened, session.resolved) == (False, True)


def test_rule_43_the_earliest_reason_says_since_when() -> None:
    told = outcome("e", LATER - 1, "reopen", session_id="c", ordinal=1)
    first, _ = judged([*order(1), *order(2, LATER)], [told])
    assert first.reopened_at == LATER - 1


# -- 44: who follows up ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "follows"),
    [
        pytest.param({}, {}, False, id="it reopens"),
        pytest.param({}, {"family": ("other",)}, True, id="another family"),
        pytest.param({"issues": ("i",)}, {"issues": ("k",)}, True, id="another issue"),
        pytest.param({"claim": "failed"}, {}, True, id="nothing was claimed"),
        pytest.param({"family": ()}, {"family": ()}, True, id="two unknown families are not the same"),
    ],
)
def test_rule_44_a_later_session_that_reopens_nothing_follows_up(
    first: dict[str, Any], second: dict[str, Any], follows: bool
) -> None:
    one, two = judged([*order(1, **first), *order(2, LATER, **second)])
    assert (one.follow_up, two.follow_up) == (False, follows)


def test_rule_44_a_later_session_that_reopens_one_of_another_conversation_is_no_follow_up() -> None:
    before = order(1, T0, "b", claim="failed", issues=("k",), subject="s")
    spans = [*before, *order(2, T0, "a", **SAME), *order(3, T0 + 5 * HOUR, "b", **SAME)]
    found = {(name, n): one.follow_up for (_, name, n), one in run(spans).verdicts().items()}
    assert found == {("a", 1): False, ("b", 1): False, ("b", 2): False}
    alone = {(name, n): one.follow_up for (_, name, n), one in run([*before, *spans[-3:]]).verdicts().items()}
    assert alone == {("b", 1): False, ("b", 2): True}


def test_rule_44_the_first_session_is_none_and_each_is_counted() -> None:
    times = (T0, LATER, T0 + 5 * HOUR)
    spans = [span for n, start in enumerate(times, 1) for span in order(n, start, claim="failed")]
    pipeline = run(spans)
    assert [one.follow_up for _, one in sorted(pipeline.verdicts().items())] == [False, True, True]
    states = [counts for segment, counts in pipeline.states().items() if "order" in str(segment)]
    assert sum(counts.get("follow_up", 0) for counts in states) == 2


def test_rule_44_issues_subjects_and_keys_of_all_its_traces_are_the_sessions() -> None:
    more = trace(2, T0 + MINUTE, "a", issues=("k",), keys={"o": ("7",)}, subject=("t",))
    spans = [*order(1, conversation="a", **SAME), *more]
    (first,) = judged(spans, conversation="a")
    assert (first.subjects, first.issues) == (("s", "t"), ("i", "k"))
    back = order(3, T0 + 5 * HOUR, "b", subject="t", issues=("k",))
    assert reopened(*spans, *back)["a#1"] is True


def test_rule_42_every_question_is_answered_and_event_time_goes_on() -> None:
    pipeline = run(both({}, {}))
    marks = {step.passes_on(pipeline.watermark()) for step in pipeline.judges()}
    assert marks == {pipeline.watermark()}
    assert pipeline.count(Stage.CORRELATE, "dead_lettered") == 0
