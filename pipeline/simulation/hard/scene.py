"""Writes one scene: spans with the times at which they arrive, reports, and the verdicts that must come of them.

The scene is the only place that knows both what is sent and what is true; it says the one, and then the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from pipeline.simulation.conversations import MATURE_NS
from pipeline.simulation.hard.acts import Act, root
from pipeline.simulation.ledger import Account
from pipeline.simulation.outcomes import iso
from pipeline.simulation.plan import HOUR_NS, MINUTE_NS, SECOND_NS, Report, Value
from pipeline.simulation.spans import CONVERSATION_ID
from pipeline.simulation.traffic import Timed

STEP_NS = 50_000_000
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME, EVALUATION_SCORE = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
TENANT = "default"

Where = tuple[str, str, int]
"""Tenant, conversation and ordinal: what a verdict is about."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace as it was sent. `calls`, `ok`: the tool calls of its acts, as if none continued another."""

    trace_id: int
    start_ns: int
    end_ns: int
    calls: int
    ok: int

    @property
    def hex(self) -> str:
        return f"{self.trace_id:032x}"

    @property
    def alone(self) -> str:
        """The conversation that it is, where it belongs to none."""
        return f"trace:{self.hex}"


@dataclass(slots=True)
class Written:
    """What a scene came to. `closing`: what is sent after all other traffic."""

    timed: list[Timed] = field(default_factory=list)
    closing: list[ReadableSpan] = field(default_factory=list)
    verdicts: dict[Where, Account] = field(default_factory=dict)


class Scene:
    """One scene under way; times are minutes since its beginning, or ns.

    Args:
        kind, number: give its conversations, keys and people names of their own.
        base_ns: its beginning.
    """

    def __init__(self, rng: Random, kind: str, number: int, base_ns: int, now_ns: int) -> None:
        self.rng, self.kind, self.number = rng, kind, number
        self.base_ns, self.now_ns = base_ns, now_ns
        self.written = Written()
        self._sessions: dict[tuple[str, str], int] = {}

    def name(self, which: str = "a") -> str:
        """A name for a conversation, a key, a customer: the same for the same `which`."""
        return f"{self.kind}-{self.number:04d}-{which}"

    def at(self, minute: float) -> int:
        return self.base_ns + round(minute * MINUTE_NS)

    @property
    def until_closing_h(self) -> float:
        """Hours from its beginning to where the traffic of the world ends."""
        return (self.now_ns - MATURE_NS - self.base_ns) / HOUR_NS - 0.5

    # --- what is sent

    def trace(
        self,
        conversation: str | int | None,
        minute: float,
        *acts: Act,
        says: Mapping[str, Value] | None = None,
        links: Sequence[int] = (),
        root_late_h: float = 0.0,
        late_h: float = 0.0,
        id_on_all: bool = False,
        resource: Mapping[str, str | bool] | None = None,
        trace_id: int | None = None,
        start_ns: int | None = None,
    ) -> Trace:
        """Send one trace.

        Args:
            conversation: its id, on the root alone or on every span; None: none is stated.
            start_ns: when it starts, to the nanosecond, instead of at a minute.
            says: attributes of the root beside those of any agent.
            links: traces that the root links to.
            root_late_h, late_h: hours by which the root, or all of it, arrives late.
        """
        writer = _Writer(
            self, trace_id or self.rng.getrandbits(128), late_h, {"service.name": "desk", **(resource or {})}
        )
        identity: dict[str, Value] = {} if conversation is None else {CONVERSATION_ID: conversation}
        start_ns = self.at(minute) if start_ns is None else start_ns
        root_id = self.rng.getrandbits(64)
        end_ns = writer.acts(acts, root_id, start_ns + STEP_NS, identity if id_on_all else {})
        attributes = {**root(), **identity, **(says or {})}
        writer.span("invoke_agent concierge", root_id, None, start_ns, end_ns, attributes, None, links, root_late_h)
        first_ns = min([start_ns, *(start_ns + STEP_NS - round(act.before_s * SECOND_NS) for act in acts[:1])])
        calls, ok = sum(act.calls for act in acts), sum(act.ok for act in acts)
        return Trace(writer.trace_id, first_ns, end_ns, calls, ok)

    def say(
        self,
        kind: str,
        source: str,
        at_ns: int,
        to: Mapping[str, object],
        *versions: Mapping[str, object] | None,
        arrive_h: Sequence[float] = (),
        readdressed: Mapping[int, Mapping[str, object]] | None = None,
        renamed: Mapping[int, str] | None = None,
        numbers: Sequence[int] = (),
        tenant: str = TENANT,
    ) -> None:
        """One outcome event in all its versions; None retracts.

        Args:
            arrive_h: hours after the event at which each version arrives; else soon, one after the other.
            readdressed, renamed: which version has another address than `to`, another kind than `kind`.
            numbers: the versions' numbers; else 1, 2, 3.
        """
        at_ns -= at_ns % (SECOND_NS // 1000)  # events carry milliseconds
        event_id = f"{source}:{self.kind}-{self.rng.getrandbits(48):012x}"
        for version, data in enumerate(versions, start=1):
            number = numbers[version - 1] if numbers else version
            event: dict[str, object] = {
                "event_id": event_id, "event_version": number, "event_time": iso(at_ns), "source": source,
            }  # fmt: skip
            if tenant != TENANT:
                event["tenant"] = tenant
            if data is None:
                event["kind"] = "retract"
            else:
                event |= {"kind": (renamed or {}).get(version, kind), "data": dict(data)}
                event |= (readdressed or {}).get(version, to)
            hours = arrive_h[version - 1] if arrive_h else 0.1 * version
            arrival_ns = min(at_ns, self.now_ns) + round((hours + self.rng.uniform(0, 0.02)) * HOUR_NS)
            self.written.timed.append(Timed(min(arrival_ns, self.now_ns), Report(arrival_ns, at_ns, event)))

    # --- what is true

    def session(
        self,
        conversation: str,
        traces: Sequence[Trace],
        family: str,
        *,
        complete: bool,
        claimed: bool = True,
        verified: bool | None = None,
        escalated: bool = False,
        attempted: bool = False,
        abandoned: bool = False,
        reopened: bool = False,
        across: bool = False,
        follow_up: bool = False,
        answer: bool | None = None,
        invalid: bool = False,
        eligible: bool = True,
        calls: tuple[int, int] | None = None,
        goal: float | None = None,
        tenant: str = TENANT,
    ) -> None:
        """The next session of a conversation, and the verdict that it must end with.

        Args:
            across: it is reopened from another conversation.
            calls: tool calls, and those that went well; else all of its traces'.
            goal: how far it was scored to achieve its goal, 0 to 10.
        """
        ordinal = self._sessions[tenant, conversation] = self._sessions.get((tenant, conversation), 0) + 1
        made, well = calls or (sum(one.calls for one in traces), sum(one.ok for one in traces))
        self.written.verdicts[tenant, conversation, ordinal] = Account(
            family=family, invalid=invalid, eligible=eligible and not invalid,
            attributed=not conversation.startswith("trace:"), complete=complete, claimed=claimed, verified=verified,
            escalated=escalated, attempted=attempted or escalated, abandoned=abandoned, reopened=reopened or across,
            answer=answer, tool_calls=made, tool_calls_ok=well, follow_up=follow_up, across=across, goal=goal,
        )  # fmt: skip

    def send(self, span: ReadableSpan, arrival_ns: int, *, last: bool) -> None:
        if last:
            self.written.closing.append(span)
        else:
            self.written.timed.append(Timed(min(arrival_ns, self.now_ns), span))


class _Writer:
    """The spans of one trace."""

    def __init__(self, scene: Scene, trace_id: int, late_h: float, resource: Mapping[str, str | bool]) -> None:
        self.scene, self.trace_id, self.late_h = scene, trace_id, late_h
        self._resource = Resource(resource)
        self._flush_ns = round(scene.rng.uniform(1, 6) * SECOND_NS)

    def acts(self, acts: Sequence[Act], parent: int, now_ns: int, identity: Mapping[str, Value]) -> int:
        """Send what is done below `parent`, one after the other. Returns: when it is over."""
        for act in acts:
            span_id = self.scene.rng.getrandbits(64)
            start_ns = now_ns - round(act.before_s * SECOND_NS)
            inner_ns = self.acts(act.acts, span_id, now_ns + STEP_NS, identity) if act.acts else now_ns
            end_ns = max(inner_ns, now_ns) + round(act.seconds * SECOND_NS)
            attributes = {**act.attributes, **identity}
            self.span(
                act.name, span_id, parent, start_ns, end_ns, attributes, act.error, (), act.late_h, act.last, act.scores
            )  # fmt: skip
            now_ns = max(now_ns, now_ns if act.last else end_ns) + STEP_NS
        return now_ns

    def span(
        self,
        name: str,
        span_id: int,
        parent: int | None,
        start_ns: int,
        end_ns: int,
        attributes: Mapping[str, Value],
        error: str | None,
        links: Sequence[int],
        late_h: float,
        last: bool = False,
        scores: Mapping[str, int] | None = None,
    ) -> None:
        made = made_span(
            self._resource, self.trace_id, span_id, parent, name, start_ns, end_ns, attributes, error, links, scores
        )
        arrival_ns = max(end_ns, start_ns) + self._flush_ns + round((self.late_h + late_h) * HOUR_NS)
        self.scene.send(made, arrival_ns, last=last)


def made_span(
    resource: Resource,
    trace_id: int,
    span_id: int,
    parent: int | None,
    name: str,
    start_ns: int,
    end_ns: int,
    attributes: Mapping[str, Value],
    error: str | None = None,
    links: Sequence[int] = (),
    scores: Mapping[str, int] | None = None,
) -> ReadableSpan:
    """A span of the SDK, with whatever ids and times; `links`: traces; `scores`: evaluations of it, by name."""
    return ReadableSpan(
        name,
        context=_context(trace_id, span_id),
        parent=None if parent is None else _context(trace_id, parent),
        resource=resource,
        attributes=dict(attributes),
        links=[Link(_context(one, 1)) for one in links],
        events=[
            Event(EVALUATION, {EVALUATION_NAME: name, EVALUATION_SCORE: score}, end_ns)
            for name, score in (scores or {}).items()
        ],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.UNSET) if error is None else Status(StatusCode.ERROR, error),
        start_time=start_ns,
        end_time=end_ns,
    )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
