"""One run of the simulated agents: the span tree of one trace, as OpenTelemetry's GenAI convention spells it.

Every run that starts afresh opens with a model call, for only a resumed run begins with a tool. What the run called is
counted where it is planned, so that the ledger need not read spans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from pipeline.simulation.plan import SECOND_NS, Ending, HandOff, SpanPlan, Value
from pipeline.simulation.profiles import Family

MODELS = (("openai", "gpt-5-mini", "gpt-5-mini-2026-01-15"), ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"))
CONCIERGE = "concierge"
CUSTOMER_TOOL = "ask_customer"
INTERRUPT = "GraphInterrupt"
TOOL_ERRORS = ("timeout", "ConnectionError", "ValueError")


@dataclass(slots=True)
class Calls:
    """Tool calls of a session so far, as the plan knows them."""

    made: int = 0
    ok: int = 0

    def count(self, ok: bool) -> None:
        self.made += 1
        self.ok += ok


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What a run has to do. `resumes`: the call id of the interrupted question that it takes up again."""

    ending: Ending = Ending.ANSWERS
    hand_off: HandOff = HandOff.NONE
    guarded: bool = False
    bare: bool = False
    claim_by_tool: bool = False
    resumes: str | None = None
    interrupts: str | None = None
    root: Mapping[str, Value] = field(default_factory=dict)
    claim: Mapping[str, Value] = field(default_factory=dict)
    state: Mapping[str, Value] = field(default_factory=dict)
    early_state: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, Value] = field(default_factory=dict)


class RunWriter:
    """Writes the spans of one run one after the other; `now_ns` is where the run has got to."""

    def __init__(self, rng: Random, family: Family, calls: Calls, start_ns: int) -> None:
        self.rng = rng
        self.family = family
        self.calls = calls
        self.now_ns = start_ns
        self.provider, self.asked_model, self.model = rng.choice(MODELS)

    def write(self, order: RunOrder) -> SpanPlan:
        """The root span of a run that does what `order` says."""
        start_ns = self.now_ns
        self._pass(0.01, 0.05)
        spans: list[SpanPlan] = []
        keys_on_root = self.rng.random() < 0.5
        if order.resumes is not None:
            spans.append(self._tool_span(CUSTOMER_TOOL, order.resumes, None))
            self.calls.count(ok=True)
        if order.guarded:
            spans += [self._chat("tool_calls"), self._guardrail(tripped=True)]
        elif not order.bare:
            spans.append(self._chat("tool_calls", order.early_state))
            if self.rng.random() < 0.1:
                spans.append(self._guardrail(tripped=False))
            if self.rng.random() < 0.3:
                spans.append(self._transfer())
            spans.append(self._specialist(order, {} if keys_on_root else order.keys))
        error = None
        if order.hand_off is not HandOff.NONE:
            spans += [self._chat("tool_calls"), self._escalate(order.hand_off)]
        final = {} if self.rng.random() < 0.6 else {**order.claim, **order.state}
        if order.ending is Ending.CRASHES:
            spans += self._crash()
            error = str(spans[-1].error)
        elif order.ending is Ending.WAITS_FOR_CUSTOMER or order.interrupts is not None:
            spans += self._interrupt(CUSTOMER_TOOL, order.interrupts or self._id("call"))
            error = INTERRUPT
        elif order.ending is Ending.WAITS_FOR_PERSON:
            if self.family.approvals and self.rng.random() < 0.5:
                spans += self._interrupt(self.family.approval_tool, self._id("call"))
                error = INTERRUPT
            else:
                spans.append(self._open_request())
        else:
            spans.append(self._chat("stop", final))
        self._pass(0.001, 0.02)
        on_root = {**order.root, **({} if final else {**order.claim, **order.state})}
        if keys_on_root or order.guarded:
            on_root |= order.keys
        return self._agent(CONCIERGE, start_ns, tuple(spans), on_root, error)

    def _specialist(self, order: RunOrder, attributes: Mapping[str, Value]) -> SpanPlan:
        start_ns = self.now_ns
        self._pass(0.002, 0.01)
        spans = [self._chat("tool_calls")]
        for name in self.rng.sample(self.family.tools, self.rng.randint(1, 3)):
            spans += self._call(name)
        if self.rng.random() < 0.35:
            helper_start_ns = self.now_ns
            self._pass(0.002, 0.01)
            inner = [self._chat("tool_calls"), *self._call(self.rng.choice(self.family.tools)), self._chat("stop")]
            spans.append(self._agent(self.family.helper, helper_start_ns, tuple(inner), {}, None))
        if order.claim_by_tool and self.family.claim_tool is not None:
            spans += [self._chat("tool_calls"), self._tool_span(self.family.claim_tool, self._id("call"), None)]
            self.calls.count(ok=True)
        spans.append(self._chat("stop"))
        return self._agent(self.family.agent, start_ns, tuple(spans), attributes, None)

    def _call(self, name: str) -> list[SpanPlan]:
        """One tool call: mostly well; else failed for good, mended under its own call id, or repeated as a new call."""
        call_id = self._id("call")
        if self.rng.random() >= self.family.tool_failure * 1.5:
            self.calls.count(ok=True)
            return [self._tool_span(name, call_id if self.rng.random() < 0.9 else None, None)]
        failed = self._tool_span(name, call_id, self.rng.choice(TOOL_ERRORS))
        what = self.rng.random()
        if what < 0.4:
            self.calls.count(ok=False)
            return [failed]
        if what < 0.7:
            self.calls.count(ok=True)
            return [failed, self._tool_span(name, call_id, None)]
        self.calls.count(ok=False)
        self.calls.count(ok=True)
        return [failed, self._tool_span(name, self._id("call"), None)]

    def _escalate(self, hand_off: HandOff) -> SpanPlan:
        accepted = hand_off is HandOff.ACCEPTED
        self.calls.count(ok=accepted)
        return self._tool_span(self.family.hand_off_tool, self._id("call"), None if accepted else "NoAgentAvailable")

    def _crash(self) -> list[SpanPlan]:
        if self.rng.random() < 0.5:
            return [self._chat("error", error="RateLimitError")]
        self.calls.count(ok=False)
        name = self.family.claim_tool or self.family.tools[-1]
        return [self._chat("tool_calls"), self._tool_span(name, self._id("call"), "timeout")]

    def _interrupt(self, tool: str, call_id: str) -> list[SpanPlan]:
        return [self._chat("tool_calls"), self._tool_span(tool, call_id, INTERRUPT)]

    def _open_request(self) -> SpanPlan:
        part = {"type": "tool_call", "id": self._id("call"), "name": self.family.approval_tool, "arguments": {}}
        message = [{"role": "assistant", "parts": [part], "finish_reason": "tool_call"}]
        return self._chat("tool_calls", {"gen_ai.output.messages": json.dumps(message)})

    def _chat(self, finish: str, more: Mapping[str, Value] | None = None, *, error: str | None = None) -> SpanPlan:
        start_ns = self.now_ns
        self._pass(0.4, 4.0)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.asked_model,
            **(more or {}),
        }
        if error is None:
            attributes |= {
                "gen_ai.response.model": self.model,
                "gen_ai.response.id": self._id("resp"),
                "gen_ai.response.finish_reasons": (finish,),
                "gen_ai.usage.input_tokens": self.rng.randint(200, 3000),
                "gen_ai.usage.output_tokens": self.rng.randint(10, 400),
            }
        return self._ended(f"chat {self.asked_model}", start_ns, attributes, error)

    def _tool_span(self, name: str, call_id: str | None, error: str | None) -> SpanPlan:
        start_ns = self.now_ns
        self._pass(0.05, 2.5)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        if call_id is not None:
            attributes["gen_ai.tool.call.id"] = call_id
        return self._ended(f"execute_tool {name}", start_ns, attributes, error)

    def _transfer(self) -> SpanPlan:
        return self._tool_span(f"transfer_to_{self.family.agent}", self._id("call"), None)

    def _guardrail(self, *, tripped: bool) -> SpanPlan:
        start_ns = self.now_ns
        self._pass(0.01, 0.2)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "guardrail_check",
            "gen_ai.guardrail.name": "policy",
            "gen_ai.guardrail.triggered": tripped,
        }
        return self._ended("guardrail_check policy", start_ns, attributes, None)

    def _agent(
        self, name: str, start_ns: int, children: tuple[SpanPlan, ...], more: Mapping[str, Value], error: str | None
    ) -> SpanPlan:
        self._pass(0.001, 0.01)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.provider.name": self.provider,
            **more,
        }
        return self._ended(f"invoke_agent {name}", start_ns, attributes, error, children)

    def _ended(
        self,
        name: str,
        start_ns: int,
        attributes: dict[str, Value],
        error: str | None,
        children: tuple[SpanPlan, ...] = (),
    ) -> SpanPlan:
        end_ns = self.now_ns
        self._pass(0.001, 0.01)
        if error is not None:
            attributes["error.type"] = error
        return SpanPlan(name, start_ns, end_ns, attributes, error, children)

    def _pass(self, least_seconds: float, most_seconds: float) -> None:
        self.now_ns += round(self.rng.uniform(least_seconds, most_seconds) * SECOND_NS)

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self.rng.getrandbits(64):016x}"
