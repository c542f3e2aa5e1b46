"""A verdict and the oracle's session in the same words."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

from msgspec import structs

from pipeline.core.correlating import keys
from pipeline.core.judging.rows import as_json
from schemas.verdict import Verdict
from tests.builders import settings
from tests.oracle.counting import observed_rates
from tests.oracle.model import OSession
from tests.oracle.model import World as Answer
from tests.oracle.world import judge_world
from tests.property.contracts import ORACLE_CONTRACTS
from tests.property.driver import Sums
from tests.property.worlds import RULES, SOURCES_THAT_MAY_SAY, World

SETTINGS = replace(settings(RULES), outcome_sources=SOURCES_THAT_MAY_SAY)
SOURCES = {"none": "no_contract", "ambiguous": "ambiguous_contract"}
FLAGS = {"start_from_record": "record_time", "clamped": "record_time"}
"""Flags of clocks, which the two sides name differently; who is clamped has its record's time."""
OF_ONE_SENDING = ("version", "revision", "as_of", "reason")
ONLY_IN_THE_ORACLE = frozenset({"claimed_completion_explicit", "claimed_completion_assumed"})

Key = tuple[str, str, int]
Said = dict[str, Any]


def asked_oracle(world: World) -> Answer:
    """The definitions on this world: all of it that no longer waits for an id."""
    held = world.held
    spans = [one for one in world.spans if one.trace_id not in held]
    told = replace(SETTINGS, too_broad_traces=keys.MOST_TRACES, max_spans_per_trace=world.most)  # the laws have fewer
    return judge_world(spans, world.outcomes, ORACLE_CONTRACTS, told, world.reached)


def expected(answer: Answer) -> dict[Key, Said]:
    return {one.key: of_oracle(one) for one in answer.sessions}


def of_oracle(one: OSession) -> Said:
    def at_least_end(moment: int | None) -> int:
        return 0 if moment is None else max(one.end, moment)

    claimed = "assumed" if one.claim.assumed else "explicit" if one.claim.completed else ""
    return {
        "start": one.start,
        "end": one.end,
        "trace_ids": one.trace_ids,
        "runs": one.runs,
        "turns": one.turns,
        "attributed": one.attributed,
        "family": one.family or "",
        "family_source": SOURCES.get(one.family_state, one.family_state),
        "contract": f"{one.family}@{one.contract_version}" if one.contract_version is not None else "",
        "claim": one.claim.value or "",
        "claimed": claimed,
        "claimed_at": one.claim.time or 0,
        "terminal": one.terminal,
        "terminal_reason": one.terminal_reason or "",
        "completion": one.completion or "",
        "completed_at": one.completed_at or 0,
        "criteria": {
            name: (status, reason, at or 0, one.failed_at.get(name, 0), name in one.raising)
            for name, (status, reason, at) in one.criteria.items()
        },
        "verified": one.verified,
        "verified_at": one.verified_at or 0,
        "score": one.score,
        "escalated": one.escalated,
        "escalated_at": at_least_end(one.escalated_at),
        "handoff_attempted": one.handoff_attempted,
        "handoff_at": at_least_end(one.handoff_attempted_at),
        "reopened": one.reopened,
        "reopened_at": one.reopened_at or 0,
        "reopens": max((ordinal for name, ordinal in one.reopens if name == one.conversation), default=0),
        "reopens_elsewhere": tuple(sorted(f"{c}#{ordinal}" for c, ordinal in one.reopens if c != one.conversation)),
        "follow_up": one.follow_up,
        "confirmed": one.confirmed if one.answered else None,
        "refused": one.refused,
        "refused_claimed": one.refused_claimed,
        "invalid": one.invalid,
        "eligible": one.eligible,
        "resolved": one.eligible and one.resolved,
        "resolution_failed_at": at_least_end(one.resolution_failed_at),
        "tool_calls": len(one.tools_ok) + len(one.tools_failed),
        "tool_calls_ok": len(one.tools_ok),
        "issues": tuple(sorted(one.issues)),
        "subjects": tuple(sorted(one.subjects)),
        "flags": tuple(sorted({FLAGS.get(flag, flag) for flag in one.flags})),
        "retries": one.retries,
        "tokens": (one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens),
        "quality": (one.goal_achievement, one.goal_state, one.coherence, one.coherence_state, one.contradictions,
                    one.layers, one.feedback),
        "evaluations": tuple(
            (e.name, e.state, None if e.score is None else float(e.score), e.normal, e.label, e.layer, e.at)
            for e in sorted(one.evaluations.values(), key=lambda e: e.name)
        ),
        "failure": None if one.failure is None else astuple(one.failure),
        "trial": None if one.trial is None else astuple(one.trial),
    }  # fmt: skip


def of_verdict(one: Verdict) -> Said:
    said = {name: getattr(one, name) for name in FIELDS if name != "evaluations"}
    said["criteria"] = {
        each.id: (each.status.value, each.reason.value, each.passed_at, each.failed_at, each.raises)
        for each in one.criteria
    }
    said["flags"] = tuple(flag for flag in one.flags if flag != "clamped")
    quality = one.quality
    said["quality"] = (
        quality.goal_achievement, quality.goal_state.value, quality.coherence, quality.coherence_state.value,
        quality.contradictions, quality.layers, quality.feedback,
    )  # fmt: skip
    said["evaluations"] = tuple(
        (each.name, each.state.value, each.score, each.normal, each.label, each.layer, each.at)
        for each in sorted(quality.evaluations, key=lambda each: each.name)
    )
    said["failure"] = None if one.failure is None else (one.failure.stage.value, *structs.astuple(one.failure)[1:])
    said["trial"] = None if one.trial is None else structs.astuple(one.trial)
    said["completion"] = one.completion.value
    return said


FIELDS = tuple(of_oracle(OSession("", "", 1, 0, 0, True, None, "none", None)))


def differences(ours: dict[Key, Said], theirs: dict[Key, Said]) -> list[str]:
    """What differs, in words; first the pipeline's, then the oracle's."""
    found = [f"only the pipeline has {key}" for key in ours.keys() - theirs.keys()]
    found += [f"only the oracle has {key}" for key in theirs.keys() - ours.keys()]
    for key in sorted(ours.keys() & theirs.keys()):
        for name in FIELDS:
            if ours[key][name] != theirs[key][name]:
                found.append(f"{key[1]}#{key[2]} {name}: {ours[key][name]!r} != {theirs[key][name]!r}")
    return found


def document(one: Verdict) -> Said:
    """The public document of a verdict, without what differs from one sending of it to the next."""
    return without_sending(msgspec_json(one))


def without_sending(document: Said) -> Said:
    return {name: value for name, value in document.items() if name not in OF_ONE_SENDING}


def msgspec_json(one: Verdict) -> Said:
    import json

    found: Said = json.loads(as_json(one))
    return found


def expected_rates(answer: Answer) -> dict[tuple[str, str], tuple[int, int]]:
    """Of the sessions that have ended; rows without denominator are left out."""
    found = observed_rates([one for one in answer.sessions if one.terminal])
    return {key: (int(good), int(n)) for key, (good, n) in found.items() if n and key[1] not in ONLY_IN_THE_ORACLE}


def expected_sums(answer: Answer) -> tuple[Sums, dict[tuple[str, str], int]]:
    """Means, and what failed, of the sessions that have ended."""
    return answer.means, answer.failures
