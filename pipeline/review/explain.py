"""One verdict, criterion by criterion, with the evidence, in the words of a colleague.

The rule this file keeps: it reads the story of a conversation as the read API tells it and decides nothing anew. What a
criterion came to, until when it waits and why a revision was made stand there; here they are only said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pipeline.review.explain_criteria import Criterion, Record, criterion
from pipeline.review.explain_quality import cause, how_well
from pipeline.review.wording import ENDS, after, answer, listed, moment, plural, span_time, value

MOST_STEPS = 5


class Revision(msgspec.Struct, frozen=True):
    """`learnt_at` is the event time up to which the pipeline had heard everything."""

    revision: int
    learnt_at: str
    because: str
    changed: list[str]


class Explanation(msgspec.Struct, frozen=True):
    """All that there is to say about one session; every line is a sentence for a person.

    Args:
        heard: what systems and people outside the agent said, in order of time.
        how_well: what was scored; no rate reads it.
    """

    session: str
    revision: int
    contract: str
    in_short: list[str]
    came_for: str
    claimed: str
    heard: list[str]
    how_well: list[str]
    criteria: list[Criterion]
    revisions: list[Revision]
    look_at: list[str]


def explain(story: Record, ordinal: int | None = None) -> list[Explanation]:
    """Every session of a conversation, or the one asked for.

    Args:
        story: the answer of `/api/sessions/{tenant}/{conversation}`.
    """
    chosen = [one for one in story["sessions"] if ordinal in (None, one["ordinal"])]
    return [_explain(story, one) for one in chosen]


def _explain(story: Record, session: Record) -> Explanation:
    verdict: Record = session["verdict"]
    newest = _newest(session)
    asked: Record = story.get("contracts", {}).get(verdict["contract_version"], {}).get("criteria", {})
    details = {one["id"]: one for one in newest.get("criteria", [])}
    order = {name: place for place, name in enumerate(asked)}
    rows = sorted(session["criteria"], key=lambda one: order.get(one["criterion"], len(order)))
    criteria = [
        criterion(
            {**details.get(one["criterion"], {}), **one},
            asked.get(one["criterion"], {}),
            verdict,
            story,
            newest.get("evidence", {}),
        )
        for one in rows
    ]
    claimed_at = newest.get("claimed_at") or verdict["end"]
    return Explanation(
        session=f"{story['tenant']}/{story['conversation']}#{session['ordinal']}",
        revision=verdict["revision"],
        contract=verdict["contract_version"],
        in_short=list(_in_short(verdict, criteria)),
        came_for=_came_for(verdict),
        claimed=_claimed(verdict, claimed_at),
        heard=[_heard(one, verdict["end"]) for one in story["outcomes"]],
        how_well=how_well(session, story),
        criteria=criteria,
        revisions=[_revision(one) for one in session["revisions"]],
        look_at=list(_look_at(session, criteria, story)),
    )


def _in_short(verdict: Record, criteria: Sequence[Criterion]) -> Iterator[str]:
    if not verdict["terminal_reason"]:
        yield "Still open: it is judged when it has been quiet for long enough, or the grace after a claim is over."
        return
    if not verdict["eligible"]:
        yield _not_counted(verdict)
    if verdict["invalid"] or verdict["refused"] or not verdict["contract_version"]:
        return
    claimed = {"explicit": "The agent said that it was done", "assumed": "The agent answered and the customer left"}
    says = claimed.get(verdict["claimed"], "The agent did not say that it was done")
    link, but = ("and", ", but it is not") if verdict["claimed"] else ("yet", "")
    required = [one for one in criteria if one.required]
    if verdict["completion"] == "incomplete":
        yield f"{says}{but}: {listed(one.id for one in required if one.status in ('failed', 'error'))} failed."
    elif verdict["completion"] == "pending":
        waits = [one for one in required if one.status == "pending"]
        until = max((one.deadline for one in waits if one.deadline), default="")
        ends = f" until {moment(until)}" if until else ""
        yield f"{says}; it is not decided yet: {listed(one.id for one in waits)} may still come{ends}."
    elif verdict["verified"]:
        yield f"{says}, {link} independent systems confirm that it is."
    elif verdict["verified"] is None:
        yield f"{says}, {link} all that is required holds; nothing independent of the agent was asked."
    else:
        missing = [one.id for one in criteria if not one.required and one.status not in ("passed", "not_applicable")]
        yield f"{says}, {link} all that is required holds; {listed(missing)} is not confirmed."
    if verdict["escalated"]:
        yield "A person took over, so it does not count as resolved."
    if verdict["reopened"]:
        yield f"The customer came back at {moment(verdict['reopened_at'])}, so it does not count as resolved."
    if verdict["confirmed"] is not None:
        yield f"The customer {answer(verdict['confirmed'])}."


def _not_counted(verdict: Record) -> str:
    if verdict["invalid"]:
        return "Set aside as invalid (a test, or taken out by an outcome): no rate counts it."
    if verdict["refused"]:
        return "Rightly refused, by independent evidence: no rate of completion counts it."
    if verdict["family_source"] == "inherited":
        return "Its family is that of the session before, so it is judged and shown, and not counted."
    what = f"the family {verdict['family']}" if verdict["family"] else "what it was for"
    return f"No contract judges {what} ({verdict['family_source']}): it counts in tool success and attribution alone."


def _came_for(verdict: Record) -> str:
    source = {"stated": "as its spans state", "derived": "as its contract's applies_when finds"}
    family = verdict["family"] or "an unknown task"
    how = source.get(verdict["family_source"], verdict["family_source"])
    made, well = verdict["tool_calls"], verdict["tool_calls_ok"]
    calls = (
        f"{plural(made, 'tool call')}, {'all' if made == well else f'{well} of them'} well" if made else "no tool call"
    )
    by = f", by {', '.join(verdict['agents'])}" if verdict["agents"] else ""
    turns = plural(verdict["turns"], "turn")
    lasted = span_time(verdict["start"], verdict["end"])
    issues = f" Issue: {', '.join(verdict['issues'])}." if verdict["issues"] else ""
    return (
        f"{family} ({how}), {moment(verdict['start'])}, for {lasted}: {turns}, {calls}{by}. "
        f"{ENDS[verdict['terminal_reason']]}.{issues}"
    )


def _claimed(verdict: Record, at: str) -> str:
    if verdict["claim"]:
        return f"It said {verdict['claim']!r} at {moment(at)} ({after(verdict['end'], at)})."
    if verdict["claimed"] == "assumed":
        return (
            f"It did not say; it answered at {moment(verdict['end'])} and the customer left, which counts as a claim."
        )
    return "It made no claim."


def _heard(outcome: Record, end: str) -> str:
    said = _said(outcome["kind"], outcome["data"] or {})
    claim = " This is the agent's own source: a claim, and no evidence." if outcome["from_agent"] else ""
    via = "" if outcome["via"] == "session" else f", by {outcome['via']}"
    at = outcome["event_time"]
    return f"{moment(at)} ({after(end, at)}) {outcome['source']}{via}: {said}.{claim}"


def _said(kind: str, data: Record) -> str:
    fields = ", ".join(f"{name} is {value(one)}" for name, one in data.items())
    match kind:
        case "resolution" if isinstance(data.get("confirmed"), bool):
            return f"the customer {answer(data['confirmed'])}"
        case "reopen":
            return f"the case was reopened{f': {fields}' if fields else ''}"
        case "escalation":
            return f"a hand-off to a person was {data.get('state', 'accepted')}"
        case "evidence":
            return fields or "nothing"
        case _:
            return f"{kind}{f': {fields}' if fields else ''}"


def _revision(one: Record) -> Revision:
    changed = [str(text) for text in one["changed"] or []]
    because = str(one["reason"]).removesuffix("; ".join(changed[:4])).rstrip(": ")
    return Revision(one["revision"], one["as_of"], because or "time passed", changed)


def _look_at(session: Record, criteria: Iterable[Criterion], story: Record) -> Iterator[str]:
    verdict: Record = session["verdict"]
    yield from cause(verdict)
    for one in criteria:
        if one.status in ("failed", "error"):
            agent = f", owned by the agent {one.agent}" if one.agent else ""
            optional = "" if one.required else " (not required)"
            yield f"{one.id}{optional} failed in the stage {one.stage or 'that the contract does not name'}{agent}."
        elif one.status == "pending" and one.deadline:
            yield f"{one.id} is expected by {moment(one.deadline)}: is the system that says it connected?"
    failed = [step for step in session["spans"] if step["failed"]]
    for step in failed[:MOST_STEPS]:
        what = f"the {step['kind']} {step['tool'] or step['model'] or step['agent'] or step['name']}"
        yield f"{what} ended in an error at {moment(step['end'])} (trace {step['trace_id']}, span {step['span_id']})."
    if len(failed) > MOST_STEPS:
        yield f"{len(failed) - MOST_STEPS} more steps ended in an error."
    if verdict["reopened"]:
        yield f"Why the customer came back: {_came_back_in(session, story)}."
    if verdict["escalated"]:
        yield "Why the agent could not finish alone: its last turn before the hand-off."
    yield f"Its traces: {', '.join(verdict['trace_ids'])}."


def _came_back_in(session: Record, story: Record) -> str:
    for other in story["sessions"]:
        if _newest(other).get("reopens") == session["ordinal"]:
            return f"see the session #{other['ordinal']}"
    elsewhere = _newest(session).get("reopened_by")
    if elsewhere:
        return f"see the session {elsewhere} of the same customer"
    if any(outcome["kind"] == "reopen" for outcome in story["outcomes"]):
        return "see who reopened it, above"
    return "a session of the same customer began then"


def _newest(session: Record) -> Record:
    """The verdict of the newest revision, whole; empty before the first."""
    newest: Record = (session["revisions"] or [{}])[-1].get("verdict") or {}
    return newest
