"""Plausible mistakes about cuts, revisions, settling and sealing, each of which some case must find."""

from __future__ import annotations

from tests.mutants.mutants import Mutant

REVISIONS, JUDGING = "tests/unit/core/test_revisions.py", "tests/unit/core/test_judging.py"
BOUNDARIES = "tests/unit/core/rules/test_rules_09_to_14_boundaries.py"
FOLDING = "tests/unit/core/test_folding.py"
CORE = "pipeline/core/judging/"

REVISION_MUTANTS = (
    Mutant(
        "a bucket settles at the limit already",
        f"{CORE}accept.py",
        "return watermark > self.settled_at(end)",
        "return watermark >= self.settled_at(end)",
        JUDGING,
        "up_to_the_moment_it_settles",
    ),
    Mutant(
        "lateness does not keep a bucket open",
        f"{CORE}accept.py",
        "        + rules.lateness\n",
        "",
        "tests/property/test_law_of_time.py",
        "when_the_definitions_say",
    ),
    Mutant(
        "what restates a settled bucket is not told apart",
        f"{CORE}publish.py",
        "if before is not None and before.terminal and self._guard.is_settled(before.end, watermark):",
        "if False:",
        REVISIONS,
        "restates_a_settled_bucket",
    ),
    Mutant(
        "an open session's changes are revisions",
        f"{CORE}publish.py",
        "revision = known.revision + (1 if judged else 0)",
        "revision = known.revision + 1",
        REVISIONS,
        "each_revision_is_kept",
    ),
    Mutant(
        "what is withdrawn still counts",
        f"{CORE}publish.py",
        "            self._fold.add(known.contribution, -1)\n",
        "            pass\n",
        BOUNDARIES,
        "withdraws_the_second or the_rows_follow",
    ),
    Mutant(
        "an ordinal that is left over is not withdrawn",
        f"{CORE}publish.py",
        "gone = Verdict(conversation.tenant, conversation.name, index + 1, deleted=True)",
        "continue",
        BOUNDARIES,
        "withdraws_the_second",
    ),
    Mutant(
        "an ordinal that comes back is counted anew",
        f"{CORE}publish.py",
        'conversation.published[index] = Published(revision, digest, b"" if verdict.deleted else content, added)',
        "conversation.published[index] = Published(0 if verdict.deleted else revision, digest, "
        'b"" if verdict.deleted else content, added)',
        REVISIONS,
        "goes_on_counting",
    ),
    Mutant(
        "an inherited family cuts like one of its own",
        f"{CORE}boundaries.py",
        'session.family.name if session.family.source in (FamilySource.STATED, FamilySource.DERIVED) else ""',
        "session.family.name",
        BOUNDARIES,
        "inherited_family",
    ),
    Mutant(
        "what waits is resumed after a claim, too",
        f"{CORE}boundaries.py",
        "if session.claim is None and _resumes(",
        "if _resumes(",
        BOUNDARIES,
        "claim_ends_the_wait",
    ),
    Mutant(
        "what an hour is folded from counts beside it",
        "pipeline/core/judging/fold.py",
        "counts.setdefault(home, BucketCounts()), counts.pop(key))",
        "counts.setdefault(home, BucketCounts()), counts[key])",
        FOLDING,
        "after_a_restart",
    ),
    Mutant(
        "an hour replaces its first bucket only",
        "pipeline/core/measuring/buckets.py",
        "if _overlap(one, partial)]",
        "if one.bucket == partial.bucket]",
        FOLDING,
        "one_after_another",
    ),
    Mutant(
        "the store keeps the buckets that were folded",
        "pipeline/core/measuring/step.py",
        "self.watermark, deleted=True)",
        "self.watermark, deleted=False)",
        FOLDING,
        "one_after_another",
    ),
    Mutant(
        "what was first published is not folded",
        "pipeline/core/measuring/buckets.py",
        "if any(part.first is not None for part in parts):",
        "if all(part.first is None for part in parts):",
        FOLDING,
        "one_after_another",
    ),
    Mutant(
        "a window begins within a folded hour",
        "pipeline/core/windows.py",
        "return hour_of(moment, rules) if moment < folded_before(watermark + rules.folded_bucket, rules) else moment",
        "return moment",
        FOLDING,
        "begins_within_an_hour",
    ),
    Mutant(
        "a longer horizon opens what has settled",
        f"{CORE}accept.py",
        "return min([bucket_end + self._after, *earlier])",
        "return bucket_end + self._after",
        "tests/unit/core/rules/test_rule_48_settling.py",
        "opens_nothing_again",
    ),
    Mutant(
        "a revision names all that came",
        f"{CORE}publish.py",
        "reason=reason(inputs.of(index, earlier, verdict), changed)",
        "reason=reason(conversation.causes, changed)",
        "tests/unit/core/rules/test_reasons.py",
        "are_its_own",
    ),
)
