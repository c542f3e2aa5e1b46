"""Scenes in which what arrives late cuts a conversation anew: ordinals move, and what is left over goes."""

from __future__ import annotations

from dataclasses import replace

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, tool
from pipeline.simulation.hard.families import MULTI, NO, ORDER, SETTLED, STATUS, YES, by_key, claims, task
from pipeline.simulation.hard.scene import Scene
from pipeline.simulation.plan import HOUR_NS, MINUTE_NS


def late_claim(scene: Scene) -> None:
    """The span that claims the end of the first task comes hours late: what followed it was another session."""
    who, first, second = scene.name(), scene.name("first"), scene.name("second")
    claiming = answer(claims()).late(scene.rng.uniform(1, 7))
    one = scene.trace(who, 0, chat(), tool("submit_order"), claiming, says=task(claim=None, key=first), id_on_all=True)
    two = scene.trace(who, 25, chat(), tool("submit_order"), answer(), says=task(key=second))
    for key, trace in ((first, one), (second, two)):
        scene.say("evidence", "billing", trace.end_ns + HOUR_NS, by_key(key), SETTLED)
    # Without an ordinal it means the last session begun by then, of whatever cut.
    scene.say("resolution", "survey", one.end_ns + 10 * MINUTE_NS, {"session_id": who}, NO)
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": who}, YES)
    scene.session(who, [one], ORDER, complete=True, verified=False, reopened=True, answer=False)
    scene.session(who, [two], ORDER, complete=True, verified=False, answer=True)


def bridged(scene: Scene) -> None:
    """A run between two sessions comes late, and makes them one; the third moves up."""
    who = scene.name()
    says = task(STATUS, claim=None)
    one = scene.trace(who, 0, *SEARCHES, says=says)
    between = scene.trace(who, 95, *SEARCHES, says=says, late_h=scene.rng.uniform(6, 12))
    two = scene.trace(who, 190, *SEARCHES, says=says)
    three = scene.trace(who, 190 + 300, *SEARCHES, says=says)
    scene.say("resolution", "survey", three.end_ns + HOUR_NS, {"session_id": who, "ordinal": 2}, YES)
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": who, "ordinal": 1}, NO)
    scene.session(who, [one, between, two], STATUS, complete=True, reopened=True, answer=False)
    scene.session(who, [three], STATUS, complete=True, answer=True)


def earlier_start(scene: Scene) -> None:
    """The first span of a run comes late, and with it the run is no longer past the resume window."""
    who = scene.name()
    says = task(STATUS, claim=None)
    one = scene.trace(who, 0, *SEARCHES, says=says)
    slow = replace(chat(), before_s=70 * 60.0, late_h=scene.rng.uniform(3, 8))
    two = scene.trace(who, 160, slow, tool("find_order"), answer(), says=says)
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": who}, YES)
    scene.session(who, [one, two], STATUS, complete=True, answer=True)


def late_family(scene: Scene) -> None:
    """The root that states another task comes late: the run had joined the session before it."""
    who, key = scene.name(), scene.name("order")
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS, claim=None), id_on_all=True)
    two = scene.trace(
        who, 12, chat(), tool("submit_order"), answer(), says=task(key=key), id_on_all=True,
        root_late_h=scene.rng.uniform(1, 9),
    )  # fmt: skip
    scene.say("evidence", "billing", two.end_ns + 3 * HOUR_NS, by_key(key), SETTLED)
    scene.session(who, [one], STATUS, complete=True, claimed=True)
    scene.session(who, [two], ORDER, complete=True, verified=False, follow_up=True)


def late_second_claim(scene: Scene) -> None:
    """What the agent said last, that it had failed, comes hours after its claim of success."""
    who, key = scene.name(), scene.name("order")
    one = scene.trace(who, 0, chat(), tool("create_cart"), answer(), says=task(done=False, key=key))
    # Within the grace of the first claim, so the same session; it claims anew, hours late.
    late = answer(claims("failed")).late(scene.rng.uniform(2, 8))
    two = scene.trace(who, 3, chat(), tool("submit_order"), late, says=task(claim=None), id_on_all=True)
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, by_key(key), SETTLED)
    scene.session(who, [one, two], ORDER, complete=True, claimed=False, verified=False)


def late_claim_by_tool(scene: Scene) -> None:
    """The tool whose call the contract takes for the claim comes late: a new question was a new session."""
    who = scene.name()
    commits = tool("commit_changes", call=scene.name("commit")).late(scene.rng.uniform(1, 8))
    one = scene.trace(who, 0, chat(), tool("update_line"), chat(), commits, answer(), says=task(MULTI, claim=None))
    two = scene.trace(who, 40, chat(), tool("load_order"), answer(), says=task(MULTI, done=False, claim=None))
    scene.say("evidence", "orders", one.end_ns + HOUR_NS, {"trace_id": one.hex}, {"order_matches": True})
    scene.session(who, [one], MULTI, complete=True, verified=True, reopened=True)
    scene.session(who, [two], MULTI, complete=False, verified=False)
