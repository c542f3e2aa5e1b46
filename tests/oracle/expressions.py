"""Rules 23 to 25: the variables of an expression, and what it comes to: true, false, unknown or an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

import cel

from tests.oracle.calls import handoffs_counted, tool_attempts, tool_calls
from tests.oracle.model import SECOND, Expression, OContract, ORun, OSpan, Unknown
from tests.oracle.spans import leaves, really_failed

Variables = Mapping[str, Mapping[str, object]]
NO_CALLS: Mapping[str, int] = {"calls": 0, "ok": 0, "failed": 0}


class Truth(Enum):
    """What a check comes to."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    ERROR = "error"


@dataclass(frozen=True)
class Answer:
    """Truth, and for an unknown whether a state field that the expression names is missing."""

    truth: Truth
    not_reported: bool = False

    @property
    def holds(self) -> bool:
        """Only true is true."""
        return self.truth is Truth.TRUE


class Tools(dict[str, Mapping[str, int]]):
    """`tools`: zeros if uncalled."""

    def __missing__(self, name: str) -> Mapping[str, int]:
        return NO_CALLS


@cache
def compiled(expression: str) -> cel.Program:
    """A CEL text, compiled once."""
    return cel.compile(expression)


def names_after(word: str, text: str) -> set[str]:
    """The fields that a text reads of one variable: `state.x`, `state['x']`."""
    pattern = rf"""(?<![\w.]){word}(?:\.(\w+)|\[\s*(?:'([^']*)'|"([^"]*)")\s*\])"""
    return {next(filter(None, groups), "") for groups in re.findall(pattern, text)}


def parts_of(expression: Expression, sign: str) -> list[str]:
    """What the sign joins where it stands in no brackets and no text; a choice (`?`) is one part."""
    if not isinstance(expression, str) or "?" in expression:
        return []
    parts = expression.split(sign)
    pairs = (("(", ")"), ("[", "]"), ("{", "}"), ("'", "'"), ('"', '"'))
    whole = all(
        part.count(a) == part.count(b) and (a != b or part.count(a) % 2 == 0) for part in parts for a, b in pairs
    )
    return parts if whole else []


def evaluate(expression: Expression, variables: Variables) -> Answer:
    """Rule 25: a missing field is unknown, anything else that raises (or is no truth value) is an error.

    Of several parts true decides `||` and false `&&`, wherever it stands; else an error goes before unknown.
    """
    for sign, decides in (("||", Truth.TRUE), ("&&", Truth.FALSE)):
        parts = parts_of(expression, sign)
        if len(parts) > 1:
            found = {evaluate(part, variables).truth for part in parts}
            other = Truth.FALSE if decides is Truth.TRUE else Truth.TRUE
            truth = next(one for one in (decides, Truth.ERROR, Truth.UNKNOWN, other) if one in found)
            missing = names_after("state", str(expression)) - set(variables.get("state", {}))
            return Answer(truth, truth is Truth.UNKNOWN and bool(missing))
    try:
        if isinstance(expression, str):
            given = dict(variables)
            tools = dict(variables.get("tools", {}))
            given["tools"] = dict.fromkeys(names_after("tools", expression), NO_CALLS) | tools
            value = compiled(expression).execute(given)
        else:
            value = expression(variables)
    except KeyError:
        missing = names_after("state", str(expression)) - set(variables.get("state", {}))
        return Answer(Truth.UNKNOWN, bool(missing))
    except Unknown as unknown:
        return Answer(Truth.UNKNOWN, "state" in unknown.args)
    except Exception:
        return Answer(Truth.ERROR)
    if not isinstance(value, bool):
        return Answer(Truth.ERROR)
    return Answer(Truth.TRUE if value else Truth.FALSE)


def state_of(spans: Sequence[OSpan]) -> dict[str, object]:
    """Rule 24: of each name the non-null value on the span that ended last."""
    state: dict[str, object] = {}
    for span in sorted(spans, key=lambda s: (s.end, s.start, s.span_id, s.trace_id)):
        state.update({name: value for name, value in span.state.items() if value is not None})
    return state


def resource_of(spans: Sequence[OSpan]) -> dict[str, object]:
    """Rule 23: of each name the value on the earliest span that has it."""
    resource: dict[str, object] = {}
    for span in sorted(spans, key=lambda s: (s.start, s.span_id, s.trace_id)):
        for name, value in span.resource.items():
            if value is not None:
                resource.setdefault(name, value)
    return resource


def in_order_of_start(named: Sequence[tuple[OSpan, str | None]]) -> list[str]:
    """Rule 23: distinct names by first start."""
    ordered = sorted(named, key=lambda pair: (pair[0].start, pair[0].span_id, pair[0].trace_id))
    return list(dict.fromkeys(name for _, name in ordered if name))


def variables_of(runs: Sequence[ORun], contract: OContract | None) -> dict[str, Mapping[str, object]]:
    """Rule 23: what any expression may read; `claimed`, `turns`, `handoffs` and `evidence` come on top."""
    spans = [span for run in runs for span in run.spans]
    calls = tool_calls(runs, contract)
    tools = Tools()
    for name in {call.name for call in calls}:
        results = [call.deciding for call in calls if call.name == name]
        failed = sum(a is not None and a.failed for a in results)
        tools[name] = {"calls": len(results), "ok": len(results) - failed, "failed": failed}
    guardrails = [s for s in spans if s.kind == "guardrail"]
    session: dict[str, object] = {
        "agents": in_order_of_start([(s, s.agent) for s in spans if s.kind == "agent"]),
        "tools": in_order_of_start([(a.span, a.name) for a in tool_attempts(runs, contract)]),
        "models": in_order_of_start([(s, s.model or s.requested_model) for s in spans if s.kind == "inference"]),
        "runs": len(runs),
        "errors": sum(really_failed(leaf) for run in runs for leaf in leaves(run.traces)),
        "retries": sum(call.retries for call in calls),
        "guardrails": {
            "checks": len(guardrails),
            "tripped": sum(s.guardrail_tripped is True for s in guardrails),
        },
        "duration_s": (max(run.end for run in runs) - min(run.start for run in runs)) / SECOND,
    }
    return {"state": state_of(spans), "tools": tools, "resource": resource_of(spans), "session": session}


def judging_variables(
    runs: Sequence[ORun], contract: OContract | None, turns: int, claimed: bool, evidence: Mapping[str, object]
) -> dict[str, Mapping[str, object]]:
    """Rule 23: what check, `fails_when` and `applies` may read."""
    variables = variables_of(runs, contract)
    more = {"turns": turns, "claimed": claimed, "handoffs": handoffs_counted(runs, contract)}
    present = {name: value for name, value in evidence.items() if value is not None}
    return variables | {"session": {**variables["session"], **more}, "evidence": present}


def is_refused_by_spans(runs: Sequence[ORun], contract: OContract | None) -> Answer:
    """Rule 26: `refused_when` may not read state."""
    if contract is None or contract.refused_when is None:
        return Answer(Truth.FALSE)
    return evaluate(contract.refused_when, variables_of(runs, contract) | {"state": {}})


def is_invalid_by_spans(runs: Sequence[ORun], contract: OContract | None) -> Answer:
    """Rule 23: `invalid_when` once for each distinct resource; any true one counts."""
    if contract is None or contract.invalid_when is None:
        return Answer(Truth.FALSE)
    variables = variables_of(runs, contract) | {"state": {}}
    resources: list[dict[str, object]] = []
    for span in (s for run in runs for s in run.spans):
        present = {name: value for name, value in span.resource.items() if value is not None}
        if present not in resources:
            resources.append(present)
    answers = [evaluate(contract.invalid_when, variables | {"resource": r}) for r in resources]
    return max(answers, key=lambda a: (a.holds, a.truth is Truth.ERROR))
