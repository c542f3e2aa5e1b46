"""Plausible mistakes in core, each of which some case must find."""

from __future__ import annotations

from dataclasses import dataclass

SESSIONS, VERDICTS = "tests/unit/core/test_sessions.py", "tests/unit/core/test_verdicts.py"


@dataclass(frozen=True)
class Mutant:
    """`old` stands once in `file` and becomes `new`; `cases` of `tests` (a pytest -k expression) must then fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    cases: str


MUTANTS = (
    Mutant(
        "a quiet session is cut at the limit already",
        "pipeline/core/judging/boundaries.py",
        "return run.start - session.end <= quiet, False",
        "return run.start - session.end < quiet, False",
        SESSIONS,
        "quiet",
    ),
    Mutant(
        "the closing grace leaves its end out",
        "pipeline/core/judging/boundaries.py",
        "if run.start - session.claim.time <= grace:",
        "if run.start - session.claim.time < grace:",
        SESSIONS,
        "closing_grace",
    ),
    Mutant(
        "the id furthest from the root is the trace's",
        "pipeline/core/resolving/state.py",
        "nearest = min(with_id",
        "nearest = max(with_id",
        SESSIONS,
        "nearest_the_root",
    ),
    Mutant(
        "the latest return is when it was reopened",
        "pipeline/core/judging/judge.py",
        "reopened_at=min(reopenings, default=0)",
        "reopened_at=max(reopenings, default=0)",
        VERDICTS,
        "earliest_return",
    ),
    Mutant(
        "a redelivered span is taken for another one",
        "pipeline/core/resolving/intake.py",
        "known = home.get(record.span_id)",
        "known = None",
        VERDICTS,
        "copy_of_a_span",
    ),
    Mutant(
        "an older statement of where a trace is wins",
        "pipeline/core/correlating/keys.py",
        "if known is not None and record.stamp < known.stamp:\n            return\n        state.statements",
        "if known is not None and record.stamp > known.stamp:\n            return\n        state.statements",
        VERDICTS,
        "id_that_comes_later",
    ),
    Mutant(
        "evidence from after the deadline counts",
        "pipeline/core/judging/attach.py",
        "known = [one for one in values if one.time <= until]",
        "known = list(values)",
        VERDICTS,
        "up_to_the_deadline",
    ),
    Mutant(
        "nothing refutes a check before its deadline",
        "pipeline/core/judging/criteria.py",
        "if may_fail and criterion.fails_when is not None",
        "if False and criterion.fails_when is not None",
        VERDICTS,
        "refutes",
    ),
    Mutant(
        "of equal versions the first to come holds",
        "schemas/outcome.py",
        "return self.event_version, self.kind is OutcomeKind.RETRACT, self.digest",
        'return self.event_version, False, b""',
        VERDICTS,
        "retraction_wins",
    ),
    Mutant(
        "what is retracted stays where it was",
        "pipeline/core/correlating/identities.py",
        'for target in sorted({conversation, known.conversation} - {""}):',
        'for target in sorted({conversation} - {""}):',
        VERDICTS,
        "retraction_wins",
    ),
    Mutant(
        "refused sessions stay in the denominators",
        "pipeline/core/judging/judge.py",
        "        and not case.refused\n",
        "",
        VERDICTS,
        "refused_session",
    ),
    Mutant(
        "evidence by key reaches the last session only",
        "pipeline/core/judging/attach.py",
        "found.update(holds if outcome.kind is OutcomeKind.EVIDENCE else holds[-1:])",
        "found.update(holds[-1:])",
        VERDICTS,
        "evidence_by_key",
    ),
    Mutant(
        "a deadline is over when it is reached",
        "pipeline/core/judging/criteria.py",
        "decided = watermark > limit if",
        "decided = watermark >= limit if",
        VERDICTS,
        "pending_up_to_its_deadline",
    ),
    Mutant(
        "nine links of a trace are followed",
        "pipeline/core/resolving/leads.py",
        "MOST_LINKS = 8",
        "MOST_LINKS = 9",
        "tests/unit/core/rules/test_rules_05_to_08_traces.py",
        "eight_smallest or ninth",
    ),
    Mutant(
        "a nested hand-off that failed does not matter",
        "pipeline/core/judging/calls.py",
        "if any(one.failed for one in nested):\n                state",
        "if span.failed:\n                state",
        "tests/unit/core/rules/test_rules_19_to_22_ends.py",
        "nested_spans_of_one_hand_off",
    ),
)
