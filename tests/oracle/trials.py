"""Scenario sessions: their tool calls beside those that the contract expects of the scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tests.oracle.calls import OCall
from tests.oracle.model import OContract, OSpan
from tests.oracle.parts import OTrial
from tests.oracle.quality import rounded

Expected = tuple[str, Mapping[str, str | None]]


def share(part: int, whole: int) -> Fraction:
    """Of nothing, all of it."""
    return Fraction(part, whole) if whole else Fraction(1)


def right_arguments(expected: Mapping[str, str | None], given: Mapping[str, str]) -> int:
    """How many of the expected arguments are there with their value, or with any where any will do."""
    return sum(name in given and (value is None or given[name] == value) for name, value in expected.items())


def arguments_compared(expected: Sequence[Expected], calls: Sequence[OCall]) -> tuple[Fraction, Fraction] | None:
    """Precision and recall over the calls that were expected; None where they are not known."""
    free, right, told, asked = list(calls), 0, 0, sum(len(arguments) for _, arguments in expected)
    for tool, arguments in expected:
        same = [call for call in free if call.name == tool]
        given = [call.arguments for call in same]
        known = [one for one in given if one is not None]
        if len(known) < len(given):
            if arguments:
                return None
            free.remove(same[0])
        elif known:
            fits = [right_arguments(arguments, one) for one in known]
            best = fits.index(max(fits))
            free.remove(same[best])
            right, told = right + fits[best], told + len(known[best])
    return share(right, told), share(right, asked)


def trial_of(spans: Sequence[OSpan], contract: OContract | None, calls: Sequence[OCall]) -> OTrial | None:
    """Precision and recall of names and arguments; reliability is the mean of the two recalls."""
    playing = sorted((s for s in spans if s.scenario), key=lambda s: (s.start, s.span_id, s.trace_id))
    if not playing:
        return None
    scenario = playing[0].scenario or ""
    trial = next((s.trial for s in playing if s.trial), "")
    stated = contract.expected if contract is not None else {}
    expected = stated.get(scenario, stated.get(""))
    if expected is None:
        return OTrial(scenario, trial, 0, len(calls))
    wanted, made = Counter(tool for tool, _ in expected), Counter(call.name for call in calls)
    common = sum(min(n, made[tool]) for tool, n in wanted.items())
    recall = share(common, len(expected))
    compared = arguments_compared(expected, calls)
    return OTrial(
        scenario,
        trial,
        len(expected),
        len(calls),
        rounded(share(common, len(calls))),
        rounded(recall),
        rounded(compared[0]) if compared else None,
        rounded(compared[1]) if compared else None,
        rounded((recall + compared[1]) / 2) if compared else None,
    )
