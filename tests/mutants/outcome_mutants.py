"""Plausible mistakes about outcomes and about customers who come back, each of which some case must find."""

from __future__ import annotations

from tests.mutants.mutants import Mutant

CASES = "tests/unit/core/outcomes/"
REACH = f"{CASES}test_rules_35_to_37_reach.py"
COUNTING = f"{CASES}test_rules_38_to_40_counting.py"
REOPENS = f"{CASES}test_rules_41_to_44_reopens.py"
LOOP = f"{CASES}test_returns.py"
CORRELATING, JUDGING = "pipeline/core/correlating/", "pipeline/core/judging/"

OUTCOME_MUTANTS = (
    Mutant(
        "a claim is taken back elsewhere as soon as its session has ended",
        f"{JUDGING}reopen.py",
        "return claimed.summary.end + pause, claimed.summary.end + window",
        "return claimed.summary.end, claimed.summary.end + window",
        REOPENS,
        "only_past_the_resume_window",
    ),
    Mutant(
        "a return elsewhere at the end of the reopen window comes too late",
        f"{CORRELATING}meeting.py",
        "if after.start > before.until:",
        "if after.start >= before.until:",
        REOPENS,
        "only_past_the_resume_window",
    ),
    Mutant(
        "different issues do not matter where a key is common",
        f"{CORRELATING}meeting.py",
        "return not before.issues or not after.issues or not set(before.issues).isdisjoint(after.issues)",
        "return True",
        REOPENS,
        "another_conversation_of_the_subject",
    ),
    Mutant(
        "keys of one name are the same whatever their value",
        f"{CORRELATING}meeting.py",
        '(session.family, "key", *key)',
        '(session.family, "key", key[0])',
        REOPENS,
        "has_in_common",
    ),
    Mutant(
        "a conversation hears only of what it asked",
        f"{CORRELATING}returns.py",
        "for name in sorted(touched):",
        "for name in ():",
        LOOP,
        "both_sides_hear",
    ),
    Mutant(
        "a refusal outcome takes the claim back across conversations",
        f"{JUDGING}reopen.py",
        "if not claimed.by_spans:",
        "if not claimed.how:",
        REOPENS,
        "refusal_outcome",
    ),
    Mutant(
        "who reopens a session elsewhere follows up",
        f"{JUDGING}judge.py",
        "follow_up=index > 0 and answered is None and not taken_back,",
        "follow_up=index > 0 and answered is None,",
        REOPENS,
        "is_no_follow_up",
    ),
    Mutant(
        "event time goes on while a question is open",
        f"{JUDGING}telling.py",
        "return min(watermark, asked_at)",
        "return watermark",
        LOOP,
        "event_time_is_held",
    ),
    Mutant(
        "what a dead worker told of a subject stays",
        f"{JUDGING}telling.py",
        "subjects |= self._seen.get(key, set())",
        "pass",
        LOOP,
        "dead_worker_told_of",
    ),
    Mutant(
        "a key is too broad at two hundred traces",
        f"{CORRELATING}keys.py",
        "if len(begun) > MOST_TRACES:",
        "if len(begun) >= MOST_TRACES:",
        REACH,
        "more_than_two_hundred",
    ),
    Mutant(
        "clocks that differ do not matter where a key leads",
        f"{CORRELATING}keys.py",
        "begun_by = outcome.event_time + max_clock_skew",
        "begun_by = outcome.event_time",
        REACH,
        "another_kind_goes_to_one_session",
    ),
    Mutant(
        "a key that a better copy no longer states still leads there",
        "pipeline/core/resolving/membership.py",
        "dropped = set(trace.keys) - stated",
        "dropped = set()",
        REACH,
        "no_longer_too_broad",
    ),
    Mutant(
        "an outcome expires though a session has it",
        f"{CORRELATING}identities.py",
        "            if known.waits:\n",
        "            if True:\n",
        REACH,
        "by_one_of_its_keys",
    ),
    Mutant(
        "an outcome expires before anybody has answered",
        f"{CORRELATING}identities.py",
        "if not known.answered:",
        "if False:",
        LOOP,
        "nobody_answered_for_yet",
    ),
    Mutant(
        "an outcome goes to the first session begun",
        f"{JUDGING}attach.py",
        "found.update(begun[-1:])",
        "found.update(begun[:1])",
        REACH,
        "a_conversation_its_ordinal_and_a_trace",
    ),
    Mutant(
        "an agent's own word is evidence",
        f"{JUDGING}attach.py",
        "if outcome.barred or (outcome.from_agent and outcome.kind is not OutcomeKind.EVALUATION):",
        "if outcome.barred:",
        COUNTING,
        "agents_own_source",
    ),
    Mutant(
        "a reopen outcome counts as long as evidence does",
        f"{JUDGING}judge.py",
        "proof.of(OutcomeKind.REOPEN, window)",
        "proof.of(OutcomeKind.REOPEN, horizon)",
        COUNTING,
        "deadline_past_the_window",
    ),
    Mutant(
        "the customer's first answer holds",
        f"{JUDGING}judge.py",
        'confirmed = bool(answers[-1].data["confirmed"])',
        'confirmed = bool(answers[0].data["confirmed"])',
        COUNTING,
        "latest_answer",
    ),
    Mutant(
        "what begins before a session has ended takes its claim back",
        f"{JUDGING}reopen.py",
        "if pause <= 0 or pause >",
        "if pause >",
        REOPENS,
        "before_a_session_has_ended",
    ),
    Mutant(
        "an outcome revises what has sealed",
        f"{JUDGING}gate.py",
        "        if not conversation.sealed:\n            return False\n",
        "        return False\n",
        "tests/unit/core/rules/test_rule_48_sealing.py",
        "sealed_session_changes_nothing",
    ),
    Mutant(
        "a number holds before a later label",
        f"{JUDGING}quality.py",
        "if known is None or read.state is Scoring.SCORED or",
        "if known is None or read.score is not None or",
        "tests/unit/core/quality/test_evaluations.py",
        "latest_that_is_scored",
    ),
)
