"""Scenes of business keys: shared by sessions, stated too often, known before anybody acted on them."""

from __future__ import annotations

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, tool
from pipeline.simulation.hard.families import ACCEPTED, DECLINED, NO, ORDER, SETTLED, SHIPPED, STATUS, YES, by_key, task
from pipeline.simulation.hard.scene import Scene
from pipeline.simulation.plan import HOUR_NS, MINUTE_NS, SECOND_NS

ORDERS = (chat(), tool("submit_order"), answer())
TOO_MANY = 200


def shared(scene: Scene) -> None:
    """Two customers' sessions act on one order: each is judged by what came within its own deadline."""
    key = scene.name("key")
    one = scene.trace(scene.name("a"), 0, *ORDERS, says=task(key=key))
    two = scene.trace(scene.name("b"), 15 * 60, *ORDERS, says=task(key=key))
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, by_key(key), DECLINED)
    # 30 hours after the first session, 15 after the second.
    scene.say("evidence", "billing", two.end_ns + 15 * HOUR_NS, by_key(key), SETTLED)
    scene.say("evidence", "warehouse", two.end_ns + 16 * HOUR_NS, by_key(key), SHIPPED)
    # What is no evidence goes to the latest that had begun by then, alone.
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, by_key(key), YES)
    scene.say("escalation", "helpdesk", two.start_ns - 3 * HOUR_NS, by_key(key), ACCEPTED)
    scene.session(scene.name("a"), [one], ORDER, complete=False, verified=False, escalated=True)
    scene.session(scene.name("b"), [two], ORDER, complete=True, verified=True, answer=True)


def shared_here(scene: Scene) -> None:
    """Two sessions of one conversation act on one order: the proof is about both, the complaint about the later."""
    who, key = scene.name(), scene.name("key")
    one = scene.trace(who, 0, *ORDERS, says=task(key=key, issue=scene.name("first")))
    two = scene.trace(who, 240, *ORDERS, says=task(key=key, issue=scene.name("second")))
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, by_key(key), SETTLED)
    scene.say("evidence", "warehouse", one.end_ns + HOUR_NS, by_key(key), SHIPPED)
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, by_key(key), NO)
    scene.session(who, [one], ORDER, complete=True, verified=True)
    scene.session(who, [two], ORDER, complete=True, verified=False, answer=False, follow_up=True)


def known_before(scene: Scene) -> None:
    """Evidence of an hour before the second session began is not about it, by its key; it was about the first."""
    key = scene.name("key")
    one = scene.trace(scene.name("a"), 0, *ORDERS, says=task(key=key))
    two = scene.trace(scene.name("b"), 300, *ORDERS, says=task(key=key))
    scene.say("evidence", "billing", two.start_ns - HOUR_NS, by_key(key), SETTLED)
    scene.session(scene.name("a"), [one], ORDER, complete=True, verified=False)
    scene.session(scene.name("b"), [two], ORDER, complete=False, verified=False)


def before_all(scene: Scene) -> None:
    """A complaint by key, from before anybody stated the key, goes to the earliest who did."""
    key = scene.name("key")
    one = scene.trace(scene.name("a"), 60, *SEARCHES, says=task(STATUS, key=key))
    two = scene.trace(scene.name("b"), 600, *SEARCHES, says=task(STATUS, key=key))
    scene.say("resolution", "survey", one.start_ns - 2 * MINUTE_NS, by_key(key), NO)
    scene.session(scene.name("a"), [one], STATUS, complete=True, answer=False)
    scene.session(scene.name("b"), [two], STATUS, complete=True)


def late_holder(scene: Scene) -> None:
    """The trace that states the key comes hours late: what was said by it has waited, or gone to another."""
    key = scene.name("key")
    one = scene.trace(scene.name("a"), 0, *ORDERS, says=task(key=key))
    two = scene.trace(scene.name("b"), 200, *ORDERS, says=task(key=key), late_h=scene.rng.uniform(4, 10))
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, by_key(key), SETTLED, arrive_h=(0.1,))
    scene.say("resolution", "survey", two.end_ns + HOUR_NS, by_key(key), YES, arrive_h=(0.1,))
    scene.session(scene.name("a"), [one], ORDER, complete=True, verified=False)
    scene.session(scene.name("b"), [two], ORDER, complete=True, verified=False, answer=True)


def several_keys(scene: Scene) -> None:
    """One payment names two orders and a parcel that nobody mentioned."""
    first, second = scene.name("first"), scene.name("second")
    one = scene.trace(scene.name("a"), 0, *ORDERS, says=task(key=first))
    two = scene.trace(scene.name("b"), 3, *ORDERS, says=task(key=second, key_name="basket_id"))
    to: dict[str, object] = {"correlation": {"order_id": first, "basket_id": second, "parcel_id": scene.name("parcel")}}
    scene.say("evidence", "billing", two.end_ns + HOUR_NS, to, SETTLED)
    scene.session(scene.name("a"), [one], ORDER, complete=True, verified=False)
    scene.session(scene.name("b"), [two], ORDER, complete=True, verified=False)


def too_broad(scene: Scene) -> None:
    """A key that everybody states says nothing any more; what was said by it before, or by another key, holds."""
    broad, own = scene.name("everybody"), scene.name("own")
    name = "tenant_id"
    early = scene.trace(scene.name("early"), 0, *ORDERS, says=task(key=broad, key_name=name))
    scene.say("evidence", "billing", early.end_ns + 30 * SECOND_NS, by_key(broad, name), SETTLED)
    says = {**task(STATUS, claim=None), "trueup.correlation.tenant_id": broad}
    crowd = [scene.trace(scene.name("crowd"), 10 + one, answer(), says=says) for one in range(TOO_MANY + 4)]
    after = 10 + TOO_MANY + 20
    late_says = {**task(key=own), "trueup.correlation.tenant_id": broad}
    lost = scene.trace(scene.name("lost"), after, *ORDERS, says=task(key=broad, key_name=name))
    kept = scene.trace(scene.name("kept"), after + 2, *ORDERS, says=late_says)
    scene.say("evidence", "billing", kept.end_ns + HOUR_NS, by_key(broad, name), DECLINED)
    scene.say("resolution", "survey", kept.end_ns + HOUR_NS, by_key(broad, name), NO)
    to: dict[str, object] = {"correlation": {name: broad, "order_id": own}}
    scene.say("evidence", "billing", kept.end_ns + 2 * HOUR_NS, to, SETTLED)
    scene.session(scene.name("early"), [early], ORDER, complete=True, verified=False)
    scene.session(scene.name("crowd"), crowd, STATUS, complete=True)
    scene.session(scene.name("lost"), [lost], ORDER, complete=False, verified=False)
    scene.session(scene.name("kept"), [kept], ORDER, complete=True, verified=False)


def of_two_tenants(scene: Scene) -> None:
    """Two tenants use the same id and the same key: neither hears of the other."""
    who, key = scene.name(), scene.name("key")
    other = scene.name("tenant")
    mine = scene.trace(who, 0, *ORDERS, says=task(key=key))
    theirs = scene.trace(who, 1, *ORDERS, says=task(key=key), resource={"trueup.tenant": other})
    scene.say("evidence", "billing", mine.end_ns + HOUR_NS, by_key(key), SETTLED)
    scene.say("evidence", "billing", mine.end_ns + 2 * HOUR_NS, by_key(key), DECLINED, tenant=other)
    scene.say("resolution", "survey", mine.end_ns + 2 * HOUR_NS, {"session_id": who}, NO, tenant=other)
    scene.session(who, [mine], ORDER, complete=True, verified=False)
    scene.session(who, [theirs], ORDER, complete=False, verified=False, answer=False, tenant=other)
