"""Scenes in which systems of record take back what they said: versions, other addresses, retractions, revivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, tool
from pipeline.simulation.hard.families import (
    ACCEPTED,
    DECLINED,
    NO,
    ORDER,
    REFUSED,
    SETTLED,
    STATUS,
    TICKET,
    YES,
    by_key,
    task,
)  # fmt: skip
from pipeline.simulation.hard.scene import Scene, Trace
from pipeline.simulation.plan import HOUR_NS

ORDERS = (chat(), tool("create_cart"), tool("submit_order"), answer())
Data = Mapping[str, object] | None


def _order(scene: Scene, which: str = "a", minute: float = 0, *, paid: bool = True) -> Trace:
    """An order that is claimed to be placed, and paid."""
    key = scene.name(f"key-{which}")
    trace = scene.trace(scene.name(which), minute, *ORDERS, says=task(key=key))
    if paid:
        scene.say("evidence", "billing", trace.end_ns + 2 * HOUR_NS, by_key(key), SETTLED)
    return trace


def _orders_of_arrival(scene: Scene, versions: int) -> list[float]:
    """Hours until each version arrives: in order, or the last one first."""
    hours = [0.1 + 2.0 * one for one in range(versions)]
    return hours if scene.rng.random() < 0.5 else hours[::-1]


def other_address(scene: Scene) -> None:
    """The payment was booked to the wrong order, and is corrected to the right one."""
    wrong, right = _order(scene, "a", paid=False), _order(scene, "b", 5, paid=False)
    to, then = by_key(scene.name("key-a")), by_key(scene.name("key-b"))
    scene.say(
        "evidence", "billing", right.end_ns + HOUR_NS, to, SETTLED, SETTLED,
        readdressed={2: then}, arrive_h=_orders_of_arrival(scene, 2),
    )  # fmt: skip
    scene.session(scene.name("a"), [wrong], ORDER, complete=False, verified=False)
    scene.session(scene.name("b"), [right], ORDER, complete=True, verified=False)


def other_sort_of_address(scene: Scene) -> None:
    """A complaint is booked to a trace of one conversation, then to another conversation."""
    first, second = _order(scene, "a"), _order(scene, "b", 8)
    scene.say(
        "resolution", "survey", second.end_ns + HOUR_NS, {"trace_id": first.hex}, NO, NO,
        readdressed={2: {"session_id": scene.name("b")}}, arrive_h=_orders_of_arrival(scene, 2),
    )  # fmt: skip
    scene.session(scene.name("a"), [first], ORDER, complete=True, verified=False)
    scene.session(scene.name("b"), [second], ORDER, complete=True, verified=False, answer=False)


def other_kind(scene: Scene) -> None:
    """What was booked as the customer's answer was an opinion, and what was an opinion was a hand-over."""
    one = _order(scene)
    to = {"session_id": scene.name()}
    hours = _orders_of_arrival(scene, 2)
    score = {"score": 2, "scale": 5}
    scene.say("resolution", "survey", one.end_ns + HOUR_NS, to, NO, score, renamed={2: "feedback"}, arrive_h=hours)
    scene.say("feedback", "desk", one.end_ns + HOUR_NS, to, score, ACCEPTED, renamed={2: "escalation"}, arrive_h=hours)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False, escalated=True)


def versions(scene: Scene) -> None:
    """Declined, settled, declined, settled: the highest version holds, whenever it arrives."""
    one = _order(scene, paid=False)
    hours = [0.1, 3.0, 6.0, 9.0]
    scene.rng.shuffle(hours)
    said = (DECLINED, SETTLED, DECLINED, SETTLED)
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"trace_id": one.hex}, *said, arrive_h=hours)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False)


def retracted(scene: Scene) -> None:
    """All that was said against it is taken back, some of it before it was heard."""
    one = _order(scene)
    to = {"session_id": scene.name()}
    for kind, source, data in (
        ("escalation", "helpdesk", ACCEPTED), ("reopen", "helpdesk", TICKET), ("resolution", "survey", NO),
        ("invalidate", "ops", {"reason": "a test"}), ("refusal", "policy", {"reason": "policy"}),
    ):  # fmt: skip
        at_ns = one.end_ns + round(scene.rng.uniform(1, 20) * HOUR_NS)
        scene.say(kind, source, at_ns, to, data, None, arrive_h=_orders_of_arrival(scene, 2))
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False)


def retracted_proof(scene: Scene) -> None:
    """The payment is taken back: nothing proves the order any more."""
    one = _order(scene, paid=False)
    at_ns = one.end_ns + 3 * HOUR_NS
    scene.say(
        "evidence", "billing", at_ns, by_key(scene.name("key-a")), SETTLED, None, arrive_h=_orders_of_arrival(scene, 2)
    )
    scene.session(scene.name(), [one], ORDER, complete=False, verified=False)


def retracted_at_once(scene: Scene) -> None:
    """Said and taken back under the same version, whichever is heard first: it is taken back."""
    one = _order(scene)
    to = {"trace_id": one.hex}
    for kind, data, hours in (("escalation", ACCEPTED, (0.1, 3.0)), ("reopen", TICKET, (3.0, 0.1))):
        scene.say(kind, "helpdesk", one.end_ns + HOUR_NS, to, data, None, numbers=(4, 4), arrive_h=hours)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False)


def revived(scene: Scene) -> None:
    """Said, taken back, and said again: payment, escalation and complaint hold."""
    one = _order(scene, paid=False)
    hours = [0.1, 2.0, 4.0]
    scene.rng.shuffle(hours)
    paid: tuple[Data, ...] = (SETTLED, None, SETTLED)
    handed: tuple[Data, ...] = (ACCEPTED, None, ACCEPTED)
    denied: tuple[Data, ...] = (NO, None, NO)
    to = by_key(scene.name("key-a"))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, to, *paid, arrive_h=hours)
    scene.say("escalation", "helpdesk", one.end_ns + 2 * HOUR_NS, to, *handed, arrive_h=hours)
    scene.say("resolution", "survey", one.end_ns + 3 * HOUR_NS, to, *denied, arrive_h=hours)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False, escalated=True, answer=False)


def refuted_escalation(scene: Scene) -> None:
    """The person was never reached, after all; that it was tried stays."""
    one = scene.trace(scene.name(), 0, *SEARCHES, says=task(STATUS))
    to = {"session_id": scene.name()}
    scene.say(
        "escalation", "helpdesk", one.end_ns + HOUR_NS, to, ACCEPTED, REFUSED, arrive_h=_orders_of_arrival(scene, 2)
    )
    scene.session(scene.name(), [one], STATUS, complete=True, attempted=True)


def invalidated(scene: Scene) -> None:
    """Operations find out, days later, that it was a test."""
    one = _order(scene)
    scene.say("invalidate", "ops", one.end_ns + 60 * HOUR_NS, {"trace_id": one.hex}, {"reason": "a drill"})
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False, invalid=True)


def refused(scene: Scene) -> None:
    """The policy team says that the agent rightly refused: not eligible, and no claim is assumed."""
    one = scene.trace(scene.name(), 0, *SEARCHES, says=task(STATUS, claim=None))
    scene.say("refusal", "policy", one.end_ns + 5 * HOUR_NS, {"session_id": scene.name()}, {"reason": "policy"})
    scene.session(scene.name(), [one], STATUS, complete=True, claimed=False, eligible=False)


def reopened_unclaimed(scene: Scene) -> None:
    """The help desk reopens what the agent itself had called a failure: not resolved, and no claim is lost."""
    one = scene.trace(scene.name(), 0, *SEARCHES, says=task(STATUS, claim="failed"))
    scene.say("reopen", "helpdesk", one.end_ns + 20 * HOUR_NS, {"session_id": scene.name()}, TICKET)
    scene.session(scene.name(), [one], STATUS, complete=True, claimed=False, reopened=True)


def evaluated(scene: Scene) -> None:
    """Judges and customers score it, again and again, abstain and fail: the latest scores hold, and no rate listens."""
    one = _order(scene)
    to = {"session_id": scene.name()}
    judged: tuple[Mapping[str, object], ...] = (
        {"name": "information_accuracy", "score": 0, "label": "poor", "layer": "memory"},
        {"name": "information_accuracy", "score": 2, "label": "fair", "layer": "memory"},
        {"name": "information_accuracy", "state": "error"},
        {"name": "action_correctness", "score": 4},
        {"name": "effort_minimization", "score": 3},
        {"name": "coherence", "score": 3, "contradictions": 2},
        {"name": "coherence", "state": "abstained"},
    )
    for number, data in enumerate(judged):
        hours = [scene.rng.uniform(0.1, 9)]
        scene.say("evaluation", "judge", one.end_ns + (number + 1) * HOUR_NS, to, data, arrive_h=hours)
    scene.say("feedback", "survey", one.end_ns + HOUR_NS, to, {"score": 1, "scale": 5})
    scene.say("resolution", "survey", one.end_ns + HOUR_NS, to, YES)
    # Ten times 0.3 of two thirds, 0.4 and 0.3.
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False, answer=True, goal=9.0)


def evaluated_by_itself(scene: Scene) -> None:
    """The agent's own judge writes its scores on the spans; one of them is corrected by a judge elsewhere."""
    scores = {"information_accuracy": 3, "action_correctness": 2, "effort_minimization": 3}
    acts = (chat(), tool("find_order"), replace(answer(), scores=scores, late_h=scene.rng.choice((0.0, 3.0))))
    one = scene.trace(scene.name(), 0, *acts, says=task(STATUS))
    data = {"name": "effort_minimization", "score": 0}
    scene.say("evaluation", "judge", one.end_ns + 5 * HOUR_NS, {"trace_id": one.hex}, data)
    scene.session(scene.name(), [one], STATUS, complete=True, goal=5.0)


def evaluated_in_part(scene: Scene) -> None:
    """A part that nobody scored, or whose score is taken back, leaves the whole unknown: it is no zero."""
    one = _order(scene)
    to = {"trace_id": one.hex}
    for name, versions in (
        ("information_accuracy", ({"name": "information_accuracy", "score": 3}, None)),
        ("action_correctness", ({"name": "action_correctness", "score": 4},)),
        ("effort_minimization", ({"name": "effort_minimization", "state": "abstained"},)),
    ):
        scene.say("evaluation", f"judge of {name}", one.end_ns + HOUR_NS, to, *versions)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False)


def past_horizon(scene: Scene) -> None:
    """All that comes after the last horizon is shown, and judged no more."""
    one = _order(scene)
    to = {"session_id": scene.name(), "ordinal": 1}
    for kind, source, data in (
        ("escalation", "helpdesk", ACCEPTED), ("reopen", "helpdesk", TICKET), ("resolution", "survey", NO),
        ("evidence", "billing", DECLINED), ("evidence", "warehouse", {"shipment": "as_ordered"}),
    ):  # fmt: skip
        scene.say(kind, source, one.end_ns + round(scene.rng.uniform(72.5, 73.5) * HOUR_NS), to, data)
    scene.session(scene.name(), [one], ORDER, complete=True, verified=False)
