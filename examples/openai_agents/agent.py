"""Two agents of the OpenAI Agents SDK that take a return: one finds out what it is about and hands over to the other.

    python examples/stub_model.py python examples/openai_agents/agent.py

The conversation id is the SDK's own group id. What the agents achieved stands in a few attributes on the span of a turn
(`state`).
"""

from __future__ import annotations

import sys
from uuid import uuid4

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_default_openai_api, set_trace_processors
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # where to: OTEL_EXPORTER_OTLP_ENDPOINT
trace.set_tracer_provider(provider)
set_trace_processors([])  # the SDK's own, which sends to OpenAI
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)  # the model calls: the one above leaves them to it
tracer = trace.get_tracer("shop")

returns: dict[str, float] = {}


@function_tool
def look_up_order(order_id: str) -> str:
    """What was ordered, and whether it may still be returned."""
    return f"order {order_id}: 1 red kettle, 39.90, delivered 4 days ago, may be returned"


@function_tool
def authorize_return(order_id: str) -> str:
    """Allow the customer to send it back; returns the number of the return."""
    number = f"RET-{uuid4().hex[:8]}"
    returns[number] = 39.90
    return f"return {number} of order {order_id} is authorised, {returns[number]:.2f} to refund"


@function_tool
def send_label(order_id: str) -> str:
    """Mail the customer a shipping label."""
    return f"the label for {order_id} is sent"


returns_agent = Agent(
    name="returns_agent",
    instructions="You take returns. Ask before you authorise one.",
    tools=[look_up_order, authorize_return, send_label],
    model="gpt-4o-mini",
)
triage_agent = Agent(
    name="triage_agent",
    instructions="You find out what the customer wants and hand over to who can do it.",
    handoffs=[returns_agent],
    model="gpt-4o-mini",
)


def state(order: str) -> dict[str, str | bool | float]:
    """What the shop knows now and the contract `return` asks about."""
    if not returns:
        return {}
    return {
        "trueup.state.return_auth_id": next(reversed(returns)),
        "trueup.state.refund_amount": returns[next(reversed(returns))],
        "trueup.state.label_needed": True,
        "trueup.state.label_generated": True,
        "trueup.correlation.order_id": order,  # by which billing will speak of it
        "trueup.task.outcome": "completed",  # the agents' own claim
    }


def main(conversation: str, order: str) -> None:
    """Serves one customer."""
    set_default_openai_api("chat_completions")
    config = RunConfig(group_id=conversation, workflow_name="customer service")
    memory = SQLiteSession(conversation)
    agent = triage_agent
    for words in (f"I want to send order {order} back.", "Yes, please refund it."):
        print(f"customer: {words}")
        with tracer.start_as_current_span("turn") as turn:
            result = Runner.run_sync(agent, words, run_config=config, session=memory)
            turn.set_attributes(state(order))
        print(f"agent:    {result.final_output}")
        agent = result.last_agent
    print(f"conversation {conversation}, order {order}")
    provider.shutdown()  # exports what is left


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else f"chat-{uuid4().hex[:8]}", given[1] if len(given) > 1 else f"A-{uuid4().hex[:8]}")
