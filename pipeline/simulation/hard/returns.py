"""Scenes in which a customer comes back: in another conversation, for something else, too soon, too late."""

from __future__ import annotations

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, tool
from pipeline.simulation.hard.families import ORDER, RETURN, SETTLED, STATUS, by_key, task
from pipeline.simulation.hard.scene import Scene, Trace
from pipeline.simulation.plan import HOUR_NS, Value

ORDERS = (chat(), tool("submit_order"), answer())


def _asked(
    scene: Scene,
    which: str,
    hours: float,
    *,
    subject: str | None = "customer",
    issue: str | None = None,
    key: str | None = None,
    family: str = STATUS,
    claim: str | None = "completed",
    attributed: bool = True,
    late_h: float = 0.0,
) -> Trace:
    """A question of a customer, who, about what and on which order."""
    said: dict[str, Value] = task(
        family, claim=claim, issue=issue and scene.name(issue), key=key and scene.name(key),
        subject=subject and scene.name(subject),
    )  # fmt: skip
    return scene.trace(scene.name(which) if attributed else None, hours * 60, *SEARCHES, says=said, late_h=late_h)


def _unmoved(scene: Scene, **traces: Trace) -> None:
    """Nothing is taken back."""
    for which, trace in traces.items():
        scene.session(scene.name(which), [trace], STATUS, complete=True)


def elsewhere_by_issue(scene: Scene) -> None:
    """The same customer, the same trouble, a new chat: the claim did not hold."""
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "b", scene.rng.uniform(3, 45), issue="lost", late_h=scene.rng.choice((0.0, 2.0)))
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def elsewhere_by_key(scene: Scene) -> None:
    """The same order; what the trouble is, only the second says. The first comes late."""
    one = _asked(scene, "a", 0, key="order", late_h=scene.rng.choice((0.0, 9.0)))
    two = _asked(scene, "b", scene.rng.uniform(3, 45), key="order", issue="lost")
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def elsewhere_assumed(scene: Scene) -> None:
    """A claim that is only assumed is taken back as well."""
    one = _asked(scene, "a", 0, issue="lost", claim=None)
    two = _asked(scene, "b", scene.rng.uniform(3, 45), issue="lost", claim=None)
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def elsewhere_refused(scene: Scene) -> None:
    """A refusal, told later, takes away the assumed claim, but not that the customer came back for it."""
    one = _asked(scene, "a", 0, issue="lost", claim=None)
    two = _asked(scene, "b", 10, issue="lost")
    scene.say("refusal", "policy", one.end_ns + 20 * HOUR_NS, {"trace_id": one.hex}, {"reason": "policy"})
    scene.session(scene.name("a"), [one], STATUS, complete=True, claimed=False, eligible=False, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def elsewhere_of_two(scene: Scene) -> None:
    """Every claim that qualifies is taken back, in whatever conversation."""
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "b", 1, issue="lost")
    three = _asked(scene, "c", 8, issue="lost", key="order")
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True, across=True)
    scene.session(scene.name("c"), [three], STATUS, complete=True)


def elsewhere_and_here(scene: Scene) -> None:
    """A later session of its own conversation, for another trouble: taken back elsewhere, and no follow-up there."""
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "b", 1, issue="broken")
    three = _asked(scene, "b", 9, issue="lost")
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)
    scene.session(scene.name("b"), [three], STATUS, complete=True)


def elsewhere_one_of_two(scene: Scene) -> None:
    """Of a conversation's claims only the one about the same trouble is taken back elsewhere."""
    who = scene.name("a")
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "a", 4, key="order")
    three = _asked(scene, "b", 9, issue="lost")
    scene.session(who, [one], STATUS, complete=True, reopened=True, across=True)
    scene.session(who, [two], STATUS, complete=True)
    scene.session(scene.name("b"), [three], STATUS, complete=True)


def elsewhere_moved(scene: Scene) -> None:
    """Whoever came back had no id at first: only with it, hours later, is it another conversation."""
    one = _asked(scene, "a", 0, issue="lost")
    says = task(STATUS, issue=scene.name("lost"), subject=scene.name("customer"))
    two = scene.trace(scene.name("b"), 5 * 60, *SEARCHES, says=says, root_late_h=scene.rng.uniform(1, 9))
    scene.session(scene.name("a"), [one], STATUS, complete=True, across=True)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def elsewhere_other_issue(scene: Scene) -> None:
    """The same order, but each says what the trouble is, and it is another."""
    _unmoved(
        scene,
        a=_asked(scene, "a", 0, issue="lost", key="order"),
        b=_asked(scene, "b", 9, issue="broken", key="order"),
    )


def elsewhere_other_customer(scene: Scene) -> None:
    """The same order and trouble, but nobody says that it is the same customer."""
    _unmoved(
        scene,
        a=_asked(scene, "a", 0, issue="lost", key="order"),
        b=_asked(scene, "b", 9, issue="lost", key="order", subject="neighbour"),
        c=_asked(scene, "c", 12, issue="lost", key="order", subject=None),
    )


def elsewhere_too_soon(scene: Scene) -> None:
    """Two chats at once are no return."""
    _unmoved(scene, a=_asked(scene, "a", 0, issue="lost"), b=_asked(scene, "b", 1.5, issue="lost"))


def elsewhere_too_late(scene: Scene) -> None:
    """After the reopen window it is a new case."""
    late = 48 + scene.rng.uniform(1, 6)
    _unmoved(scene, a=_asked(scene, "a", 0, issue="lost"), b=_asked(scene, "b", late, issue="lost"))


def elsewhere_nothing_common(scene: Scene) -> None:
    """The same customer and task, but neither trouble nor order is said to be the same."""
    _unmoved(scene, a=_asked(scene, "a", 0, issue="lost"), b=_asked(scene, "b", 9, key="order"))


def elsewhere_other_task(scene: Scene) -> None:
    """The same customer and trouble, another task."""
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "b", 9, issue="lost", family=RETURN)
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, {"trace_id": two.hex}, {"refund_status": "settled"})
    scene.session(scene.name("a"), [one], STATUS, complete=True)
    scene.session(scene.name("b"), [two], RETURN, complete=True, verified=True)


def elsewhere_unattributed(scene: Scene) -> None:
    """A run of no known conversation takes nothing back."""
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "b", 9, issue="lost", attributed=False)
    scene.session(scene.name("a"), [one], STATUS, complete=True)
    scene.session(two.alone, [two], STATUS, complete=True)


def elsewhere_never_claimed(scene: Scene) -> None:
    """What said itself that it failed has no claim to lose."""
    one = _asked(scene, "a", 0, issue="lost", claim="failed")
    two = _asked(scene, "b", 9, issue="lost")
    scene.session(scene.name("a"), [one], STATUS, complete=True, claimed=False)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def follow_up(scene: Scene) -> None:
    """Back in the same conversation: for another trouble, then for another task, then too late."""
    who, key = scene.name("a"), scene.name("order")
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "a", 5, issue="broken")
    three = scene.trace(who, 10 * 60, *ORDERS, says=task(ORDER, key=key))
    scene.say("evidence", "billing", three.end_ns + HOUR_NS, by_key(key), SETTLED)
    four = _asked(scene, "a", 5 + 48 + 3, issue="broken")
    scene.session(who, [one], STATUS, complete=True)
    scene.session(who, [two], STATUS, complete=True, follow_up=True)
    scene.session(who, [three], ORDER, complete=True, verified=False, follow_up=True)
    scene.session(who, [four], STATUS, complete=True, follow_up=True)


def reopened_twice(scene: Scene) -> None:
    """Back for the same trouble, again and again: each takes the claim before it back."""
    traces = [_asked(scene, "a", 6 * step, issue="lost") for step in range(3)]
    for step, trace in enumerate(traces):
        scene.session(scene.name("a"), [trace], STATUS, complete=True, reopened=step < 2)


def reopened_behind(scene: Scene) -> None:
    """The session between did not claim anything: the claim before it is the one that is taken back."""
    who = scene.name("a")
    one = _asked(scene, "a", 0, issue="lost")
    two = _asked(scene, "a", 6, issue="lost", claim="failed")
    three = _asked(scene, "a", 12, issue="lost")
    scene.session(who, [one], STATUS, complete=True, reopened=True)
    scene.session(who, [two], STATUS, complete=True, claimed=False)
    scene.session(who, [three], STATUS, complete=True)
