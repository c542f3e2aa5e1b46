"""Scenes at the very edge of a limit: what is exactly at it is still within, what is a nanosecond later is not.

Every limit here is one of the defaults, or of the shop's contracts; they are stated again, on purpose.
"""

from __future__ import annotations

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, question, tool
from pipeline.simulation.hard.families import DECLINED, NO, ORDER, SETTLED, STATUS, TICKET, YES, by_key, task
from pipeline.simulation.hard.scene import Scene, Trace
from pipeline.simulation.plan import CLOCK_SKEW_NS, HOUR_NS, MINUTE_NS, RESUME_WINDOW_NS

ORDERS = (chat(), tool("submit_order"), answer())
MS = 1_000_000
CLOSING_GRACE_NS = 5 * MINUTE_NS
WAIT_WINDOW_NS = 24 * HOUR_NS
REOPEN_WINDOW_NS = 48 * HOUR_NS  # of order_status
DEADLINE_NS = 24 * HOUR_NS  # of the payment
HORIZON_NS = 72 * HOUR_NS  # of order_placement
MOST_TRACES = 200


def quiet(scene: Scene) -> None:
    """As long as the resume window: still the same session; a nanosecond longer: the next."""
    says = task(STATUS, claim=None)
    for which, past_ns in (("a", 0), ("b", 1)):
        one = scene.trace(scene.name(which), 0, *SEARCHES, says=says)
        two = scene.trace(scene.name(which), 0, *SEARCHES, says=says, start_ns=one.end_ns + RESUME_WINDOW_NS + past_ns)
        _one_or_two(scene, which, one, two, apart=bool(past_ns))


def grace(scene: Scene) -> None:
    """As long as the closing grace after the claim: still the same session; a nanosecond longer: the next."""
    for which, past_ns in (("a", 0), ("b", 1)):
        one = scene.trace(scene.name(which), 0, *SEARCHES, says=task(STATUS))
        two = scene.trace(
            scene.name(which),
            0,
            *SEARCHES,
            says=task(STATUS, claim=None),
            start_ns=one.end_ns + CLOSING_GRACE_NS + past_ns,
        )
        _one_or_two(scene, which, one, two, apart=bool(past_ns))


def _one_or_two(scene: Scene, which: str, one: Trace, two: Trace, apart: bool) -> None:
    """The same session; or the next, and with it the customer is back."""
    if not apart:
        scene.session(scene.name(which), [one, two], STATUS, complete=True)
        return
    scene.session(scene.name(which), [one], STATUS, complete=True, reopened=True)
    scene.session(scene.name(which), [two], STATUS, complete=True)


def wait(scene: Scene) -> None:
    """As long as the wait window: it goes on where it stopped; a nanosecond longer: given up."""
    for which, past_ns in (("a", 0), ("b", 1)):
        call = scene.name(f"call-{which}")
        one = scene.trace(scene.name(which), 0, chat(), question(call), says=task(STATUS, claim=None))
        acts = (tool("ask_customer", call=call), answer())
        two = scene.trace(
            scene.name(which), 0, *acts, says=task(STATUS), start_ns=one.end_ns + WAIT_WINDOW_NS + past_ns
        )
        if not past_ns:
            scene.session(scene.name(which), [one, two], STATUS, complete=True)
            continue
        scene.session(scene.name(which), [one], STATUS, complete=True, claimed=False, abandoned=True)
        scene.session(scene.name(which), [two], STATUS, complete=True, follow_up=True)


def reopen(scene: Scene) -> None:
    """At the end of the reopen window the customer is back; a nanosecond later it is a new case."""
    for which, past_ns in (("a", 0), ("b", 1)):
        one = scene.trace(scene.name(which), 0, *SEARCHES, says=task(STATUS))
        two = scene.trace(
            scene.name(which), 0, *SEARCHES, says=task(STATUS), start_ns=one.end_ns + REOPEN_WINDOW_NS + past_ns
        )
        scene.session(scene.name(which), [one], STATUS, complete=True, reopened=not past_ns)
        scene.session(scene.name(which), [two], STATUS, complete=True, follow_up=bool(past_ns))


def elsewhere(scene: Scene) -> None:
    """In another conversation it must be more than the resume window, and at most the reopen window."""
    for which, after_ns, back in (
        ("a", RESUME_WINDOW_NS, False), ("b", RESUME_WINDOW_NS + 1, True),
        ("c", REOPEN_WINDOW_NS, True), ("d", REOPEN_WINDOW_NS + 1, False),
    ):  # fmt: skip
        says = task(STATUS, issue=scene.name("lost"), subject=scene.name(f"customer-{which}"))
        one = scene.trace(scene.name(which), 0, *SEARCHES, says=says)
        two = scene.trace(scene.name(f"{which}{which}"), 0, *SEARCHES, says=says, start_ns=one.end_ns + after_ns)
        scene.session(scene.name(which), [one], STATUS, complete=True, across=back)
        scene.session(scene.name(f"{which}{which}"), [two], STATUS, complete=True)


def deadline(scene: Scene) -> None:
    """Proof at the deadline counts; a millisecond later, which is as fine as reports are, it does not."""
    for which, past_ns in (("a", 0), ("b", MS)):
        one = scene.trace(scene.name(which), 0, *ORDERS, says=task())
        scene.say("evidence", "billing", one.end_ns + DEADLINE_NS + past_ns, {"trace_id": one.hex}, SETTLED)
        scene.session(scene.name(which), [one], ORDER, complete=not past_ns, verified=False)


def horizon(scene: Scene) -> None:
    """A complaint, a ticket at the horizon count; a millisecond later they do not."""
    for which, past_ns in (("a", 0), ("b", MS)):
        one = scene.trace(scene.name(which), 0, *ORDERS, says=task())
        to = {"session_id": scene.name(which)}
        scene.say("evidence", "billing", one.end_ns + HOUR_NS, to, SETTLED)
        scene.say("resolution", "survey", one.end_ns + HORIZON_NS + past_ns, to, NO)
        scene.say("reopen", "helpdesk", one.end_ns + HORIZON_NS + past_ns, to, TICKET)
        scene.session(
            scene.name(which), [one], ORDER, complete=True, verified=False, reopened=not past_ns,
            answer=None if past_ns else False,
        )  # fmt: skip


def skew(scene: Scene) -> None:
    """A report of as much before the session as clocks may differ is about it; of a millisecond more is not."""
    for which, past_ns in (("a", 0), ("b", MS)):
        key = scene.name(f"key-{which}")
        one = scene.trace(scene.name(which), 60, *ORDERS, says=task(key=key))
        at_ns = one.start_ns - CLOCK_SKEW_NS - past_ns
        scene.say("evidence", "billing", at_ns, by_key(key), SETTLED)
        scene.say("resolution", "survey", at_ns, {"session_id": scene.name(which)}, YES)
        answered = None if past_ns else True
        scene.session(scene.name(which), [one], ORDER, complete=not past_ns, verified=False, answer=answered)


def broad(scene: Scene) -> None:
    """As many traces as may be state the key: it still says whom it is about; with one more it does not."""
    key, name = scene.name("everybody"), "tenant_id"
    one = scene.trace(scene.name("early"), 0, *ORDERS, says=task(key=key, key_name=name))
    says = {**task(STATUS, claim=None), "trueup.correlation.tenant_id": key}
    crowd = [scene.trace(scene.name("crowd"), 10 + step, answer(), says=says) for step in range(MOST_TRACES)]
    # "Begun by then" allows for clocks that differ; the last but one of the crowd is the last that may be.
    at_ns = crowd[-2].start_ns - CLOCK_SKEW_NS
    scene.say("evidence", "billing", at_ns, by_key(key, name), SETTLED)
    scene.say("evidence", "billing", at_ns + MINUTE_NS, by_key(key, name), DECLINED)
    scene.session(scene.name("early"), [one], ORDER, complete=True, verified=False)
    scene.session(scene.name("crowd"), crowd, STATUS, complete=True)
