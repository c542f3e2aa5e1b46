"""A session as its spans alone show it: who was at work, what was called, how it ended, what it used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pipeline.core.judging.calls import attempts_by_call
from pipeline.core.judging.facts import calls_once, cost_of, first_named, usage_of
from pipeline.core.judging.views import RunView, TraceView, runs_of, started_first
from pipeline.review.grouping import Conversation
from schemas.span import DOLLAR, Control, Kind, Span

NOT_STEPS = frozenset(Kind) - {Kind.STEP}


class CallSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool call. `outcome`: ok, failed, waiting (interrupted), or no_result (asked for, not made)."""

    name: str
    outcome: str
    call_id: str = ""


class TokensSeen(msgspec.Struct, frozen=True):
    input: int
    output: int
    cached: int


class SessionSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """One session.

    Args:
        session_id: None where no span has a conversation id.
        agents: their names by first start; `agent_trail`: who was at work after whom, graphs called agents included.
        handoffs: hand-offs that the spans show.
        waits_for_human: runs that were interrupted.
        tools_asked_for: by models, where log records tell their names.
        cost_usd: of the model calls, where each tells it.
    """

    session_id: str | None
    user_id: str | None
    runs: int
    agents: list[str]
    agent_trail: list[str]
    handoffs: int
    tool_calls: list[CallSeen]
    tokens: TokensSeen
    model_calls: int
    model_errors: int
    waits_for_human: int
    guardrail_checks: int
    tools_asked_for: list[str] = []
    cost_usd: float | None = None


def sessions_of(conversation: Conversation, session_gap: int) -> SessionSeen | None:
    """The session of a conversation; None where there is no work in it (rule 6)."""
    runs = runs_of(conversation.traces, session_gap)
    if not runs:
        return None
    traces = [trace for run in runs for trace in (*run.traces, *run.idle_traces)]
    spans = sorted((span for trace in traces for span in trace.spans), key=started_first)
    once = calls_once(traces)
    model = [span for span in once if span.kind is Kind.INFERENCE]
    cost = cost_of(once)
    return SessionSeen(
        session_id=conversation.conversation_id or None,
        user_id=next((span.said.subjects[0] for span in spans if span.said is not None and span.said.subjects), None),
        runs=len(runs),
        agents=_agents(spans),
        agent_trail=_trail(traces),
        handoffs=sum(span.kind is Kind.HANDOFF for trace in traces for span in trace.outermost_calls),
        tool_calls=_calls(traces),
        tokens=TokensSeen(*usage_of(once)),
        model_calls=len(model),
        model_errors=sum(span.failed for span in model),
        waits_for_human=sum(_was_interrupted(run) for run in runs),
        guardrail_checks=sum(span.kind is Kind.GUARDRAIL for span in spans),
        cost_usd=None if cost is None else cost / DOLLAR,
        tools_asked_for=list(dict.fromkeys(name for span in spans for name in span.wanted)),
    )


def _agents(spans: Sequence[Span]) -> list[str]:
    """Names on agent spans; where there are none (LangSmith), those that model and tool spans work for."""
    return first_named(spans, "agent", frozenset({Kind.AGENT})) or first_named(spans, "agent", NOT_STEPS)


def _trail(traces: Iterable[TraceView]) -> list[str]:
    at_work = [
        (span.start, depth, span.agent or span.group)
        for trace in traces
        for depth, span in enumerate(trace.from_root)
        if span.kind is Kind.AGENT or span.group
    ]
    names = [name for _, _, name in sorted(at_work, key=lambda one: one[:2]) if name]
    return [name for index, name in enumerate(names) if index == 0 or name != names[index - 1]]


def _calls(traces: Sequence[TraceView]) -> list[CallSeen]:
    """The calls by start. What was interrupted waits, unless the tool ran later on."""
    found: list[tuple[tuple[int, bytes], CallSeen]] = []
    groups = attempts_by_call(traces, None)
    ran = [(one.span.tool, one.span.start) for tries in groups for one in tries if not one.interrupted]
    for tries in groups:
        first = tries[0].span
        decided = [one for one in tries if not one.interrupted]
        if decided:
            outcome = "failed" if decided[-1].failed else "ok"
        elif any(tool == first.tool and start >= first.start for tool, start in ran):
            continue
        else:
            outcome = "waiting"
        found.append((started_first(first), CallSeen(first.tool, outcome, first.call_id)))
    requests = [span for trace in traces for span in trace.spans if span.requested]
    for span in requests:
        if not any(tool == span.tool and start >= span.start for tool, start in ran):
            found.append((started_first(span), CallSeen(span.tool, "no_result", span.call_id)))
    return [call for _, call in sorted(found, key=lambda one: one[0])]


def _was_interrupted(run: RunView) -> bool:
    return any(span.control is Control.INTERRUPT for span in run.spans)
