"""Scenario sessions: their tool calls beside those that the contract expects (`expected_tool_calls`).

The rule this file keeps: what is not known is no score. Arguments are kept only of spans that say by themselves, or by
their resource, that they play a scenario; where they are not, names are compared and arguments are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pipeline.core.contracts.book import CompiledContract, ExpectedTool
from pipeline.core.judging.calls import ToolCall
from pipeline.core.judging.views import started_first
from schemas.span import Span
from schemas.verdict import Trial

DECIMALS = 6
Arguments = Mapping[str, str]


def trial_of(spans: Iterable[Span], contract: CompiledContract | None, calls: Sequence[ToolCall]) -> Trial | None:
    """The trial that a session is; None where it plays no scenario."""
    stated = sorted((one for one in spans if one.said is not None and one.said.scenario), key=started_first)
    if not stated:
        return None
    scenario = next(one.said.scenario for one in stated if one.said is not None)
    trial = next((one.said.trial for one in stated if one.said is not None and one.said.trial), "")
    expected = contract.expected_of(scenario) if contract is not None else None
    if expected is None:
        return Trial(scenario, trial, made=len(calls))
    return compared(scenario, trial, expected, calls)


def compared(scenario: str, trial: str, expected: Sequence[ExpectedTool], calls: Sequence[ToolCall]) -> Trial:
    """Precision and recall of names and of arguments; reliability is the mean of the two recalls.

    A call counts whether or not it ended well: that it was made is what is asked. A name that is called more often than
    expected lowers precision. Of nothing expected recall is 1, of nothing made precision is.
    """
    wanted, made = Counter(one.tool for one in expected), Counter(one.tool for one in calls)
    matched = (wanted & made).total()
    name_recall = _share(matched, wanted.total())
    known = _arguments(expected, calls)
    argument_precision, argument_recall = known if known is not None else (None, None)
    return Trial(
        scenario=scenario,
        trial=trial,
        expected=len(expected),
        made=len(calls),
        name_precision=_number(_share(matched, made.total())),
        name_recall=_number(name_recall),
        argument_precision=_number(argument_precision),
        argument_recall=_number(argument_recall),
        reliability=_number((name_recall + argument_recall) / 2) if argument_recall is not None else None,
    )


def _arguments(expected: Sequence[ExpectedTool], calls: Sequence[ToolCall]) -> tuple[Fraction, Fraction] | None:
    """Precision and recall of arguments over calls that were expected; None where a call's arguments are not known.

    Each expected call, in the order of the contract, takes of the calls of its tool the one that fits it best, the
    earliest of equal ones.
    """
    free = list(calls)
    right = asked = given = 0
    for one in expected:
        asked += len(one.arguments)
        same = [call for call in free if call.tool == one.tool]
        if not same:
            continue
        told = [(call, call.span.said.arguments if call.span.said is not None else None) for call in same]
        if any(arguments is None for _, arguments in told):
            if one.arguments:
                return None
            free.remove(same[0])
            continue
        best, arguments = max(told, key=lambda pair: _fitting(one, pair[1] or {}))
        free.remove(best)
        right += _fitting(one, arguments or {})
        given += len(arguments or {})
    return _share(right, given), _share(right, asked)


def _fitting(expected: ExpectedTool, arguments: Arguments) -> int:
    """How many of the expected arguments are there with the value expected."""
    return sum(name in arguments and value in (None, arguments[name]) for name, value in expected.arguments)


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(1)


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(round(value, DECIMALS))
