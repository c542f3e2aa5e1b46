"""The summary of a session: of its spans, if they are there, else the one that was packed."""

from __future__ import annotations

from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.breaks import breaks_of
from pipeline.core.judging.calls import handoffs_to_people, tool_calls
from pipeline.core.judging.facts import calls_once, cost_of, distinct_resources, usage_of, variables
from pipeline.core.judging.oddities import flags_of
from pipeline.core.judging.summary import LastRun, Summary
from pipeline.core.judging.trials import trial_of


def summary_of(session: Session) -> Summary:
    """What judging reads of the session."""
    if session.summary is None:
        session.summary = _summarise(session)
    return session.summary


def _summarise(session: Session) -> Summary:
    contract, traces, last = session.family.contract, session.traces, session.last_run
    spans = [span for trace in traces for span in trace.spans]
    said = [span.said for span in spans if span.said is not None]
    calls = tool_calls(traces, contract)
    subjects = frozenset(who for one in said for who in one.subjects)
    model_calls = calls_once(traces)
    return Summary(
        start=session.start,
        end=session.end,
        last_start=max(run.start for run in session.runs),
        trace_ids=tuple(trace.trace_id for trace in traces),
        runs=len(session.runs),
        last_run=LastRun(
            waits=last.waits,
            waits_for_person=last.waits and last.waits_for_person(contract),
            error_at_end=last.error_at_end,
            is_answer=last.is_answer,
            known_answer=last.ended_in_known_answer,
        ),
        has_model=any(run.has_model for run in session.runs),
        values=variables(session.runs, contract),
        resources=tuple(dict(one) for one in distinct_resources(spans)),
        calls=len(calls),
        calls_ok=sum(one.ok for one in calls),
        handoffs=tuple(one.state for one in handoffs_to_people(traces, contract)),
        tokens=usage_of(model_calls),
        subjects=tuple(sorted(subjects)),
        issues=tuple(sorted({issue for one in said for issue in one.issues})),
        keys=tuple(sorted({(name, value) for one in said for name, values in one.keys.items() for value in values})),
        flags=flags_of(traces, subjects),
        breaks=breaks_of(traces, calls, last),
        trial=trial_of(spans, contract, calls),
        cost=cost_of(model_calls),
    )
