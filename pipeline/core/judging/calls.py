"""Tool calls and hand-offs to people of a session (RULES.md 20, 22)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.core.contracts.book import CompiledContract
from pipeline.core.judging.views import CALLS, Attempt, TraceView, started_first
from schemas.span import Control, Kind, Span

HANDOFF_NAME = re.compile(r"^(.*-)?(transfer_to_|handoff|delegate work|ask question)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call: how its last uninterrupted attempt, `span`, ended. `retries`: attempts beyond the first."""

    tool: str
    ok: bool
    start: int
    end: int
    span: Span
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Handoff:
    """One hand-off to a person, as the spans say: `state` is accepted, failed or attempted."""

    target: str
    state: str
    time: int


def tool_calls(traces: Iterable[TraceView], contract: CompiledContract | None) -> list[ToolCall]:
    """The calls by start (rule 22); one that was only ever interrupted is none."""
    found = []
    for tries in attempts_by_call(traces, contract):
        decided = [one for one in tries if not one.interrupted]
        if decided:
            last = decided[-1]
            start, retries = tries[0].span.start, len(decided) - 1
            found.append(ToolCall(last.span.tool, not last.failed, start, last.span.end, last.span, retries))
    return found


def attempts_by_call(traces: Iterable[TraceView], contract: CompiledContract | None) -> list[list[Attempt]]:
    """The attempts of each call, both by start (rule 22).

    A hand-off to a person by a tool is a call too, unless its name says hand-off.
    """
    attempts = sorted(_attempts(traces, contract), key=lambda one: started_first(one.span))
    by_call: dict[tuple[str, str], list[Attempt]] = {}
    calls: list[list[Attempt]] = []
    for attempt in attempts:
        key = (attempt.span.call_id, attempt.span.tool)
        open_call = by_call.get(key) if attempt.span.call_id else None
        if open_call is not None and (open_call[-1].interrupted or open_call[-1].failed):
            open_call.append(attempt)
            continue
        calls.append([attempt])
        if attempt.span.call_id:
            by_call[key] = calls[-1]
    return calls


def _attempts(traces: Iterable[TraceView], contract: CompiledContract | None) -> Iterable[Attempt]:
    for trace in traces:
        for attempt in trace.attempts:
            if attempt.span.kind is not Kind.HANDOFF or _is_call(attempt.span, contract):
                yield attempt


def _is_call(span: Span, contract: CompiledContract | None) -> bool:
    if HANDOFF_NAME.match(span.tool or span.handoff_to):
        return False
    return contract is not None and bool(span.tool) and contract.is_person(span.tool, span.handoff_to)


def handoffs_to_people(traces: Iterable[TraceView], contract: CompiledContract | None) -> list[Handoff]:
    """Hand-offs to people by start (rule 20); without a contract nobody says who is a person.

    Spans of one hand-off may lie within one another under several names: a tool, and the hand-off that it makes.
    """
    if contract is None:
        return []
    found = []
    for trace in traces:
        spans = [one for one in trace.spans if one.kind in CALLS and contract.is_person(one.tool, one.handoff_to)]
        above = {one.span_id: {up.span_id for up in trace.ancestors(one)} for one in spans}
        for span in spans:
            if not above[span.span_id].isdisjoint(above):
                continue
            nested = [one for one in spans if one is span or span.span_id in above[one.span_id]]
            if any(one.failed for one in nested):
                state = "failed"
            elif any(one.control is Control.INTERRUPT for one in nested):
                state = "attempted"
            else:
                state = "accepted"
            found.append((started_first(span), Handoff(span.handoff_to or span.tool, state, span.end)))
    return [handoff for _, handoff in sorted(found, key=lambda one: one[0])]
