"""What an agent does in one run, as a list of acts: model calls, tool calls, questions to people.

An act says how many tool calls it is, and how many of them went well; what a retry comes to, its scene says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.simulation.plan import Value
from pipeline.simulation.runs import CONCIERGE, CUSTOMER_TOOL, INTERRUPT

OPERATION = "gen_ai.operation.name"
MODEL = "gpt-5-mini"


@dataclass(frozen=True, slots=True)
class Act:
    """One span below the root of a run.

    Args:
        seconds: how long it takes; a negative duration is a clock that went back.
        before_s: how long before the run's other work it starts.
        late_h: hours until it arrives, beyond what the network takes.
        calls, ok: tool calls that it is.
        last: it is sent after everything else.
        scores: evaluations that the span carries, by name.
    """

    name: str
    attributes: Mapping[str, Value]
    error: str | None = None
    seconds: float = 1.0
    before_s: float = 0.0
    late_h: float = 0.0
    calls: int = 0
    ok: int = 0
    last: bool = False
    scores: Mapping[str, int] = field(default_factory=dict)
    acts: tuple[Act, ...] = field(default=())

    def late(self, hours: float) -> Act:
        return replace(self, late_h=hours)


def chat(finish: str = "tool_calls", more: Mapping[str, Value] | None = None) -> Act:
    """A model call. `more`: further attributes, such as a claim of its own."""
    attributes: dict[str, Value] = {
        OPERATION: "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "gen_ai.response.model": MODEL,
        "gen_ai.response.finish_reasons": (finish,),
        **(more or {}),
    }
    return Act(f"chat {MODEL}", attributes)


def answer(more: Mapping[str, Value] | None = None) -> Act:
    """The model's last word of a run."""
    return chat("stop", more)


def tool(name: str, *, call: str = "", error: str | None = None) -> Act:
    """A tool call, of the call id that the model gave it, if it gave one."""
    attributes: dict[str, Value] = {OPERATION: "execute_tool", "gen_ai.tool.name": name}
    if call:
        attributes["gen_ai.tool.call.id"] = call
    if error is not None:
        attributes["error.type"] = error
    return Act(f"execute_tool {name}", attributes, error, calls=1, ok=int(error is None))


def question(call: str, name: str = CUSTOMER_TOOL) -> Act:
    """A tool call that stops the run, until somebody answers: no call yet."""
    return replace(tool(name, call=call, error=INTERRUPT), calls=0, ok=0)


def agent(name: str, *acts: Act) -> Act:
    """Another agent at work."""
    calls, ok = sum(act.calls for act in acts), sum(act.ok for act in acts)
    attributes: dict[str, Value] = {OPERATION: "invoke_agent", "gen_ai.agent.name": name}
    return Act(f"invoke_agent {name}", attributes, calls=calls, ok=ok, acts=acts)


def guardrail() -> Act:
    """A check that found nothing: a span, but no work."""
    attributes: dict[str, Value] = {OPERATION: "guardrail_check", "gen_ai.guardrail.triggered": False}
    return Act("guardrail_check policy", attributes)


def root(name: str = CONCIERGE) -> dict[str, Value]:
    """The attributes of an agent's root span."""
    return {OPERATION: "invoke_agent", "gen_ai.agent.name": name}


SEARCHES = (chat(), tool("find_order"), answer())
"""A short run that ends in an answer."""
