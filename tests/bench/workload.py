"""The workload: what a Collector exports of some hours of support conversations, and the truth about them.

The rule this file keeps: a seed and a number of sessions give the same bytes on every machine.

Unkeyed messages of 256 interleaved spans of 10 instances; 3 to 5 traces a session, 3 to 7 spans a trace. Half of the
traces carry the conversation's id on the root alone, which ends and therefore is exported last. Export takes up to 5 s;
2 % of the spans come up to 2 minutes late, 0.5 % twice, and 0.5 % of the messages twice. 2 % of the sessions get an
outcome 10 minutes to 3 hours after their end, a few outcomes twice, and ten are for sessions that never come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from tests.bench import encoding as wire
from tests.bench.families import FAMILIES, Counts, Family

BEGIN = 1_750_000_000
SECOND = 1_000_000_000
BATCH = 256
AFTER_ALL = 4 * 86_400
"""Seconds from the last outcome to the end of input: every deadline and window of the contracts is over by then."""

MODELS = ("gpt-4o", "gpt-4o-mini", "claude-sonnet-4", "o4-mini")
TOOLS = (
    "lookup_order", "search_knowledge_base", "get_prices", "update_address", "check_inventory", "send_email",
    "create_ticket", "get_customer_profile", "schedule_callback", "run_diagnostics",
)  # fmt: skip
TO_A_PERSON = "escalate_to_human"


@dataclass(frozen=True, slots=True)
class Message:
    """A record for a source topic; `time` in ns."""

    time: int
    value: bytes


@dataclass(slots=True)
class Workload:
    """What is sent, and what must come out.

    Args:
        sent: spans with repetitions; distinct: without.
        end: event time after which nothing about these sessions can change, ns.
    """

    spans: list[Message]
    outcomes: list[Message]
    truth: dict[str, Counts]
    sent: int
    distinct: int
    end: int

    @property
    def size(self) -> int:
        return sum(len(message.value) for message in self.spans)


@dataclass(slots=True)
class _Story:
    """How a session goes."""

    family: Family
    conversation: str
    user: str
    model: str
    thread: int
    instance: int
    claims: bool
    sound: bool  # its state satisfies the contract
    escalates: bool
    time: float = 0.0


@dataclass(slots=True)
class _Export:
    """Spans on their way out: (moment, instance, span)."""

    pieces: list[tuple[int, int, bytes]] = field(default_factory=list)
    distinct: int = 0


class Generator:
    """Draws everything from one random generator, in one order."""

    def __init__(self, seed: int, hours: float = 4.0) -> None:
        self._random = Random(seed)
        self._hours = hours
        self._repeated = wire.Repeated()
        self._origins = [self._origin(family, number) for family in FAMILIES for number in range(2)]
        self._export = _Export()
        self._events: list[tuple[int, bytes]] = []
        self._truth = {family.name: Counts() for family in FAMILIES}

    def run(self, sessions: int) -> Workload:
        for _ in range(sessions):
            story = self._story()
            self._session(story)
            self._count(story)
        for _ in range(10):
            moment = self._moment(BEGIN + self._random.random() * self._hours * 3600)
            self._send_outcome(moment, "conv-" + self._random.randbytes(12).hex(), "reopen", {})
        messages, sent = self._messages()
        self._events.sort()
        end = max([messages[-1].time, *(moment for moment, _ in self._events)]) + AFTER_ALL * SECOND
        outcomes = [Message(*event) for event in self._events]
        return Workload(messages, outcomes, self._truth, sent, self._export.distinct, end)

    def _origin(self, family: Family, number: int) -> tuple[bytes, bytes]:
        attributes: list[tuple[str, wire.Value]] = [
            ("service.name", f"{family.name}-agent-svc"),
            ("service.namespace", "support"),
            ("service.version", "2.14.3"),
            ("service.instance.id", self._random.randbytes(16).hex()),
            ("deployment.environment.name", "production"),
            ("telemetry.sdk.language", "python"),
            ("telemetry.sdk.name", "opentelemetry"),
            ("telemetry.sdk.version", "1.38.0"),
            ("host.name", f"{family.name.replace('_', '-')}-{number}.prod.internal"),
            ("process.pid", 1000 + number),
        ]
        return wire.origin(attributes, "opentelemetry.instrumentation.openai_agents", "0.53.1")

    def _story(self) -> _Story:
        random = self._random
        index = random.choices(range(len(FAMILIES)), [family.weight for family in FAMILIES])[0]
        family = FAMILIES[index]
        claims = random.random() < family.claims
        return _Story(
            family=family,
            conversation="conv-" + random.randbytes(12).hex(),
            user=f"user-{random.randint(0, 20_000_000):08d}",
            model=random.choice(MODELS),
            thread=1000 + random.randint(0, 63),
            instance=2 * index + random.randint(0, 1),
            claims=claims,
            sound=claims and random.random() < family.sound,
            escalates=not claims and random.random() < family.escalates,
            time=BEGIN + random.random() * self._hours * 3600,
        )

    def _session(self, story: _Story) -> None:
        traces = self._random.randint(3, 5)
        for number in range(traces):
            self._trace(story, last=number == traces - 1)
            if number < traces - 1:
                story.time += min(self._random.expovariate(1 / 60) + 2, 600)  # the customer thinks

    def _trace(self, story: _Story, last: bool) -> None:
        random, again = self._random, self._repeated
        trace_id, root_id = random.randbytes(16), random.randbytes(8)
        common = again("gen_ai.agent.name", story.family.agent) + again("thread.id", story.thread)
        own = wire.attribute("gen_ai.conversation.id", story.conversation)
        inner = common + own if random.random() < 0.5 else common
        children = random.randint(2, 6)
        begun = story.time
        for number in range(children):
            to_person = last and story.escalates and number == children - 1
            commits = last and story.claims and number == children - 1 and bool(story.family.final_tool)
            start = self._moment(story.time)
            taken = random.expovariate(1 / 1.2) + 0.05
            story.time += taken + 0.01
            end = start + int(taken * SECOND)
            if number % 2 == 0 and not to_person and not commits:
                name, kind, attributes = self._model_call(story, number + 1 < children)
            else:
                tool = TO_A_PERSON if to_person else story.family.final_tool if commits else random.choice(TOOLS)
                name, kind, attributes = self._tool_call(story, tool)
            encoded = wire.span(trace_id, random.randbytes(8), root_id, name, kind, start, end, attributes + inner)
            self._send(story.instance, end, encoded)
        start, end = self._moment(begun) - SECOND // 1000, self._moment(story.time) + SECOND // 500
        name = f"invoke_agent {story.family.agent}"
        attributes = common + own + self._root(story, last)
        self._send(story.instance, end, wire.span(trace_id, root_id, b"", name, wire.INTERNAL, start, end, attributes))

    def _model_call(self, story: _Story, more: bool) -> tuple[str, bytes, bytes]:
        random, again = self._random, self._repeated
        maker = "anthropic" if story.model.startswith("claude") else "openai"
        attributes = (
            again("gen_ai.operation.name", "chat"),
            again("gen_ai.provider.name", maker),
            again("gen_ai.request.model", story.model),
            again("gen_ai.response.model", story.model),
            wire.attribute("gen_ai.response.id", "chatcmpl-" + random.randbytes(12).hex()),
            again("gen_ai.response.finish_reasons", ("tool_calls",) if more else ("stop",)),
            wire.attribute("gen_ai.usage.input_tokens", random.randint(200, 6000)),
            wire.attribute("gen_ai.usage.output_tokens", random.randint(5, 900)),
            again("gen_ai.request.temperature", 0.2),
            again("gen_ai.request.max_tokens", 4096),
            again("gen_ai.output.type", "text"),
            again("server.address", f"api.{maker}.com"),
            again("server.port", 443),
        )
        return f"chat {story.model}", wire.CLIENT, b"".join(attributes)

    def _tool_call(self, story: _Story, tool: str) -> tuple[str, bytes, bytes]:
        random, again = self._random, self._repeated
        arguments = f'{{"customer":"{story.user}","ref":{random.randint(0, 9_999_999)}}}'
        attributes = (
            again("gen_ai.operation.name", "execute_tool"),
            again("gen_ai.tool.name", tool),
            again("gen_ai.tool.type", "function"),
            wire.attribute("gen_ai.tool.call.id", "call_" + random.randbytes(12).hex()),
            again("gen_ai.tool.description", f"Calls {tool}"),
            wire.attribute("gen_ai.tool.call.arguments", arguments),
            wire.attribute("gen_ai.tool.call.result", f'{{"status":"ok","rows":{random.randint(0, 50)}}}'),
            again("code.function.name", tool),
            again("code.file.path", "app/tools.py"),
            again("peer.service", "backend"),
            again("http.request.method", "POST"),
            again("http.response.status_code", 200),
            again("server.port", 8443),
        )
        return f"execute_tool {tool}", wire.INTERNAL, b"".join(attributes)

    def _root(self, story: _Story, last: bool) -> bytes:
        again = self._repeated
        attributes = [
            again("gen_ai.operation.name", "invoke_agent"),
            again("gen_ai.provider.name", "anthropic" if story.model.startswith("claude") else "openai"),
            again("gen_ai.agent.id", f"agt_{story.family.name}"),
            again("gen_ai.agent.description", f"Handles {story.family.name} requests"),
            again("gen_ai.request.model", story.model),
            wire.attribute("user.id", story.user),
            again("gen_ai.output.type", "text"),
            again("server.address", "support"),
            again("server.port", 443),
            again("app.release.ring", "blue" if story.instance & 1 else "green"),
            again("trueup.task.family", story.family.name),
        ]
        if last:
            claim = "completed" if story.claims else "escalated" if story.escalates else "failed"
            attributes.append(again("trueup.task.outcome", claim))
            state = story.family.state if story.sound else story.family.unsound_state
            attributes += [again(f"trueup.state.{name}", value) for name, value in state]
        return b"".join(attributes)

    def _send(self, instance: int, end: int, span: bytes) -> None:
        random, pieces = self._random, self._export.pieces
        at = end + int(random.uniform(0, 5) * SECOND)
        if random.random() < 0.02:
            at += int(random.uniform(5, 120) * SECOND)
        pieces.append((at, instance, span))
        self._export.distinct += 1
        if random.random() < 0.005:
            pieces.append((at + int(random.uniform(1, 300) * SECOND), instance, span))

    def _count(self, story: _Story) -> None:
        """Tell the truth about the session, and an outcome that makes part of it."""
        random, family = self._random, story.family
        reopened, escalated, confirmed = False, story.escalates, not family.evidence
        if random.random() < 0.02:
            moment = self._moment(story.time + random.uniform(600, 3 * 3600))
            drawn = random.random()
            if not story.claims:
                kind, data, escalated = "escalation", {"state": "accepted"}, True
            elif family.evidence and drawn < 0.5:
                kind, data, confirmed = "evidence", dict([family.evidence]), True
            elif drawn < 0.85:
                kind, data, reopened = "reopen", {}, True
            else:
                kind, data, escalated = "escalation", {"state": "accepted"}, True
            self._send_outcome(moment, story.conversation, kind, data, twice=random.random() < 0.01)
        self._truth[family.name].add(
            claimed=story.claims,
            completed=story.sound and confirmed,
            escalated=escalated,
            reopened=reopened,
        )

    def _send_outcome(
        self, moment: int, conversation: str, kind: str, data: dict[str, str], twice: bool = False
    ) -> None:
        event = {
            "event_id": f"T-{self._random.randbytes(8).hex()}",
            "event_time": datetime.fromtimestamp(moment // SECOND, UTC).isoformat(),
            "source": "helpdesk",
            "kind": kind,
            "session_id": conversation,
            "data": data,
        }
        encoded = json.dumps(event, separators=(",", ":")).encode()
        self._events.append((moment, encoded))
        if twice:
            self._events.append((moment + self._random.randint(1, 60) * SECOND, encoded))

    def _messages(self) -> tuple[list[Message], int]:
        """The spans in the order of their export, in messages grouped by instance; an exporter's retries among them."""
        pieces, random = sorted(self._export.pieces, key=lambda piece: piece[0]), self._random
        messages = [(Message(chunk[-1][0], self._request(chunk)), len(chunk)) for chunk in _chunks(pieces)]
        retried = [
            (Message(messages[min(index + random.randint(1, 20), len(messages) - 1)][0].time, one.value), n)
            for index, (one, n) in enumerate(messages)
            if random.random() < 0.005
        ]
        ordered = sorted(messages + retried, key=lambda one: one[0].time)
        return [message for message, _ in ordered], sum(n for _, n in ordered)

    def _request(self, chunk: list[tuple[int, int, bytes]]) -> bytes:
        by_instance: dict[int, list[bytes]] = {}
        for _, instance, span in chunk:
            by_instance.setdefault(instance, []).append(span)
        return wire.request((self._origins[instance], spans) for instance, spans in by_instance.items())

    @staticmethod
    def _moment(seconds: float) -> int:
        return int(seconds * 1_000_000) * 1000


def _chunks(pieces: list[tuple[int, int, bytes]]) -> Iterator[list[tuple[int, int, bytes]]]:
    for start in range(0, len(pieces), BATCH):
        yield pieces[start : start + BATCH]


def generate(sessions: int, seed: int = 7) -> Workload:
    return Generator(seed).run(sessions)
