"""Plausible mistakes in contracts, criteria, causes, scores and means."""

from __future__ import annotations

from tests.mutants.mutants import Mutant

CRITERIA = "tests/unit/core/rules/test_rules_23_to_29_criteria.py"
VERSIONS = "tests/unit/core/rules/test_rules_30_to_31_completion.py"
REFUSALS = "tests/unit/core/contracts/test_rule_26_refusals.py"
EVALUATIONS = "tests/unit/core/quality/test_evaluations.py"
CAUSES = "tests/unit/core/quality/test_causes.py"
CALLS = "tests/unit/core/quality/test_expected_tool_calls.py"
MEANS = "tests/unit/core/quality/test_means.py"
SETTLED = "tests/unit/core/quality/test_settled.py"

CONTRACT_MUTANTS = (
    Mutant(
        "what does not apply counts against the score",
        "pipeline/core/judging/judge.py",
        "applicable = [one for one in criteria if one.status is not Status.NOT_APPLICABLE]",
        "applicable = list(criteria)",
        CRITERIA,
        "counts_neither_way",
    ),
    Mutant(
        "an unknown condition takes a criterion away",
        "pipeline/core/judging/criteria.py",
        "criterion.applies.holds(now) is Truth.FALSE",
        "criterion.applies.holds(now) is not Truth.TRUE",
        CRITERIA,
        "only_false_makes",
    ),
    Mutant(
        "what an agent sends is evidence",
        "pipeline/core/judging/attach.py",
        "if outcome.barred or (outcome.from_agent and outcome.kind is not OutcomeKind.EVALUATION):",
        "if outcome.barred:",
        CRITERIA,
        "agents_own",
    ),
    Mutant(
        "a version takes effect a moment late",
        "pipeline/core/contracts/book.py",
        "index = bisect_right([one.effective_from for one in versions], moment)",
        "index = bisect_right([one.effective_from for one in versions], moment - 1)",
        VERSIONS,
        "in_force_at_the_start",
    ),
    Mutant(
        "a contract that comes later judges nothing anew",
        "pipeline/core/judging/judged_by.py",
        "if ends and max(ends) > since:",
        "if ends and max(ends) < since:",
        VERSIONS,
        "comes_later_judges",
    ),
    Mutant(
        "what came while nobody ran is taken as known",
        "pipeline/core/judging/judged_by.py",
        "self._known = frozenset(_decode(state))",
        "self._known = frozenset(_mark(one) for one in self._book)",
        VERSIONS,
        "judges_anew_when_it_is_back",
    ),
    Mutant(
        "a settled session is judged by whatever is in force",
        "pipeline/core/judging/packed.py",
        'book.named(f"{name}@{version}") if version else None',
        "book.in_force(name, start) if name else None",
        SETTLED,
        "keeps_the_contract",
    ),
    Mutant(
        "silence verifies",
        "pipeline/core/contracts/checks.py",
        'compiled.holds({"evidence": {}}) is Truth.TRUE',
        'compiled.holds({"evidence": {}}) is None',
        REFUSALS,
        "silence",
    ),
    Mutant(
        "an evaluator that failed scores zero",
        "pipeline/core/judging/quality.py",
        "score=float(score) if score is not None and state is Scoring.SCORED else None",
        "score=float(score or 0)",
        EVALUATIONS,
        "never_a_zero",
    ),
    Mutant(
        "the latest cause is told",
        "pipeline/core/judging/causes.py",
        "return min(found, key=lambda one: one[:2])[2]",
        "return max(found, key=lambda one: one[:2])[2]",
        CAUSES,
        "the_earlier_and_of_equal_ones",
    ),
    Mutant(
        "any tool is the cause of anything",
        "pipeline/core/judging/causes.py",
        'return one.what != "tool" or any(',
        'return one.what != "" or any(',
        CAUSES,
        "names_its_tools",
    ),
    Mutant(
        "what broke is the cause of what others say",
        "pipeline/core/judging/causes.py",
        "if done:  # something",
        "if failed:  # something",
        CAUSES,
        "cause_of_what_others_say",
    ),
    Mutant(
        "a call made twice is as good as one",
        "pipeline/core/judging/trials.py",
        "matched = (wanted & made).total()",
        "matched = sum(n for tool, n in made.items() if tool in wanted)",
        CALLS,
        "precision_and_recall",
    ),
    Mutant(
        "what is revised stays in the mean",
        "pipeline/core/judging/fold.py",
        "_add_mean(counts.means, place, sign, sign * value)",
        "_add_mean(counts.means, place, max(sign, 0), max(sign, 0) * value)",
        MEANS,
        "leaves_the_mean",
    ),
)
