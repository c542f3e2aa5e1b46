"""Scenes of copies that differ, clocks that are wrong, sessions of days, and what comes too late for anything."""

from __future__ import annotations

from dataclasses import replace

from opentelemetry.sdk.resources import Resource

from pipeline.simulation.hard.acts import SEARCHES, answer, chat, root, tool
from pipeline.simulation.hard.families import (
    ACCEPTED,
    DECLINED,
    NO,
    ORDER,
    ORDER_KEY,
    SETTLED,
    SHIPPED,
    STATUS,
    TICKET,
    YES,
    by_key,
    claims,
    states,
    task,
)  # fmt: skip
from pipeline.simulation.hard.scene import Scene, made_span
from pipeline.simulation.plan import HOUR_NS, MINUTE_NS, SECOND_NS, Value
from pipeline.simulation.spans import CONVERSATION_ID

ORDERS = (chat(), tool("submit_order"), answer())
YEAR_SECONDS = 365 * 24 * 3600.0


def unequal_copies(scene: Scene) -> None:
    """Of a span's copies the one with the id holds; of two with it the one that ends later. Any may come first."""
    who = scene.name()
    trace_id = scene.rng.getrandbits(128)
    family: dict[str, Value] = {"trueup.task.family": STATUS, **states(STATUS)}
    copies: tuple[tuple[float, dict[str, Value]], ...] = (
        (3.0, {**family, CONVERSATION_ID: who, **claims()}),  # holds: has the id, and ends last of those that do
        (2.0, {**family, CONVERSATION_ID: who, **claims("failed")}),
        (9.0, {**family, **claims("escalated")}),
    )
    inner = scene.trace(None, 0, tool("find_order"), trace_id=trace_id)
    at_ns = scene.at(0.2)
    span_id = scene.rng.getrandbits(64)
    hours = [0.0, 1.0, 2.0]
    scene.rng.shuffle(hours)
    for (seconds, said), late_h in zip(copies, hours, strict=True):
        end_ns = at_ns + round(seconds * SECOND_NS)
        resource = Resource({"service.name": "desk"})
        span = made_span(
            resource, trace_id, span_id, None, "invoke_agent copy", at_ns, end_ns, {**root("copy"), **said}
        )
        scene.send(span, end_ns + round(late_h * HOUR_NS) + SECOND_NS, last=False)
    scene.session(who, [inner], STATUS, complete=True)


def unequal_tools(scene: Scene) -> None:
    """A tool's span comes as started, then as failed and longer: it failed."""
    who = scene.name()
    trace_id, span_id, at_ns = scene.rng.getrandbits(128), scene.rng.getrandbits(64), scene.at(0)
    one = scene.trace(who, 0.5, tool("find_order"), answer(), says=task(STATUS), trace_id=trace_id)
    for error, seconds, late_h in ((None, 1.0, scene.rng.choice((0.0, 3.0))), ("timeout", 5.0, 1.0)):
        act = tool("track_shipment", error=error)
        end_ns = at_ns + round(seconds * SECOND_NS)
        resource = Resource({"service.name": "desk"})
        span = made_span(resource, trace_id, span_id, None, act.name, at_ns, end_ns, act.attributes, error)
        scene.send(span, end_ns + round(late_h * HOUR_NS) + SECOND_NS, last=False)
    scene.session(who, [one], STATUS, complete=True, calls=(2, 1))


def unequal_keys(scene: Scene) -> None:
    """A span comes with the wrong order's number, and again, longer, with the right one: only that leads to it."""
    who, wrong, right = scene.name(), scene.name("wrong"), scene.name("right")
    trace_id, span_id, at_ns = scene.rng.getrandbits(128), scene.rng.getrandbits(64), scene.at(0)
    one = scene.trace(who, 0.5, *ORDERS, says=task(), trace_id=trace_id)
    hours = [0.0, 2.0]
    scene.rng.shuffle(hours)
    for key, seconds, late_h in ((wrong, 1.0, hours[0]), (right, 5.0, hours[1])):
        act = chat("tool_calls", {f"trueup.correlation.{ORDER_KEY}": key})
        end_ns = at_ns + round(seconds * SECOND_NS)
        resource = Resource({"service.name": "desk"})
        span = made_span(resource, trace_id, span_id, None, act.name, at_ns, end_ns, act.attributes)
        scene.send(span, end_ns + round(late_h * HOUR_NS) + SECOND_NS, last=False)
    hours = [scene.rng.choice((0.1, 5.0)) for _ in range(2)]
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, by_key(right), SETTLED, arrive_h=hours[:1])
    scene.say("evidence", "billing", one.end_ns + 2 * HOUR_NS, by_key(wrong), DECLINED, arrive_h=hours[1:])
    scene.session(who, [one], ORDER, complete=True, verified=False)


def clock_ahead(scene: Scene) -> None:
    """A tool's clock is a year ahead when it ends: it makes no session longer than its other work."""
    who, key = scene.name(), scene.name("order")
    mad = replace(tool("create_cart"), seconds=YEAR_SECONDS, last=True)
    one = scene.trace(who, 0, chat(), mad, tool("submit_order"), answer(), says=task(key=key))
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, by_key(key), SETTLED)
    scene.say("evidence", "warehouse", one.end_ns + 50 * HOUR_NS, by_key(key), SHIPPED)  # past 48 h of the real end
    scene.session(who, [one], ORDER, complete=True, verified=False)


def clock_back(scene: Scene) -> None:
    """Spans that end before they start take no time, and are calls as others are."""
    who = scene.name()
    back = replace(tool("track_shipment"), seconds=-scene.rng.uniform(1, 5000))
    one = scene.trace(who, 0, chat(), back, tool("find_order"), answer(), says=task(STATUS))
    two = scene.trace(who, 4 * 60, *SEARCHES, says=task(STATUS))
    scene.session(who, [one], STATUS, complete=True, reopened=True)
    scene.session(who, [two], STATUS, complete=True)


def outcome_ahead(scene: Scene) -> None:
    """A report dated a year ahead is one of today: too late for anything here."""
    who = scene.name()
    one = scene.trace(who, 0, *ORDERS, says=task())
    ahead_ns = scene.now_ns + round(YEAR_SECONDS) * SECOND_NS
    scene.say("evidence", "billing", one.end_ns + HOUR_NS, {"session_id": who}, SETTLED)
    for kind, source, data in (
        ("evidence", "billing", DECLINED), ("reopen", "helpdesk", TICKET), ("escalation", "helpdesk", ACCEPTED),
    ):  # fmt: skip
        scene.say(kind, source, ahead_ns, {"session_id": who, "ordinal": 1}, data)
    scene.session(who, [one], ORDER, complete=True, verified=False)


def days_long(scene: Scene) -> None:
    """Somebody who never stays away for long: one session of two days, judged by its last end."""
    who = scene.name()
    says = task(ORDER, claim=None, done=False)
    minute, traces = 0.0, []
    while minute < 40 * 60:
        late_h = scene.rng.choice((0.0, 0.0, 0.0, 4.0))
        traces.append(scene.trace(who, minute, *ORDERS, says=says, late_h=late_h))
        minute += scene.rng.uniform(100, 118)
    traces.append(scene.trace(who, minute, *ORDERS, says=task(ORDER)))
    # Long past a day after its beginning, and within one after its end.
    scene.say("evidence", "billing", traces[-1].end_ns + 20 * HOUR_NS, {"trace_id": traces[2].hex}, SETTLED)
    scene.say("resolution", "survey", traces[1].end_ns, {"session_id": who}, YES)
    scene.session(who, traces, ORDER, complete=True, verified=False, answer=True)


def known_early(scene: Scene) -> None:
    """Proof of ten hours before, addressed to the run itself, and heard before any of its spans."""
    who = scene.name()
    one = scene.trace(who, 11 * 60, *ORDERS, says=task(), late_h=scene.rng.choice((0.0, 6.0)))
    scene.say("evidence", "billing", one.start_ns - 10 * HOUR_NS, {"trace_id": one.hex}, SETTLED, arrive_h=(0.1,))
    scene.session(who, [one], ORDER, complete=True, verified=False)


def within_the_skew(scene: Scene) -> None:
    """Proof by key of three minutes before the session: clocks differ by as much."""
    who, key = scene.name(), scene.name("order")
    one = scene.trace(who, 60, *ORDERS, says=task(key=key))
    scene.say("evidence", "billing", one.start_ns - 3 * MINUTE_NS, by_key(key, ORDER_KEY), SETTLED, arrive_h=(0.0,))
    scene.session(who, [one], ORDER, complete=True, verified=False)


def never_anyones(scene: Scene) -> None:
    """Reports that no session is ever found for change nothing, and neither do claims that nobody knows."""
    who = scene.name()
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS, claim="Completed"))
    odd = scene.trace(who, 6 * 60, *SEARCHES, says=task(STATUS, claim="splendid", issue=scene.name("i")))
    scene.say("evidence", "billing", one.end_ns, by_key(scene.name("nobody")), SETTLED)
    scene.say("resolution", "survey", one.end_ns, {"session_id": scene.name("nobody")}, NO)
    scene.say("reopen", "helpdesk", one.end_ns, {"session_id": who, "ordinal": 7}, TICKET)
    scene.session(who, [one], STATUS, complete=True, reopened=True)
    scene.session(who, [odd], STATUS, complete=True)  # by an assumed claim


def settled(scene: Scene) -> None:
    """Spans that would change everything come when it has long settled: refused. What is heard of it still counts."""
    who, key = scene.name(), scene.name("order")
    late_h = scene.until_closing_h
    one = scene.trace(who, 0, *ORDERS, says=task(key=key))
    scene.trace(who, 2, *ORDERS, says=task(ORDER, claim="failed", key=key), late_h=late_h)
    scene.trace(who, 9, *SEARCHES, says=task(STATUS, claim="failed"), late_h=late_h)
    scene.say("evidence", "billing", one.end_ns + 2 * HOUR_NS, by_key(key), SETTLED, arrive_h=(late_h,))
    scene.say("resolution", "survey", one.end_ns + 3 * HOUR_NS, {"session_id": who}, YES, arrive_h=(late_h,))
    scene.session(who, [one], ORDER, complete=True, verified=False, answer=True)


def sealed(scene: Scene) -> None:
    """Spans and reports of more than five weeks ago: refused, and all stays."""
    who = scene.name()
    late_h = scene.until_closing_h
    one = scene.trace(who, 0, *SEARCHES, says=task(STATUS))
    scene.trace(who, 2, *ORDERS, says=task(claim="failed"), late_h=late_h)
    for kind, source, data in (
        ("invalidate", "ops", TICKET), ("resolution", "survey", NO), ("reopen", "helpdesk", TICKET),
    ):  # fmt: skip
        scene.say(kind, source, one.end_ns + 2 * HOUR_NS, {"session_id": who}, data, arrive_h=(late_h,))
    scene.session(who, [one], STATUS, complete=True)
