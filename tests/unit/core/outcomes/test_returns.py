"""The loop between stages 3 and 4: every question about a subject's sessions is answered, and none is left behind."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeline.core.correlating.step import CorrelateStep
from pipeline.core.judging.step import JudgeStep
from pipeline.core.timeline import DAY, HOUR, MINUTE, SECOND, TimeRules
from schemas.contact import Contact, Contacts, Link, Reached, Returns
from schemas.outcome import Attached
from schemas.span import TraceGone, TraceSpans
from schemas.topics import Topic
from schemas.verdict import Verdict
from tests.builders import T0, arrival, outcome, outcome_arrival, trace
from tests.oracle.model import OSpan
from tests.property.compare import asked_oracle, differences, expected, of_verdict
from tests.property.contracts import BOOK
from tests.property.driver import Pipeline
from tests.property.worlds import World

RULES = TimeRules()
END = T0 + 10 * SECOND
SAME: dict[str, Any] = {"subject": "s", "issues": ("i",), "family": ("order",)}


# -- stage 3 -----------------------------------------------------------------------------------------------------------


def correlating() -> CorrelateStep:
    step = CorrelateStep(0, 1, RULES)
    step.opened(0)
    step.caught_up()
    return step


def contact(number: int, start: int, after: int = 0, until: int = 0) -> Contact:
    return Contact(1, number.to_bytes(16), start, "order", ("i",), (), after, until)


def told(step: CorrelateStep, conversation: str, stamp: int, *sessions: Contact) -> list[Returns]:
    """What stage 3 says to whom when a conversation tells of its sessions."""
    step.apply([Contacts("default", "s", conversation, stamp, sessions)])
    sent, _ = step.outbox.take()
    return sent.get((Topic.SESSION_EVENTS, 0), [])


CLAIMED = contact(1, T0, T0 + HOUR, T0 + 48 * HOUR)
RETURN = contact(2, T0 + 2 * HOUR)


def test_who_tells_of_sessions_is_answered_at_once_though_nobody_came_back() -> None:
    (answer,) = told(correlating(), "a", 7, CLAIMED)
    assert (answer.conversation, answer.of, answer.reopened, answer.reopens) == ("a", 7, (), ())


def test_both_sides_hear_of_a_return_and_again_only_of_what_changes() -> None:
    step = correlating()
    told(step, "a", 1, CLAIMED)
    found = {one.conversation: one for one in told(step, "b", 2, RETURN)}
    assert found["a"].reopened == (Link(CLAIMED.trace_id, RETURN.start, "b", 1),)
    assert found["b"].reopens == (Link(RETURN.trace_id, RETURN.start, "a", 1),)
    assert [one.conversation for one in told(step, "b", 3, RETURN)] == ["b"]
    gone = {one.conversation: one for one in told(step, "b", 4)}
    assert (gone["a"].reopened, gone["b"].reopens) == ((), ())
    assert found["a"].stamp < gone["a"].stamp


def test_what_was_told_before_changes_nothing() -> None:
    step = correlating()
    told(step, "a", 1, CLAIMED)
    told(step, "b", 3)
    assert told(step, "b", 2, RETURN) == []
    assert told(step, "c", 1, contact(3, T0 + 49 * HOUR))[0].reopens == ()


def test_what_was_kept_gives_the_same_answers_after_a_restore() -> None:
    step = correlating()
    told(step, "a", 1, CLAIMED)
    changed = step.changed()
    other = CorrelateStep(0, 1, RULES)
    for key, state in changed.states:
        other.load(key, state)
    other.opened(0)
    other.caught_up()
    other.versions.restores = 1
    assert {one.conversation for one in told(other, "b", 2, RETURN)} == {"a", "b"}


def test_what_a_dead_worker_may_have_said_is_said_again_while_its_input_is_read_again() -> None:
    step = CorrelateStep(0, 1, RULES)
    step.opened(0)
    told(step, "a", 1, CLAIMED)
    told(step, "b", 2, RETURN)
    assert {one.conversation for one in told(step, "b", 2, RETURN)} == {"a", "b"}
    step.caught_up()
    assert {one.conversation for one in told(step, "b", 2, RETURN)} == {"b"}


def test_a_subject_is_forgotten_when_nothing_of_it_can_count_any_more() -> None:
    step = correlating()
    told(step, "a", 1, CLAIMED)
    told(step, "b", 2, RETURN)
    told(step, "c", 3)
    for moment, left in ((RETURN.start, 2), (RETURN.start + 1, 1), (CLAIMED.until, 1), (CLAIMED.until + 1, 0)):
        step.advance(moment + RULES.retention)
        assert step.known_subjects() == left
    assert len(step.changed().gone) == 3


def test_an_outcome_that_nobody_answered_for_yet_does_not_expire() -> None:
    step = correlating()
    step.apply([outcome_arrival(outcome("e", T0, session_id="c"))])
    step.advance(T0 + 40 * DAY)
    assert step.waiting_outcomes() == 1
    step.apply([Reached("default", "crm", "e", "c", 1, True)])
    step.advance(T0 + 41 * DAY)
    sent, counts = step.outbox.take()
    assert step.waiting_outcomes() == 0
    assert not [1 for (topic, _) in sent if topic is Topic.DEAD_LETTERS]
    assert ("dead_lettered", "no_session") not in counts


def test_of_one_conversation_the_latest_word_about_an_outcome_holds() -> None:
    step = correlating()
    step.apply([outcome_arrival(outcome("e", T0, session_id="c"))])
    step.apply([Reached("default", "crm", "e", "c", 2, True), Reached("default", "crm", "e", "c", 1, False)])
    assert step.waiting_outcomes() == 0
    step.apply([Reached("default", "crm", "e", "c", 3, False)])
    assert step.waiting_outcomes() == 1


# -- stage 4 -----------------------------------------------------------------------------------------------------------


def records(spans: list[OSpan], conversation: str, stamp: int = 1) -> list[TraceSpans]:
    """The spans as stage 2 sends them, a trace each."""
    found: dict[bytes, list[tuple[bytes, int, bytes]]] = {}
    for one in map(arrival, spans):
        found.setdefault(one.trace_id, []).append((one.span_id, one.record_time, one.body))
    return [TraceSpans("default", conversation, trace_id, stamp, held) for trace_id, held in found.items()]


def judging(replaying: bool = False) -> JudgeStep:
    step = JudgeStep(0, 1, BOOK, RULES)
    step.opened(0)
    if not replaying:
        step.caught_up()
    return step


def asked(step: JudgeStep) -> list[Contacts]:
    """What was told of sessions since the last cut."""
    step.publish()
    sent, _ = step.outbox.take()
    return [one for one in sent.get((Topic.CORRELATIONS, 0), []) if isinstance(one, Contacts)]


def answered(question: Contacts, stamp: int = 1, *reopened: Link) -> Returns:
    return Returns("default", question.conversation, question.subject, stamp, question.stamp, reopened, ())


def test_event_time_is_held_where_it_was_when_a_question_was_asked_until_it_is_answered() -> None:
    step = judging()
    step.advance(END)
    step.apply(records(trace(1, T0, "c", **SAME), "c"))
    (question,) = asked(step)
    step.advance(END + MINUTE)
    assert step.passes_on(END + MINUTE) == END
    step.apply([answered(question)])
    assert step.passes_on(END + MINUTE) == END + MINUTE


def test_an_answer_to_an_earlier_question_does_not_release_a_later_one() -> None:
    step = judging()
    step.advance(END)
    step.apply(records(trace(1, T0, "c", **SAME), "c"))
    (first,) = asked(step)
    step.advance(END + MINUTE)
    step.apply(records(trace(2, T0 + MINUTE, "c", issues=("j",)), "c"))
    (second,) = asked(step)
    step.advance(END + 2 * MINUTE)
    step.apply([answered(first)])
    assert step.passes_on(END + 2 * MINUTE) == END + MINUTE
    step.apply([answered(second, 2)])
    assert step.passes_on(END + 2 * MINUTE) == END + 2 * MINUTE


def test_a_question_is_still_open_for_whoever_takes_the_partition_over() -> None:
    step = judging()
    step.advance(END)
    step.apply(records(trace(1, T0, "c", **SAME), "c"))
    (question,) = asked(step)
    other = JudgeStep(0, 1, BOOK, RULES)
    for key, state in step.changed().states:
        other.load(key, state)
    other.opened(END)
    other.advance(END + MINUTE)
    assert other.passes_on(END + MINUTE) == END
    other.apply([answered(question)])
    assert other.passes_on(END + MINUTE) == END + MINUTE


def test_what_others_cannot_have_anything_in_common_with_is_not_told() -> None:
    for said in ({**SAME, "subject": None}, {**SAME, "issues": ()}, {**SAME, "family": ()}):
        step = judging()
        step.apply(records(trace(1, T0, "c", **said), "c"))
        assert asked(step) == []
    step = judging()
    step.apply(records(trace(1, T0, "c", **SAME), "trace:1"))
    assert asked(step) == []


def test_more_spans_of_an_open_session_ask_nothing_anew() -> None:
    step = judging()
    step.apply(records(trace(1, T0, "c", **SAME), "c"))
    assert len(asked(step)) == 1
    step.apply(records(trace(2, T0 + MINUTE, "c"), "c"))
    assert asked(step) == []


def test_a_subject_that_a_dead_worker_told_of_and_that_is_gone_is_taken_back() -> None:
    step = judging(replaying=True)
    (spans,) = records(trace(1, T0, "c", **SAME), "c")
    step.apply([spans, TraceGone("default", "c", spans.trace_id, 2)])
    step.caught_up()
    (told,) = asked(step)
    assert (told.subject, told.sessions) == ("s", ())


def test_an_answer_to_another_cut_than_the_present_reopens_nothing() -> None:
    step = judging()
    step.apply(records(trace(1, T0, "c", claim="completed", **SAME), "c"))
    (question,) = asked(step)
    before_the_end = Link((1).to_bytes(16), END - 1, "b", 1)
    step.apply([answered(question, 1, before_the_end)])
    step.publish()
    assert not verdict(step).reopened
    step.apply([answered(question, 2, Link((1).to_bytes(16), END + 2 * HOUR, "b", 1))])
    step.publish()
    assert (verdict(step).reopened, verdict(step).reopened_by) == (True, "b#1")
    step.apply([answered(question, 1)])  # an older answer
    step.publish()
    assert verdict(step).reopened


def verdict(step: JudgeStep) -> Verdict:
    (conversation,) = step.conversations.values()
    return msgspec.msgpack.decode(conversation.published[0].verdict, type=Verdict)


def test_whoever_attaches_an_outcome_is_answered_each_time() -> None:
    step = judging()
    one = outcome_arrival(outcome("e", END, "reopen")).outcome
    for stamp, answer in ((1, False), (2, False)):
        step.apply([Attached("default", "c", "crm", "e", ("session", ""), stamp, one)])
        assert reached(step) == [answer]
    step.apply(records(trace(1, T0, "c"), "c"))
    assert reached(step) == [True]
    step.apply(records(trace(2, T0 + MINUTE, "c"), "c"))
    assert reached(step) == []


def reached(step: JudgeStep) -> list[bool]:
    step.publish()
    sent, _ = step.outbox.take()
    return [one.reached for one in sent.get((Topic.CORRELATIONS, 0), []) if isinstance(one, Reached)]


# -- all of it ---------------------------------------------------------------------------------------------------------


def test_a_session_that_has_settled_is_reopened_by_a_return_that_arrives_late() -> None:
    first, back = trace(1, T0, "a", **SAME), trace(2, T0 + 40 * HOUR, "b", **SAME)
    pipeline = Pipeline(2)
    pipeline.feed(first, END)
    pipeline.feed([], T0 + 80 * HOUR)  # it has settled; what comes now has not
    pipeline.feed(back, T0 + 80 * HOUR)
    world = World((*first, *back), (), T0 + 90 * HOUR)
    pipeline.feed([], world.watermark)
    pipeline.finish()
    ours = {key: of_verdict(one) for key, one in pipeline.verdicts().items()}
    assert not differences(ours, expected(asked_oracle(world)))
    assert pipeline.verdicts()["default", "a", 1].reopened_by == "b#1"


def test_a_subject_that_thousands_share_costs_a_few_looks_a_session() -> None:
    step, answers = correlating(), 0
    for number in range(1, 2001):
        start = T0 + number * MINUTE
        session = contact(number, start, start + HOUR, start + 48 * HOUR)
        answers += len(told(step, f"c{number}", number, session))
    assert answers <= 3 * 2000  # its own answer, and one to whom it is the earliest return
