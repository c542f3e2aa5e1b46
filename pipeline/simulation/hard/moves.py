"""Scenes in which a trace proves to belong elsewhere: an id, a link or the trace that it leads to comes late.

What was said of it meanwhile goes with it.
"""

from __future__ import annotations

from pipeline.simulation.hard.acts import SEARCHES, agent, answer, chat, guardrail, tool
from pipeline.simulation.hard.families import ACCEPTED, NO, ORDER, SETTLED, STATUS, YES, by_key, task
from pipeline.simulation.hard.scene import Scene
from pipeline.simulation.plan import HOUR_NS, Value

ORDERS = (chat(), tool("submit_order"), answer())


def late_id(scene: Scene) -> None:
    """The root, which alone states the id, comes hours after the rest: long since an unattributed session."""
    who, key = scene.name(), scene.name("order")
    late_h = scene.rng.uniform(1, 9)
    one = scene.trace(who, 0, *ORDERS, says=task(key=key), root_late_h=late_h)
    soon = (0.2,)
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"trace_id": one.hex}, SETTLED, arrive_h=soon)
    scene.say("evidence", "warehouse", one.end_ns + HOUR_NS, by_key(key), {"shipment": "as_ordered"}, arrive_h=soon)
    scene.say("escalation", "helpdesk", one.end_ns + HOUR_NS, {"trace_id": one.hex}, ACCEPTED, arrive_h=soon)
    scene.say("resolution", "survey", one.end_ns + 2 * HOUR_NS, {"session_id": one.alone}, YES, arrive_h=soon)
    scene.session(who, [one], ORDER, complete=True, verified=True, escalated=True, answer=True)


def late_id_before_all(scene: Scene) -> None:
    """The id comes late for a run before all others of its conversation: every ordinal moves up."""
    who = scene.name()
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS), root_late_h=scene.rng.uniform(7, 10))
    two = scene.trace(who, 5 * 60, *SEARCHES, says=task(STATUS))
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": who, "ordinal": 2}, YES, arrive_h=(0.1,))
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": who, "ordinal": 1}, NO, arrive_h=(0.1,))
    scene.session(who, [one], STATUS, complete=True, reopened=True, answer=False)
    scene.session(who, [two], STATUS, complete=True, answer=True)


def late_link(scene: Scene) -> None:
    """The run states no id, and its link to the run before comes late."""
    who, first, second = scene.name(), scene.name("first"), scene.name("second")
    one = scene.trace(who, 0, *ORDERS, says=task(claim=None, done=False, key=first))
    two = scene.trace(
        None, 20, *ORDERS, says=task(key=second), links=[one.trace_id], root_late_h=scene.rng.uniform(1, 8)
    )
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, by_key(second), SETTLED)
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"trace_id": two.hex}, NO, arrive_h=(0.1,))
    scene.session(who, [one, two], ORDER, complete=True, verified=False, answer=False)


def late_target(scene: Scene) -> None:
    """The run that it links to comes hours later, with the id."""
    who, key = scene.name(), scene.name("order")
    one_id = scene.rng.getrandbits(128)
    two = scene.trace(None, 15, *ORDERS, says=task(key=key), links=[one_id])
    one = scene.trace(
        who, 0, *ORDERS, says=task(claim=None, done=False), trace_id=one_id, late_h=scene.rng.uniform(2, 9)
    )
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, {"trace_id": two.hex}, SETTLED, arrive_h=(0.1,))
    scene.session(who, [one, two], ORDER, complete=True, verified=False)


def chain(scene: Scene) -> None:
    """Every run links to the one before; only the first has an id, which comes last."""
    who = scene.name()
    says = task(STATUS, claim=None)
    traces = [scene.trace(who, 0, *SEARCHES, says=says, root_late_h=scene.rng.uniform(1, 6))]
    for step in range(1, 6):
        link = [traces[-1].trace_id]
        late_h = scene.rng.choice((0.0, 0.0, 2.5))
        traces.append(scene.trace(None, 6 * step, *SEARCHES, says=says, links=link, late_h=late_h))
    scene.say("resolution", "survey", traces[-1].end_ns + HOUR_NS, {"trace_id": traces[3].hex}, YES)
    scene.session(who, traces, STATUS, complete=True, answer=True)


def shared_response(scene: Scene) -> None:
    """Two traces hold the same model answer, as a proxy and its caller do: the one without an id goes to the other."""
    who, key = scene.name(), scene.name("order")
    shared: dict[str, Value] = {"gen_ai.response.id": scene.name("resp")}
    late_h = scene.rng.choice((0.0, 3.0))
    one = scene.trace(
        who, 0, chat("tool_calls", shared), tool("submit_order"), answer(), says=task(key=key), late_h=late_h
    )
    proxy = scene.trace(None, 0.01, chat("tool_calls", shared), says=task(None, claim=None))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"trace_id": proxy.hex}, SETTLED)
    scene.session(who, [one, proxy], ORDER, complete=True, verified=False)


def shared_by_nobody(scene: Scene) -> None:
    """Two traces hold the same model answer, and neither has an id: both are the earlier one's."""
    shared: dict[str, Value] = {"gen_ai.response.id": scene.name("resp")}
    one = scene.trace(None, 0, chat("tool_calls", shared), tool("find_order"), answer(), says=task(STATUS))
    proxy = scene.trace(
        None, 0.005, chat("tool_calls", shared), says=task(None, claim=None), late_h=scene.rng.choice((0.0, 2.0))
    )
    scene.say("resolution", "survey", one.end_ns + HOUR_NS, {"trace_id": proxy.hex}, YES)
    scene.session(one.alone, [one, proxy], STATUS, complete=True, answer=True)


def two_links(scene: Scene) -> None:
    """Of two runs that it links to, the one with an id of its own comes first, though it began later."""
    who = scene.name()
    other = scene.trace(None, 0, *SEARCHES, says=task(STATUS))
    one = scene.trace(who, 10, *SEARCHES, says=task(STATUS, claim=None), late_h=scene.rng.choice((0.0, 4.0)))
    two = scene.trace(None, 20, *SEARCHES, says=task(STATUS), links=[other.trace_id, one.trace_id])
    scene.session(other.alone, [other], STATUS, complete=True)
    scene.session(who, [one, two], STATUS, complete=True)


def never_named(scene: Scene) -> None:
    """Two runs that lead to each other and to nobody: one session, of no conversation that anybody knows."""
    key = scene.name("order")
    one = scene.trace(None, 0, *ORDERS, says=task(claim=None, done=False))
    two = scene.trace(None, 10, *ORDERS, says=task(key=key), links=[one.trace_id])
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, {"session_id": two.alone}, SETTLED)
    scene.session(one.alone, [one, two], ORDER, complete=True, verified=False)


def circle(scene: Scene) -> None:
    """Each links to the other: it ends at the earlier one."""
    two_id = scene.rng.getrandbits(128)
    one = scene.trace(None, 0, *SEARCHES, says=task(STATUS, claim=None), links=[two_id])
    two = scene.trace(None, 10, *SEARCHES, says=task(STATUS), links=[one.trace_id], trace_id=two_id)
    scene.session(one.alone, [one, two], STATUS, complete=True)


def other_ids(scene: Scene) -> None:
    """A delegated agent states an id of its own, and arrives first: the id nearest to the root holds."""
    who, key = scene.name(), scene.name("order")
    inner = answer({"gen_ai.conversation.id": scene.name("inner")})
    acts = (chat(), tool("submit_order"), agent("payment_agent", inner), answer())
    one = scene.trace(who, 0, *acts, says=task(key=key), root_late_h=0.5)
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, by_key(key), SETTLED)
    scene.session(who, [one], ORDER, complete=True, verified=False)


def spelled_ids(scene: Scene) -> None:
    """One id as a number and as a text: one conversation."""
    number = 700_000_000 + scene.number * 1000 + scene.rng.randrange(1000)
    one = scene.trace(number, 0, *SEARCHES, says=task(STATUS, claim=None))
    two = scene.trace(f" {number} ", 30, *SEARCHES, says=task(STATUS, claim=None))
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, {"session_id": number}, YES)
    scene.session(str(number), [one, two], STATUS, complete=True, answer=True)


def no_work(scene: Scene) -> None:
    """A trace of checks alone opens no session, and gives one no more time."""
    who = scene.name()
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS, claim=None))
    scene.trace(None, 60, guardrail(), says={"gen_ai.operation.name": "plan"})
    scene.trace(who, 90, guardrail(), says={"gen_ai.operation.name": "plan"})
    # Three hours after the work, half an hour after the last check: past the resume window.
    two = scene.trace(who, 180, *SEARCHES, says=task(STATUS, claim=None))
    scene.session(who, [one], STATUS, complete=True, reopened=True)
    scene.session(who, [two], STATUS, complete=True)
