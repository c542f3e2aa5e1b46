"""Rules 9 to 15: the family and the explicit claim of some runs, and where a conversation is cut into sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tests.oracle.calls import run_waits_for
from tests.oracle.chains import OConversation
from tests.oracle.expressions import evaluate, variables_of
from tests.oracle.model import OContract, ORun, OSettings, OSpan, OTrace
from tests.oracle.parts import OClaim, OFamily
from tests.oracle.spans import end_of_trace, ended_last, leaves, nearest_root_first, plain_id, start_of_trace

CLAIMS = frozenset({"completed", "escalated", "refused", "failed"})


@dataclass(frozen=True)
class OWindows:
    """The time limits in force for a session: its contract's, else the settings'."""

    resume: int
    grace: int
    wait: int
    reopen: int
    horizon: int
    quiet: int
    """max(session gap, resume window)."""


@dataclass(frozen=True)
class OEpisode:
    """Some runs that are one session (so far), with what cutting knows of it."""

    runs: tuple[ORun, ...]
    turns: int
    family: OFamily
    contract: OContract | None
    windows: OWindows

    @property
    def start(self) -> int:
        """The earliest start of its runs."""
        return min(run.start for run in self.runs)

    @property
    def end(self) -> int:
        """The latest end of its runs."""
        return max(run.end for run in self.runs)

    @property
    def last_run(self) -> ORun:
        """The run that ended last, then started last."""
        return max(self.runs, key=lambda r: (r.end, r.start, r.name))

    @property
    def spans(self) -> tuple[OSpan, ...]:
        """All spans of all runs."""
        return tuple(span for run in self.runs for span in run.spans)

    @cached_property
    def explicit_claim(self) -> OClaim:
        """Rule 15 for these runs."""
        return explicit_claim(self.runs, self.contract)


def windows_of(contract: OContract | None, settings: OSettings) -> OWindows:
    """Rule 38's horizon and every other limit: the contract's own, else the setting."""

    def given(of_contract: int | None, setting: int) -> int:
        return setting if of_contract is None else of_contract

    resume = given(contract.resume_window if contract else None, settings.resume_window)
    reopen = given(contract.reopen_window if contract else None, settings.reopen_window)
    deadlines = [c.deadline for c in contract.criteria if c.deadline is not None] if contract else []
    return OWindows(
        resume=resume,
        grace=given(contract.closing_grace if contract else None, settings.closing_grace),
        wait=given(contract.wait_window if contract else None, settings.wait_window),
        reopen=reopen,
        horizon=max([reopen, *deadlines]),
        quiet=max(settings.session_gap, resume),
    )


def contract_in_force(family: str, start: int, contracts: Sequence[OContract]) -> OContract | None:
    """Rule 31: the family's version with the latest `effective_from` at or before the start."""
    begun = [c for c in contracts if c.family == family and (c.effective_from is None or c.effective_from <= start)]
    return max(begun, key=lambda c: (c.effective_from is not None, c.effective_from or 0), default=None)


def stated_family_of_trace(trace: OTrace) -> str | None:
    """Rule 13: nearest the root, then earliest; of an array the first."""
    return next((s.family[0] for s in nearest_root_first(trace) if s.family), None)


def stated_family_of_run(run: ORun) -> str | None:
    """Rule 13: of several in one run the earliest trace's."""
    ordered = sorted(run.traces, key=lambda t: (start_of_trace(t), t.trace_id))
    return next((f for f in map(stated_family_of_trace, ordered) if f is not None), None)


def derived_families(runs: Sequence[ORun], contracts: Sequence[OContract]) -> list[str]:
    """Rule 13: the families whose version in force at the start has an `applies_when` that holds."""
    start = min(run.start for run in runs)
    found = []
    for family in sorted({c.family for c in contracts}):
        contract = contract_in_force(family, start, contracts)
        if contract is None or contract.applies_when is None:
            continue
        if evaluate(contract.applies_when, variables_of(runs, contract)).holds:
            found.append(family)
    return found


def family_of(runs: Sequence[ORun], before: OEpisode | None, contracts: Sequence[OContract]) -> OFamily:
    """Rule 13: stated, else derived, else that of the session before within its reopen window."""
    stated = next((f for f in map(stated_family_of_run, runs) if f is not None), None)
    if stated is not None:
        return OFamily(stated, "stated")
    derived = derived_families(runs, contracts)
    if len(derived) == 1:
        return OFamily(derived[0], "derived")
    if derived:
        return OFamily(None, "ambiguous")
    if before is None or before.family.name is None:
        return OFamily(None, "none")
    if min(run.start for run in runs) > before.end + before.windows.reopen:
        return OFamily(None, "none")
    return OFamily(before.family.name, "inherited")


def episode_of(
    runs: Sequence[ORun], turns: int, before: OEpisode | None, contracts: Sequence[OContract], settings: OSettings
) -> OEpisode:
    """Some runs with the family and the contract that they have together."""
    family = family_of(runs, before, contracts)
    start = min(run.start for run in runs)
    contract = contract_in_force(family.name, start, contracts) if family.name is not None else None
    return OEpisode(tuple(runs), turns, family, contract, windows_of(contract, settings))


def stated_claim(span: OSpan) -> str | None:
    """Rule 15: the claim on a span; case does not matter, other values are ignored."""
    value = (span.claim or "").lower()
    return value if value in CLAIMS else None


def runs_up_to(runs: Sequence[ORun], spans: Sequence[OSpan]) -> list[ORun]:
    """The runs as they were when only these spans had ended."""
    ended = {(s.trace_id, s.span_id) for s in spans}
    partial = []
    for run in runs:
        traces = [replace(t, spans=tuple(s for s in t.spans if (s.trace_id, s.span_id) in ended)) for t in run.traces]
        traces = [t for t in traces if t.spans]
        if traces:
            start, end = min(map(start_of_trace, traces)), max(map(end_of_trace, traces))
            partial.append(ORun(run.name, tuple(traces), start, end))
    return partial


def claim_by_rule(runs: Sequence[ORun], contract: OContract | None) -> OSpan | None:
    """Rule 15: the span at whose end `claimed_when` first held."""
    if contract is None or contract.claimed_when is None:
        return None
    ordered = sorted((s for run in runs for s in run.spans), key=lambda s: (s.end, s.start, s.span_id, s.trace_id))
    for count, span in enumerate(ordered, start=1):
        if evaluate(contract.claimed_when, variables_of(runs_up_to(runs, ordered[:count]), contract)).holds:
            return span
    return None


def explicit_claim(runs: Sequence[ORun], contract: OContract | None) -> OClaim:
    """Rule 15: the latest claim by span end holds (started last, greater id, attribute before rule)."""
    claims = []
    for span in (s for run in runs for s in run.spans):
        value = stated_claim(span)
        if value is not None:
            claims.append((span.end, span.start, span.span_id, span.trace_id, True, value))
    by_rule = claim_by_rule(runs, contract)
    if by_rule is not None:
        claims.append((by_rule.end, by_rule.start, by_rule.span_id, by_rule.trace_id, False, "completed"))
    if not claims:
        return OClaim()
    latest = max(claims)
    return OClaim(value=latest[-1], time=latest[0])


def states_another_family(run: ORun, so_far: OEpisode) -> bool:
    """Rule 9: cut only where the session has a stated or derived family of its own."""
    stated = stated_family_of_run(run)
    return stated is not None and so_far.family.state in ("stated", "derived") and stated != so_far.family.name


def ended_in_known_answer(run: ORun) -> bool:
    """Rule 10: its leaf that ended last is a model span with finish reason `stop` or `end_turn`."""
    leaf = ended_last(leaves(run.traces))
    return leaf is not None and leaf.kind == "inference" and bool({"stop", "end_turn"} & set(leaf.finish_reasons))


def resumes(run: ORun, so_far: OEpisode) -> bool:
    """Rule 10."""
    if so_far.explicit_claim.value is not None:
        return False
    if run.start > so_far.end + so_far.windows.wait:
        return False
    if not any(s.kind == "inference" for s in [*so_far.spans, *run.spans]):
        return False
    if run_waits_for(so_far.last_run, so_far.contract) is not None:
        return True
    first = min(leaves(run.traces), key=lambda s: (s.start, s.span_id), default=None)
    return first is not None and first.kind in ("tool", "handoff") and not ended_in_known_answer(so_far.last_run)


def says_thanks_only(run: ORun) -> bool:
    """Rule 11: it calls no tool, hands off to nobody, states no family, issue, key or claim."""
    return not any(
        s.kind in ("tool", "handoff")
        or s.family
        or s.issues
        or any(plain_id(v) is not None for values in s.keys.values() for v in values)
        or stated_claim(s)
        for s in run.spans
    )


def starts_next_session(run: ORun, so_far: OEpisode) -> bool:
    """Rules 11 and 12, for a run that neither changes the family nor resumes."""
    claim = so_far.explicit_claim
    if claim.time is not None:
        if run.start <= claim.time + so_far.windows.grace:
            return False
        return not (says_thanks_only(run) and run.start <= claim.time + so_far.windows.resume)
    return run.start > so_far.end + so_far.windows.quiet


def sessions_of(conversation: OConversation, contracts: Sequence[OContract], settings: OSettings) -> list[OEpisode]:
    """RULES.md 2: one pass over the runs in order of start."""
    done: list[OEpisode] = []
    so_far: OEpisode | None = None
    for run in conversation.runs:
        before = done[-1] if done else None
        if so_far is None:
            so_far = episode_of([run], 1, before, contracts, settings)
            continue
        resumed = False
        if states_another_family(run, so_far):
            cut = True
        elif resumes(run, so_far):
            cut, resumed = False, True
        else:
            cut = starts_next_session(run, so_far)
        if cut:
            done.append(so_far)
            so_far = episode_of([run], 1, so_far, contracts, settings)
        else:
            turns = so_far.turns + (0 if resumed else 1)
            so_far = episode_of([*so_far.runs, run], turns, before, contracts, settings)
    return [*done, so_far] if so_far is not None else done


def count_unknown_claims(conversations: Sequence[OConversation], counted: Counter[str]) -> None:
    """Rule 15: other values are counted."""
    for span in (s for c in conversations for run in c.runs for s in run.spans):
        if span.claim is not None and stated_claim(span) is None:
            counted["unknown_claim"] += 1
