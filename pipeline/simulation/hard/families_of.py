"""Scenes in which it is not plain which task it was: not said, said by nobody's contract, or by two at once."""

from __future__ import annotations

from pipeline.simulation.hard.acts import SEARCHES, agent, answer, chat, tool
from pipeline.simulation.hard.families import SEARCH, STATUS, YES, claims, states, task
from pipeline.simulation.hard.scene import Scene
from pipeline.simulation.plan import HOUR_NS

WORK = (chat(), tool("find_order"), answer())


def inherited(scene: Scene) -> None:
    """Who comes back without a word of what it is about comes back with what it was about: shown, but not counted."""
    who = scene.name()
    one = scene.trace(who, 0, *WORK, says=task(STATUS))
    two = scene.trace(who, 6 * 60, *WORK, says=task(None, claim=None))
    scene.session(who, [one], STATUS, complete=True, reopened=True)
    scene.session(who, [two], STATUS, complete=False, claimed=True, eligible=False)


def taken_over(scene: Scene) -> None:
    """The task is said only in the second run: it is the whole session's."""
    who = scene.name()
    one = scene.trace(who, 0, *WORK, says=task(None, claim=None))
    two = scene.trace(who, 15, *WORK, says=task(STATUS, claim=None))
    scene.session(who, [one, two], STATUS, complete=True)


def derived(scene: Scene) -> None:
    """Nobody says the task; the agent at work tells it."""
    who = scene.name()
    acts = (chat(), agent("order_status_agent", *WORK), answer({**states(STATUS), **claims()}))
    one = scene.trace(who, 0, *acts)
    scene.say("resolution", "survey", one.end_ns + HOUR_NS, {"session_id": who}, YES)
    scene.session(who, [one], STATUS, complete=True, answer=True)


def nobodys(scene: Scene) -> None:
    """Nothing tells the task: no contract judges it."""
    who = scene.name()
    one = scene.trace(who, 0, *WORK, says=task(None))
    scene.session(who, [one], "", complete=False, eligible=False)


def unknown(scene: Scene) -> None:
    """A task is said that no contract knows: a row of its own, of what needs no contract."""
    who = scene.name()
    one = scene.trace(who, 0, *WORK, says={"trueup.task.family": "gift_advice", **claims()})
    scene.session(who, [one], "gift_advice", complete=False, eligible=False)


def ambiguous(scene: Scene) -> None:
    """Two agents of two tasks at work, and nobody says which it was."""
    who = scene.name()
    acts = (agent("order_status_agent", *WORK), agent("product_search_agent", *WORK), answer(claims()))
    one = scene.trace(who, 0, *acts)
    scene.session(who, [one], "", complete=False, eligible=False)


def made_plain(scene: Scene) -> None:
    """Two agents of two tasks; which it was is said by a span that comes late."""
    who = scene.name()
    acts = (agent("order_status_agent", *WORK), agent("product_search_agent", *WORK), answer())
    one = scene.trace(who, 0, *acts, says=task(SEARCH), root_late_h=scene.rng.uniform(1, 6), id_on_all=True)
    scene.say("evidence", "catalogue", one.end_ns + HOUR_NS, {"session_id": who}, {"price_audit": "current"})
    scene.session(who, [one], SEARCH, complete=True, verified=True)


def no_turn_by_derivation(scene: Scene) -> None:
    """Another agent at work is no other task, as long as nobody says so."""
    who = scene.name()
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS, claim=None))
    two = scene.trace(who, 20, chat(), agent("product_search_agent", *WORK), answer())
    scene.session(who, [one, two], STATUS, complete=True)
