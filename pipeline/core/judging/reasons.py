"""Why a verdict was revised, in the words of a colleague: what arrived, and what it changed."""

from __future__ import annotations

from schemas.verdict import Completion, Verdict


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
    found: list[str] = []
    if before.terminal != after.terminal:
        found.append("judged again" if after.terminal else "activity resumed")
    if before.completion is not after.completion:
        found.append(f"completion {before.completion.value} -> {after.completion.value}")
    if before.verified != after.verified:
        found.append({True: "verified", False: "no longer verified", None: "nothing to verify"}[after.verified])
    if before.terminal_reason != after.terminal_reason and after.terminal:
        found.append(f"ended: {before.terminal_reason or 'open'} -> {after.terminal_reason}")
    for name, gained, lost in (
        ("reopened", "reopened", "no longer reopened"),
        ("escalated", "escalated to a person", "escalation withdrawn"),
        ("refused", "refused", "no longer refused"),
        ("invalid", "invalid", "valid again"),
    ):
        if getattr(before, name) != getattr(after, name):
            found.append(gained if getattr(after, name) else lost)
    if before.confirmed != after.confirmed:
        answer = {
            True: "the customer confirmed",
            False: "the customer denied",
            None: "the customer's answer was withdrawn",
        }
        found.append(answer[after.confirmed])
    if before.claimed != after.claimed:
        found.append(f"completion claimed ({after.claimed})" if after.claimed else "claim of completion gone")
    if before.family != after.family:
        found.append(f"family {before.family or 'none'} -> {after.family or 'none'}")
    known = {one.id: one for one in before.criteria}
    for one in after.criteria:
        old = known.get(one.id)
        if old is None or (old.status, old.reason) != (one.status, one.reason):
            found.append(f"{one.id}: {old.status.value if old else 'new'} -> {one.status.value} ({one.reason.value})")
    for name, (value, _) in after.evidence.items():
        if name not in before.evidence:
            found.append(f"{name} is {value}")
        elif before.evidence[name][0] != value:
            found.append(f"{name} {before.evidence[name][0]} -> {value}")
    found += [f"{name} withdrawn" for name in before.evidence.keys() - after.evidence.keys()]
    if (before.start, before.end) != (after.start, after.end) or before.trace_ids != after.trace_ids:
        found.append("its spans or limits changed")
    return found or ["details changed"]


def reason(causes: list[str], changed: list[str]) -> str:
    """One line: what arrived, then what it changed."""
    what = ", ".join(causes[:3]) + (f" and {len(causes) - 3} more" if len(causes) > 3 else "")
    return f"{what or 'time passed'}: {'; '.join(changed[:4])}"
