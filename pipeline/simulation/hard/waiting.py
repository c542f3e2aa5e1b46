"""Scenes of runs that wait, for a customer or a person, and of tool calls that are tried again."""

from __future__ import annotations

from pipeline.simulation.hard.acts import answer, chat, question, tool
from pipeline.simulation.hard.families import ORDER, REFUNDED, RETURN, SETTLED, STATUS, task
from pipeline.simulation.hard.scene import Scene
from pipeline.simulation.plan import HOUR_NS

APPROVAL = "approve_refund"


def resumed(scene: Scene) -> None:
    """The customer answers after most of a day: the same session, the same turn, and one call."""
    who, call = scene.name(), scene.name("call")
    says = task(ORDER, claim=None, done=False)
    one = scene.trace(who, 0, chat(), tool("create_cart"), chat(), question(call), says=says)
    later = scene.rng.uniform(10, 23) * 60
    two = scene.trace(
        who, later, tool("ask_customer", call=call), chat(), tool("submit_order"), answer(), says=task(ORDER)
    )
    scene.say("evidence", "billing", two.end_ns + 20 * HOUR_NS, {"session_id": who}, SETTLED)
    scene.session(who, [one, two], ORDER, complete=True, verified=False)


def resumed_too_late(scene: Scene) -> None:
    """After more than a day it is no answer any more: given up, and a new session."""
    who, call = scene.name(), scene.name("call")
    one = scene.trace(who, 0, chat(), question(call), says=task(STATUS, claim=None))
    two = scene.trace(
        who, scene.rng.uniform(25.5, 40) * 60, tool("ask_customer", call=call), chat(), tool("find_order"), answer(),
        says=task(STATUS),
    )  # fmt: skip
    scene.session(who, [one], STATUS, complete=True, claimed=False, abandoned=True)
    scene.session(who, [two], STATUS, complete=True, follow_up=True)


def abandoned(scene: Scene) -> None:
    """The customer never answers; that the run was interrupted arrives late."""
    who = scene.name()
    stops = question(scene.name("call")).late(scene.rng.uniform(1, 6))
    one = scene.trace(who, 0, chat(), tool("create_cart"), chat(), stops, says=task(ORDER, claim=None))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"session_id": who}, SETTLED)
    scene.session(who, [one], ORDER, complete=True, claimed=False, verified=False, abandoned=True)


def never_approved(scene: Scene) -> None:
    """A person never approves: timed out, which is no one's escalation and not the customer's giving up."""
    who = scene.name()
    one = scene.trace(who, 0, chat(), question(scene.name("call"), APPROVAL), says=task(RETURN, claim=None))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"trace_id": one.hex}, REFUNDED)
    scene.session(who, [one], RETURN, complete=True, claimed=False, verified=True)


def approved(scene: Scene) -> None:
    """A person approves the next morning; the approved run arrives before the one that asked."""
    who, call = scene.name(), scene.name("call")
    one = scene.trace(who, 0, chat(), question(call, APPROVAL), says=task(RETURN, claim=None, done=False), late_h=17.0)
    two = scene.trace(
        who, 15 * 60, tool(APPROVAL, call=call), chat(), tool("create_label"), answer(), says=task(RETURN)
    )
    scene.say("evidence", "billing", two.end_ns + 40 * HOUR_NS, {"session_id": who}, REFUNDED)
    scene.session(who, [one, two], RETURN, complete=True, verified=True)


def handed_over(scene: Scene) -> None:
    """A supervisor takes over; the span that says so arrives late."""
    who = scene.name()
    hands = tool("open_supervisor_case", call=scene.name("call")).late(scene.rng.uniform(1, 8))
    one = scene.trace(who, 0, chat(), hands, answer(), says=task(RETURN, claim=None))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"session_id": who}, REFUNDED)
    scene.session(who, [one], RETURN, complete=True, claimed=False, verified=True, escalated=True)


def handed_over_in_vain(scene: Scene) -> None:
    """Nobody took over: tried, and no more; a failed call, too."""
    who = scene.name()
    vain = tool("open_supervisor_case", error="NoAgentAvailable")
    one = scene.trace(who, 0, chat(), vain, answer(), says=task(RETURN))
    scene.session(who, [one], RETURN, complete=False, verified=False, attempted=True)


def retries(scene: Scene) -> None:
    """One call in three attempts, one in two runs, one that failed for good, and two that only look alike."""
    who = scene.name()
    mended, asked, twice = scene.name("mended"), scene.name("asked"), scene.name("twice")
    one = scene.trace(
        who, 0,
        chat(), tool("submit_order", call=mended, error="timeout"), tool("submit_order", call=mended, error="timeout"),
        tool("submit_order", call=mended),  # one call, well
        chat(), tool("create_cart", call=twice), tool("create_cart", call=twice),  # the first was well: two calls
        chat(), tool("wrap_gift", call=twice, error="ValueError"),  # the same id, another tool: one call, failed
        tool("wrap_gift"),  # no id: one call, well
        chat(), question(asked),
        says=task(ORDER, claim=None, done=False),
    )  # fmt: skip
    two = scene.trace(
        who, 3 * 60, tool("ask_customer", call=asked), chat(), tool("create_cart", call=mended), answer(),
        says=task(ORDER), late_h=scene.rng.choice((0.0, 5.0)),
    )  # fmt: skip
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, {"session_id": who}, SETTLED)
    # Well: submit, twice create, wrap without id, ask, create of the second run. Failed: wrap.
    scene.session(who, [one, two], ORDER, complete=True, verified=False, calls=(7, 6))
