"""What differs between two revisions of a verdict, in words.

The rule this file keeps: whatever differs is said; there is no revision of which nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.verdict import Completion, EvaluationVerdict, Verdict

_OF_ONE_SENDING = frozenset({"version", "revision", "reason", "as_of"})
_OF_NEIGHBOURS = ("reopened", "reopened_at", "reopens", "follow_up", "family", "family_source")
_CUT = ("start", "end", "trace_ids")


def changes(before: Verdict | None, after: Verdict) -> list[str]:
    """What differs between two revisions, most telling first."""
    if after.deleted:
        return ["withdrawn: the conversation was cut anew"]
    if before is None:
        if not after.terminal:
            return ["open"]
        first = [f"first judged: {after.terminal_reason}"]
        if after.completion is not Completion.NONE:
            first.append(f"completion {after.completion.value}")
        return first
    found = [*_standing(before, after), *_returns(before, after), *_said(before, after), *_judged(before, after)]
    if gone_with_the_cut(before, after):
        found.append("its spans or limits changed")
    return found or [_fields(before, after)]


def gone_with_the_cut(before: Verdict, after: Verdict) -> bool:
    """Whether it has other spans or limits."""
    return _differ(before, after, _CUT)


def of_neighbours(before: Verdict | None, after: Verdict) -> bool:
    """Whether something differs that other sessions of the conversation decide."""
    if after.deleted or before is None:
        return after.deleted
    return _differ(before, after, _OF_NEIGHBOURS) or before.start != after.start


def _differ(before: Verdict, after: Verdict, names: Iterable[str]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in names)


def _standing(before: Verdict, after: Verdict) -> Iterator[str]:
    """How it stands: what people look at first."""
    if before.terminal != after.terminal:
        yield "judged again" if after.terminal else "activity resumed"
    if before.completion is not after.completion:
        yield f"completion {_completion(before)} -> {_completion(after)}"
    if before.verified != after.verified:
        yield {True: "verified", False: "no longer verified", None: "nothing to verify"}[after.verified]
    if before.terminal_reason != after.terminal_reason and after.terminal:
        yield f"ended: {before.terminal_reason or 'open'} -> {after.terminal_reason}"
    for name, gained, lost in (
        ("reopened", "reopened", "no longer reopened"),
        ("escalated", "escalated to a person", "escalation withdrawn"),
        ("refused", "refused", "no longer refused"),
        ("invalid", "invalid", "valid again"),
    ):
        if getattr(before, name) != getattr(after, name):
            yield gained if getattr(after, name) else lost
    if before.handoff_attempted != after.handoff_attempted and before.escalated == after.escalated:
        yield "a hand-off to a person was attempted" if after.handoff_attempted else "no hand-off was attempted"
    if before.confirmed != after.confirmed:
        yield {
            True: "the customer confirmed",
            False: "the customer denied",
            None: "the customer's answer was withdrawn",
        }[after.confirmed]


def _completion(one: Verdict) -> str:
    return one.completion.value or "not judged, for want of a contract"


def _returns(before: Verdict, after: Verdict) -> Iterator[str]:
    """Whose claim it takes back, and who took back its own."""
    if before.reopened_by != after.reopened_by:
        yield f"reopened by {after.reopened_by}" if after.reopened_by else f"not by {before.reopened_by}"
    if before.reopens != after.reopens:
        yield f"reopens #{after.reopens}" if after.reopens else f"reopens #{before.reopens} no more"
    elsewhere, then = set(after.reopens_elsewhere), set(before.reopens_elsewhere)
    yield from (f"reopens {name}" for name in sorted(elsewhere - then))
    yield from (f"reopens {name} no more" for name in sorted(then - elsewhere))
    if before.follow_up != after.follow_up:
        yield "a follow-up" if after.follow_up else "no follow-up any more"


def _said(before: Verdict, after: Verdict) -> Iterator[str]:
    """What is claimed, and by what it is judged."""
    if before.claim != after.claim:
        yield f"claim {before.claim or 'none'} -> {after.claim or 'none'}"
    if before.claimed != after.claimed:
        yield f"completion claimed ({after.claimed})" if after.claimed else "claim of completion gone"
    if before.family != after.family:
        yield f"family {before.family or 'none'} -> {after.family or 'none'}"
    elif before.family_source != after.family_source:
        yield f"family {before.family_source.replace('_', ' ')} -> {after.family_source.replace('_', ' ')}"
    if before.contract != after.contract:
        yield f"judged by {after.contract or 'no contract'}"


def _judged(before: Verdict, after: Verdict) -> Iterator[str]:
    """Criteria, evidence and scores."""
    known = {one.id: one for one in before.criteria}
    for one in after.criteria:
        old = known.get(one.id)
        if old is None or (old.status, old.reason) != (one.status, one.reason):
            yield f"{one.id}: {old.status.value if old else 'new'} -> {one.status.value} ({one.reason.value})"
    for name, (value, _) in after.evidence.items():
        if name not in before.evidence:
            yield f"{name} is {value}"
        elif before.evidence[name][0] != value:
            yield f"{name} {before.evidence[name][0]} -> {value}"
    yield from (f"{name} withdrawn" for name in before.evidence.keys() - after.evidence.keys())
    scores = {one.name: one for one in before.quality.evaluations}
    for new in after.quality.evaluations:
        scored = scores.pop(new.name, None)
        if scored is None:
            yield f"{new.name} evaluated: {_score(new)}"
        elif _score(scored) != _score(new):
            yield f"{new.name} evaluated: {_score(scored)} -> {_score(new)}"
    yield from (f"evaluation of {name} withdrawn" for name in scores)
    for name in ("goal_achievement", "coherence", "feedback"):
        was, now = getattr(before.quality, name), getattr(after.quality, name)
        if was != now:
            yield f"{name.replace('_', ' ')} {_number(was)} -> {_number(now)}"


def _score(one: EvaluationVerdict) -> str:
    return f"{one.score:g}" if one.score is not None else one.label or one.state.value


def _number(one: float | None) -> str:
    return "none" if one is None else f"{one:g}"


def _fields(before: Verdict, after: Verdict) -> str:
    """What else differs, by the names that the documents have."""
    names = [name for name in Verdict.__struct_fields__ if name not in _OF_ONE_SENDING]
    found = [name.replace("_", " ") for name in names if getattr(before, name) != getattr(after, name)]
    return f"{', '.join(found)} changed"
