"""Rules 17 to 20 and 22: what a run called, whether it waits, answers or fails, and who was handed the customer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.oracle.model import OContract, ORun, OSpan, OTrace
from tests.oracle.parts import OUsage
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

HANDOFF_NAME = re.compile(r"^(.*-)?(transfer_to_|handoff|delegate work|ask question)", re.IGNORECASE)


@dataclass(frozen=True)
class OAttempt:
    """One outermost tool or hand-off span with what is nested in it."""

    span: OSpan
    name: str
    failed: bool
    interrupted: bool


@dataclass(frozen=True)
class OCall:
    """Rule 22: one tool call, its attempts in order of start."""

    name: str
    attempts: tuple[OAttempt, ...]

    @property
    def deciding(self) -> OAttempt | None:
        """The last attempt that was not interrupted; None is no call."""
        return next((a for a in reversed(self.attempts) if not a.interrupted), None)

    @property
    def arguments(self) -> Mapping[str, str] | None:
        """Those of the deciding attempt; None where they are not known."""
        return None if self.deciding is None else self.deciding.span.arguments

    @property
    def retries(self) -> int:
        """Rule 23: attempts beyond the first, interrupted ones not counted."""
        return max(0, sum(not a.interrupted for a in self.attempts) - 1)


def name_of_call(span: OSpan) -> str:
    """The tool of a tool or hand-off span, else the span's own name."""
    return span.tool or span.name


def attempts_of_trace(trace: OTrace, chosen: Sequence[OSpan], same_name: bool) -> list[OAttempt]:
    """Of the chosen spans the outermost ones; each failed if it or a chosen span nested in it failed."""
    found = []
    for span in chosen:
        nested = [
            s
            for s in chosen
            if span in ancestors(s, trace) and (not same_name or name_of_call(s) == name_of_call(span))
        ]
        inside = any(
            a in chosen and (not same_name or name_of_call(a) == name_of_call(span)) for a in ancestors(span, trace)
        )
        if not inside:
            group = [span, *nested]
            failed = any(map(really_failed, group))
            interrupted = not failed and any(s.interrupted for s in group)
            found.append(OAttempt(span, name_of_call(span), failed, interrupted))
    return found


def outermost_calls(traces: Iterable[OTrace]) -> list[OAttempt]:
    """Rules 17 and 22: outermost tool and hand-off spans (nested means nested under the same name)."""
    return [
        attempt
        for trace in traces
        for attempt in attempts_of_trace(trace, [s for s in trace.spans if s.kind in ("tool", "handoff")], True)
    ]


def is_handoff_to_person(span: OSpan, contract: OContract | None) -> bool:
    """Rule 20: a tool or a target that `escalated_when` names."""
    if contract is None or span.kind not in ("tool", "handoff"):
        return False
    by_tool = span.tool is not None and any(fnmatchcase(span.tool, p) for p in contract.escalated_tools)
    target = span.handoff_target
    return by_tool or (target is not None and any(fnmatchcase(target, p) for p in contract.escalated_handoffs))


def handoffs_to_person(runs: Sequence[ORun], contract: OContract | None) -> list[tuple[OAttempt, str]]:
    """Rule 20: every hand-off to a person in the spans: accepted, attempted or failed."""
    found = []
    for trace in (t for run in runs for t in run.traces):
        chosen = [s for s in trace.spans if is_handoff_to_person(s, contract)]
        for attempt in attempts_of_trace(trace, chosen, same_name=False):
            how = "failed" if attempt.failed else "attempted" if attempt.interrupted else "accepted"
            found.append((attempt, how))
    return found


def handoffs_counted(runs: Sequence[ORun], contract: OContract | None) -> int:
    """Rule 23's `session.handoffs`: a repeat of one call id and name after an interrupt or a failure is no second."""
    return len(continued([attempt for attempt, _ in handoffs_to_person(runs, contract)]))


def is_tool_call(span: OSpan, contract: OContract | None) -> bool:
    """Rules 20 and 22: tool spans and hand-offs to a person, unless the name is that of a hand-off."""
    called = span.kind == "tool" or is_handoff_to_person(span, contract)
    return called and not HANDOFF_NAME.match(name_of_call(span))


def continued(attempts: Sequence[OAttempt]) -> list[OCall]:
    """Rule 22: an attempt continues the last of its call id and name if that was interrupted or failed."""
    calls: list[list[OAttempt]] = []
    open_calls: dict[tuple[str, str], list[OAttempt]] = {}
    for attempt in sorted(attempts, key=lambda a: (a.span.start, a.span.span_id, a.span.trace_id)):
        call_id = attempt.span.call_id
        before = open_calls.get((call_id, attempt.name)) if call_id is not None else None
        if before is not None and (before[-1].interrupted or before[-1].failed):
            before.append(attempt)
            continue
        calls.append([attempt])
        if call_id is not None:
            open_calls[call_id, attempt.name] = calls[-1]
    return [OCall(of_one[0].name, tuple(of_one)) for of_one in calls]


def tool_attempts(runs: Sequence[ORun], contract: OContract | None) -> list[OAttempt]:
    """Rule 22: the attempts at tool calls."""
    traces = [t for run in runs for t in run.traces]
    return [a for a in outermost_calls(traces) if is_tool_call(a.span, contract)]


def tool_calls(runs: Sequence[ORun], contract: OContract | None) -> list[OCall]:
    """Rule 22: the calls that count."""
    return [c for c in continued(tool_attempts(runs, contract)) if c.deciding is not None]


def standing_interrupts(run: ORun) -> list[OSpan]:
    """Rule 17: interrupted spans after whose end no leaf starts."""
    starts = [leaf.start for leaf in leaves(run.traces)]
    return [s for s in run.spans if s.interrupted and not any(start > s.end for start in starts)]


def has_open_approval(run: ORun) -> bool:
    """Rule 17: fewer outermost calls started since the start of the last model span than that asked for."""
    last = ended_last(s for s in run.spans if s.kind == "inference")
    if last is None:
        return False
    started = [a for a in outermost_calls(run.traces) if a.span.start >= last.start]
    return len(started) < (last.asked_tools or 0)


def run_waits_for(run: ORun, contract: OContract | None) -> str | None:
    """Rule 17: `person`, `customer`, or None if the run does not wait."""
    interrupts = standing_interrupts(run)
    approval = contract.approval_tools if contract else ()
    if has_open_approval(run) or any(s.kind == "tool" and s.tool in approval for s in interrupts):
        return "person"
    return "customer" if interrupts else None


def error_at_end(run: ORun) -> bool:
    """Rule 19: the leaf that ended last failed, or the root of the trace that ended last did and is work."""
    leaf = ended_last(leaves(run.traces))
    if leaf is not None and really_failed(leaf):
        return True
    working = [t for t in run.traces if work_spans(t.spans)]
    trace = max(working, key=lambda t: (end_of_trace(t), start_of_trace(t), t.trace_id))
    root = nearest_root_first(trace)[0]
    return bool(work_spans([root])) and really_failed(root)


def is_answer(run: ORun) -> bool:
    """Rule 18: it neither waits nor failed, and a model had the last word, or there are agent spans only."""
    if run_waits_for(run, None) is not None or error_at_end(run):
        return False
    leaf = ended_last(leaves(run.traces))
    if leaf is not None:
        return leaf.kind == "inference"
    return all(span.kind == "agent" for span in work_spans(run.spans))


def usage_of(runs: Sequence[ORun]) -> OUsage:
    """DESIGN.md 4: model spans alone, none whose inference descendant counts already, a response id once."""
    counted: list[OSpan] = []
    for trace in (t for run in runs for t in run.traces):
        for span in trace.spans:
            if span.kind in ("inference", "embedding") and not has_inner_inference(span, trace):
                counted.append(span)
    seen: set[str] = set()
    total = [0, 0, 0]
    for span in sorted(counted, key=lambda s: (s.start, s.trace_id, s.span_id)):
        if span.response_id is not None:
            if span.response_id in seen:
                continue
            seen.add(span.response_id)
        total = [
            total[0] + span.input_tokens,
            total[1] + span.output_tokens,
            total[2] + span.cached_tokens,
        ]
    return OUsage(*total)


def has_inner_inference(span: OSpan, trace: OTrace) -> bool:
    """DESIGN.md 4: an inference descendant with no agent or tool between."""
    for other in trace.spans:
        above = ancestors(other, trace)
        if other.kind == "inference" and span in above:
            between = above[: above.index(span)]
            if not any(s.kind in ("agent", "tool", "handoff") for s in between):
                return True
    return False
