"""Why an incomplete session is incomplete: the earliest of a claimed refusal, what broke, and what was not met."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.oracle.calls import OCall, error_at_end
from tests.oracle.criteria import OResult
from tests.oracle.cutting import OEpisode
from tests.oracle.expressions import names_after
from tests.oracle.model import Expression, OSpan, OTrace
from tests.oracle.parts import OClaim, OFailure
from tests.oracle.spans import (
    ancestors,
    end_of_trace,
    ended_last,
    leaves,
    nearest_root_first,
    really_failed,
    start_of_trace,
    work_spans,
)

VARIABLES = ("state", "evidence", "tools", "resource", "session")
Dated = tuple[int, str, str, OFailure]
"""Time, what, name: the order of what broke."""


def variables_read(expression: Expression) -> set[str]:
    """The variables that a check names; a Python function may read any."""
    if not isinstance(expression, str):
        return set(VARIABLES)
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", expression)
    return {name for name in VARIABLES if re.search(rf"(?<![\w.]){name}\b", bare)}


def agent_of(span: OSpan, traces: Sequence[OTrace]) -> str:
    """The agent on the span, else on the nearest above it."""
    trace = next(t for t in traces if t.trace_id == span.trace_id)
    return next((s.agent for s in [span, *ancestors(span, trace)] if s.agent), "")


def what_broke(episode: OEpisode, calls: Sequence[OCall]) -> list[Dated]:
    """Each tool whose last call failed, and an error at the end that no tool made."""
    traces = [t for run in episode.runs for t in run.traces]
    last = {call.name: call for call in calls}
    found: list[Dated] = []
    for name, call in last.items():
        deciding = call.deciding
        if deciding is not None and deciding.failed:
            at = deciding.span.end
            found.append((at, "tool", name, OFailure("execution", f"tool {name}", agent_of(deciding.span, traces), at)))
    run = episode.last_run
    if error_at_end(run):
        leaf = ended_last(leaves(run.traces))
        if leaf is not None and really_failed(leaf):
            if leaf.kind == "inference":
                cause = OFailure("infrastructure", "model", agent_of(leaf, traces), leaf.end)
                found.append((leaf.end, "model", leaf.model or "", cause))
        else:
            working = [t for t in run.traces if work_spans(t.spans)]
            trace = max(working, key=lambda t: (end_of_trace(t), start_of_trace(t), t.trace_id))
            root = nearest_root_first(trace)[0]
            found.append((root.end, "run", "", OFailure("infrastructure", "run", root.agent or "", root.end)))
    return sorted(found, key=lambda one: one[:3])


def failure_of(episode: OEpisode, calls: Sequence[OCall], results: Sequence[OResult], claim: OClaim) -> OFailure | None:
    """The earliest cause; at one time a refusal before what broke, and that before a criterion."""
    failed = [r for r in results if r.criterion.required and r.status in ("failed", "error")]
    if not failed:
        return None
    causes: list[tuple[int, int, OFailure]] = []
    for place, result in enumerate(failed):
        at = result.failed_since or 0
        stage = "infrastructure" if result.status == "error" else result.criterion.stage or "verification"
        causes.append((at, 2 + place, OFailure(stage, result.criterion.id, result.criterion.agent or "", at)))
    of_the_agent = [r.criterion.check for r in failed if variables_read(r.criterion.check) != {"evidence"}]
    tools = [names_after("tools", str(check)) for check in of_the_agent]
    if of_the_agent:
        causes += [
            (at, 1, failure)
            for at, what, name, failure in what_broke(episode, calls)
            if what != "tool" or any(not named or name in named for named in tools)
        ]
        if claim.value == "refused" and claim.time is not None:
            causes.append((claim.time, 0, OFailure("policy", "refusal", "", claim.time)))
    return min(causes, key=lambda cause: cause[:2])[2]
