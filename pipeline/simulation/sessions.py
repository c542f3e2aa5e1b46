"""Draws one session: how it ends, how its runs follow each other, what it reports.

Every gap is well inside or well outside the limit that it is about, so that the truth needs no tie-breaking.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pipeline.simulation.plan import (
    MINUTE_NS,
    Ending,
    HandOff,
    RunPlan,
    SessionPlan,
    Shape,
    Standing,
    Value,
)
from pipeline.simulation.profiles import KEY, Family
from pipeline.simulation.runs import Calls, RunOrder, RunWriter

CLAIMS = {
    Ending.CLAIMS_COMPLETED: "completed",
    Ending.CLAIMS_FAILED: "failed",
    Ending.CLAIMS_ESCALATED: "escalated",
    Ending.CLAIMS_REFUSED: "refused",
}
ENDINGS = {
    Ending.CLAIMS_COMPLETED: 0.62,
    Ending.ANSWERS: 0.24,
    Ending.CLAIMS_FAILED: 0.03,
    Ending.CLAIMS_ESCALATED: 0.012,
    Ending.CLAIMS_REFUSED: 0.014,
    Ending.CRASHES: 0.03,
    Ending.WAITS_FOR_CUSTOMER: 0.034,
    Ending.WAITS_FOR_PERSON: 0.02,
}
WAITS = (Ending.WAITS_FOR_CUSTOMER, Ending.WAITS_FOR_PERSON)
SHAPES = {Shape.ONE_TURN: 0.5, Shape.SEVERAL_TURNS: 0.34, Shape.RESUMED: 0.1, Shape.INTERRUPTED: 0.06}
SHAPES_AFTER_CLAIM = {Shape.THANKED: 0.07, Shape.AFTERWORD: 0.05, Shape.SECOND_THOUGHT: 0.03}
TEST_SHARE = 0.02
GUARDED_SHARE = 0.025


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """What the conversation asks of a session. `companion`: it has others beside it."""

    family: Family
    key: str
    issue: str | None
    subject: str
    attributed: bool = True
    companion: bool = False
    followed: bool = False


def draw_session(rng: Random, order: SessionOrder, start_ns: int) -> SessionPlan:
    """A session that starts at `start_ns`, with no outcomes yet."""
    standing = _standing(rng, order)
    ending, hand_off = _ending(rng, order, standing)
    shape = _shape(rng, order, ending, hand_off, standing)
    calls = Calls()
    reported = standing is not Standing.GUARDED and ending not in (*WAITS, Ending.CRASHES)
    state, passed, exempt = _reported(rng, order, ending) if reported else ({}, frozenset(), frozenset())
    orders = _run_orders(rng, order, shape, ending, hand_off, standing, state)
    runs: list[RunPlan] = []
    now_ns = start_ns
    for gap_ns, run in orders:
        writer = RunWriter(rng, order.family, calls, now_ns + gap_ns)
        root = writer.write(run)
        now_ns = root.end_ns
        runs.append(RunPlan(root, rng.random() < 0.5, standing is Standing.TEST))
    return SessionPlan(
        family=order.family.name, key=order.key, issue=order.issue, ending=ending, hand_off=hand_off, shape=shape,
        standing=standing, runs=tuple(runs), start_ns=start_ns, end_ns=now_ns, tool_calls=calls.made,
        tool_calls_ok=calls.ok, passed=passed, exempt=exempt,
    )  # fmt: skip


def _standing(rng: Random, order: SessionOrder) -> Standing:
    drawn = rng.random()
    if drawn < TEST_SHARE:
        return Standing.VALID if order.companion else Standing.TEST
    return Standing.GUARDED if drawn < TEST_SHARE + GUARDED_SHARE else Standing.VALID


def _ending(rng: Random, order: SessionOrder, standing: Standing) -> tuple[Ending, HandOff]:
    if standing is Standing.GUARDED:
        return rng.choice((Ending.ANSWERS, Ending.CLAIMS_REFUSED)), HandOff.NONE
    drawn = rng.random()
    if drawn < order.family.hand_off:
        return Ending.ANSWERS, HandOff.ACCEPTED
    if drawn < order.family.hand_off + order.family.hand_off_failed:
        return rng.choice((Ending.ANSWERS, Ending.CLAIMS_COMPLETED, Ending.CLAIMS_FAILED)), HandOff.FAILED
    ending = rng.choices(list(ENDINGS), list(ENDINGS.values()))[0]
    # A session that waits would be resumed by whatever follows: it has to be the last of its conversation.
    return (Ending.ANSWERS if order.followed and ending in WAITS else ending), HandOff.NONE


def _shape(rng: Random, order: SessionOrder, ending: Ending, hand_off: HandOff, standing: Standing) -> Shape:
    if not order.attributed or standing is Standing.GUARDED:
        return Shape.ONE_TURN
    shapes = dict(SHAPES)
    if ending in CLAIMS:
        shapes |= SHAPES_AFTER_CLAIM
        if ending is not Ending.CLAIMS_COMPLETED or hand_off is not HandOff.NONE:
            del shapes[Shape.SECOND_THOUGHT]
    return rng.choices(list(shapes), list(shapes.values()))[0]


def _reported(
    rng: Random, order: SessionOrder, ending: Ending
) -> tuple[dict[str, Value], frozenset[str], frozenset[str]]:
    """The state that the agent reports, which state criteria it satisfies, and which criteria do not apply."""
    family = order.family
    modesty = 1.0 if ending is Ending.CLAIMS_COMPLETED else 0.97 if ending is Ending.ANSWERS else 0.6
    gates = {gate: rng.random() < 0.85 for gate in _gates(family)}
    state: dict[str, Value] = dict(gates)
    passed: set[str] = set()
    for criterion in family.state:
        good = rng.random() < criterion.pass_rate * modesty
        state |= criterion.good if good else rng.choice(criterion.bad)
        if good:
            passed.add(criterion.id)
    exempt = {criterion.id for criterion in family.criteria if criterion.gate is not None and not gates[criterion.gate]}
    filled = {name: order.key if value == KEY else value for name, value in state.items()}
    return {f"trueup.state.{name}": value for name, value in filled.items()}, frozenset(passed), frozenset(exempt)


def _gates(family: Family) -> list[str]:
    return [criterion.gate for criterion in family.criteria if criterion.gate is not None]


def _run_orders(
    rng: Random,
    order: SessionOrder,
    shape: Shape,
    ending: Ending,
    hand_off: HandOff,
    standing: Standing,
    state: dict[str, Value],
) -> list[tuple[int, RunOrder]]:
    """The runs of the session, each with the pause before it."""
    family = order.family
    root: dict[str, Value] = {"trueup.task.family": family.name, "trueup.subject": order.subject}
    if order.issue is not None:
        root["trueup.issue"] = order.issue
    keys: dict[str, Value] = {f"trueup.correlation.{family.key_name}": order.key}
    # Flags that an early turn reports as not yet so; only flags that the last turn reports again.
    doubts: dict[str, Value] = {
        name: False for name, value in state.items() if value is True and name.removeprefix("trueup.state.") not in
        _gates(family) and rng.random() < 0.5
    }  # fmt: skip
    by_tool = family.claim_tool is not None and ending is Ending.CLAIMS_COMPLETED
    claim: dict[str, Value] = {}
    if ending in CLAIMS and not (by_tool and rng.random() < 0.5):
        claim = {"trueup.task.outcome": CLAIMS[ending]}
    question = f"call_{rng.getrandbits(64):016x}"
    last = RunOrder(
        ending=ending, hand_off=hand_off, guarded=standing is Standing.GUARDED, claim_by_tool=by_tool,
        resumes=question if shape is Shape.INTERRUPTED else None,
        root=root, claim=claim, state=state, early_state=doubts, keys=keys,
    )  # fmt: skip
    early = RunOrder(root=root, early_state=doubts, keys=keys)
    match shape:
        case Shape.ONE_TURN:
            return [(0, last)]
        case Shape.SEVERAL_TURNS:
            turns = rng.randint(1, 3)
            return [
                (0, early),
                *((_minutes(rng, 1, 12), early) for _ in range(turns - 1)),
                (_minutes(rng, 1, 12), last),
            ]
        case Shape.RESUMED:
            return [(0, early), (_minutes(rng, 40, 100), last)]
        case Shape.INTERRUPTED:
            asking = RunOrder(root=root, early_state=doubts, keys=keys, interrupts=question)
            return [(0, asking), (_minutes(rng, 10, 540), last)]
        case Shape.THANKED:
            return [(0, last), (_minutes(rng, 15, 90), RunOrder(bare=True))]
        case Shape.AFTERWORD:
            family_alone: dict[str, Value] = {"trueup.task.family": family.name}
            return [(0, last), (_minutes(rng, 0.5, 2.5), RunOrder(bare=True, root=family_alone))]
        case Shape.SECOND_THOUGHT:
            failing = RunOrder(root=root, early_state=doubts, keys=keys, claim={"trueup.task.outcome": "failed"})
            return [(0, failing), (_minutes(rng, 0.5, 2.5), last)]


def _minutes(rng: Random, least: float, most: float) -> int:
    return round(rng.uniform(least, most) * MINUTE_NS)
