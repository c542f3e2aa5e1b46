"""What a contract may say beyond its grammar (RULES.md 23, 25, 26): who may read what, and what can never be meant.

The rule this file keeps: whatever would make a verdict depend on what it must not depend on, or could never be true or
false, is refused before it judges anybody, with the field and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import product
from typing import Any

from pipeline.core.contracts.expressions import SESSION_FIELDS, Expression, Truth
from pipeline.core.timeline import TimeRules, nanoseconds
from schemas.contract import Contract, Criterion
from schemas.segment import ON_TEN, Measure, Rate

Path = tuple[Any, ...]
Complaint = tuple[Path, str, str]
"""Where, what is wrong, what to do."""

LATE_FIELDS = frozenset({"claimed", "turns", "handoffs"})
EVIDENCE = frozenset({"evidence"})
NAMES = [f"name-{index}" for index in range(8)]
TYPICAL: Mapping[str, Any] = {
    "agents": NAMES, "tools": NAMES, "models": NAMES, "turns": 2, "runs": 2, "handoffs": 1, "errors": 1, "retries": 1,
    "guardrails": {"checks": 2, "tripped": 1}, "duration_s": 90.5, "claimed": True,
}  # fmt: skip
EMPTY: Mapping[str, Any] = {
    "agents": [], "tools": [], "models": [], "turns": 0, "runs": 0, "handoffs": 0, "errors": 0, "retries": 0,
    "guardrails": {"checks": 0, "tripped": 0}, "duration_s": 0.0, "claimed": False,
}  # fmt: skip
KINDS: tuple[Any, ...] = (True, 1, 1.5, "1", NAMES)
MOST_TRIES = 625
OPEN = ("state", "evidence", "resource")
"""Variables whose fields may be of any kind."""


def complaints(contract: Contract, rules: TimeRules) -> Iterator[Complaint]:
    """Everything that is wrong with a contract whose grammar is well."""
    for field, banned in (
        ("applies_when", EVIDENCE),
        ("claimed_when", EVIDENCE),
        ("refused_when", EVIDENCE | {"state"}),
        ("invalid_when", EVIDENCE | {"state"}),
    ):
        yield from _expression((field,), getattr(contract, field), banned, late=False)[1]
    for index, criterion in enumerate(contract.criteria):
        yield from _criterion(("criteria", index), criterion)
    yield from _windows(contract, rules)
    yield from _goal(contract)
    yield from _targets(contract)
    yield from _expected(contract)


def _criterion(at: Path, criterion: Criterion) -> Iterator[Complaint]:
    independent = criterion.trust == "independent"
    banned = frozenset({"state", "tools", "resource", "session"}) if independent else frozenset[str]()
    read: set[str] = set()
    for field in ("check", "fails_when"):
        compiled, wrong = _expression((*at, field), getattr(criterion, field), banned, late=True)
        yield from wrong
        if compiled is not None:
            read |= compiled.variables
            if independent and not compiled.variables & EVIDENCE:
                text = "reads no evidence, so nobody independent is asked"
                yield (*at, field), text, "read evidence.<name>, or leave trust: independent out"
            elif independent and field == "check" and compiled.holds({"evidence": {}}) is Truth.TRUE:
                text = "holds without any evidence, so silence would verify it"
                yield (*at, field), text, "write what the evidence must say, such as evidence.x == 'settled'"
    yield from _expression((*at, "applies"), criterion.applies, EVIDENCE, late=True)[1]
    if "evidence" in read and criterion.deadline is None:
        text = "reads evidence, which may come at any time, so it needs a deadline"
        yield (*at, "check"), text, "add one, such as `deadline: 24h`"


def _expression(
    at: Path, source: str | None, banned: frozenset[str], late: bool
) -> tuple[Expression | None, list[Complaint]]:
    if source is None:
        return None, []
    try:
        expression = Expression(source)
    except ValueError as error:
        text, _, remedy = str(error).partition("; ")
        return None, [(at, text, remedy or "see docs/contracts.md for what an expression may say")]
    found: list[Complaint] = []
    for variable in sorted(expression.variables & banned):
        allowed = ", ".join(sorted({"state", "evidence", "tools", "resource", "session"} - banned))
        found.append((at, f"may not read `{variable}` here", f"it may read {allowed}"))
    named = expression.reads("session")
    if unknown := named - SESSION_FIELDS:
        found.append(
            (at, f"session has no {', '.join(sorted(unknown))}", f"it has {', '.join(sorted(SESSION_FIELDS))}")
        )
    if not late and named & LATE_FIELDS:
        text = f"may not read session.{', session.'.join(sorted(named & LATE_FIELDS))} here: it is known too late"
        found.append((at, text, "read it in check, fails_when or applies"))
    if not found:
        found += [(at, text, remedy) for text, remedy in _never_meant(expression)]
    return expression, found


def _never_meant(expression: Expression) -> Iterator[tuple[str, str]]:
    """What is never true or false, whatever the session: told by trying."""
    fields = [(variable, name) for variable in OPEN for name in sorted(expression.reads(variable))]
    if len(KINDS) ** len(fields) > MOST_TRIES:
        return
    answers, raised = [], ""
    for kinds in product(KINDS, repeat=len(fields)):
        given: dict[str, dict[str, Any]] = {name: {} for name in OPEN}
        for (variable, name), value in zip(fields, kinds, strict=True):
            given[variable][name] = value
        for session in (TYPICAL, EMPTY):
            try:
                answers.append(expression.value({**given, "tools": {}, "session": session}))
            except Exception as error:  # whatever CEL raises is told below, or is the session's own
                raised = str(error) or type(error).__name__
    if any(isinstance(one, bool) for one in answers):
        return
    if answers:
        kind = type(answers[0]).__name__
        yield f"gives a value of kind {kind}, which is neither true nor false", "compare it with something, as in x > 0"
    elif not fields:  # what a field may be is not known, so that another value might do
        said = " ".join(raised.split("Convert", 1)[0].split())
        yield f"raises whatever the session is: {said}", "compare values of one kind"


def _windows(contract: Contract, rules: TimeRules) -> Iterator[Complaint]:
    given: list[tuple[Path, timedelta | None]] = [
        ((name,), getattr(contract, name))
        for name in ("reopen_window", "resume_window", "wait_window", "closing_grace")
    ]
    given += [(("criteria", index, "deadline"), one.deadline) for index, one in enumerate(contract.criteria)]
    for path, window in given:
        if window is not None and nanoseconds(window) > rules.retention:
            days = rules.retention / nanoseconds(timedelta(days=1))
            text = f"is longer than outcomes are kept ({days:g} d), so that what it waits for would be refused"
            yield path, text, "shorten it, or raise TRUEUP_RETENTION"


def _goal(contract: Contract) -> Iterator[Complaint]:
    parts = contract.goal_achievement
    total = sum(part.weight for part in parts.values())
    if parts and abs(total - 1) > 1e-6:
        yield ("goal_achievement",), f"has weights that add up to {total:g}, so it would not end at 10", "make them 1"


def _targets(contract: Contract) -> Iterator[Complaint]:
    known = [*(rate.value for rate in Rate), *(measure.value for measure in Measure)]
    for name, value in contract.targets.items():
        if name not in known:
            yield ("targets", name), "is neither a rate nor a measure", f"there are {', '.join(known)}"
        elif name in list(Rate) and not 0 <= value <= 1:
            yield ("targets", name), f"is {value:g}, and a rate lies between 0 and 1", "write 0.9 for 90 %"
        elif name in ON_TEN and not 0 <= value <= 10:
            yield ("targets", name), f"is {value:g}, and its scale is 0 to 10", "write 8.5 for 8.5 of 10"


def _expected(contract: Contract) -> Iterator[Complaint]:
    named = [one.scenario for one in contract.expected_tool_calls]
    for index, name in enumerate(named):
        if name in named[:index]:
            yield ("expected_tool_calls", index, "scenario"), f"{name!r} is there twice", "put its calls into one list"
