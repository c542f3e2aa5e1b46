"""A LangGraph agent that takes an order, in two turns of one conversation.

    python examples/stub_model.py python examples/langgraph_agent/agent.py

The conversation id is LangGraph's own thread id. What no framework can know, what the agent achieved, stands in a few
attributes on the span of a turn (`state`).
"""

from __future__ import annotations

import sys
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # where to: OTEL_EXPORTER_OTLP_ENDPOINT
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument(tracer_provider=provider)
tracer = trace.get_tracer("shop")

STOCK = {"KET-RED": ("red kettle", 39.90), "KET-BLUE": ("blue kettle", 41.50)}
orders: dict[str, str] = {}


@tool
def search_products(query: str) -> str:
    """Products whose name has these words, with their prices."""
    return "; ".join(f"{sku}: {name}, {price:.2f}" for sku, (name, price) in STOCK.items() if query in name)


@tool
def look_up_address() -> str:
    """The address that the customer had things sent to before."""
    return "Canal Street 7, as confirmed by the customer in March"


@tool
def create_order(sku: str, quantity: int) -> str:
    """Enter an order; returns its number."""
    order = f"A-{uuid4().hex[:8]}"
    orders[order] = f"{quantity} x {STOCK[sku][0]}"
    return f"order {order} is placed: {orders[order]}"


@tool
def send_confirmation() -> str:
    """Mail the customer what was ordered."""
    return f"{', '.join(orders.values())}, confirmed by mail as order {', '.join(orders)}"


def state() -> dict[str, str | bool]:
    """What the shop knows now and the contract `order_placement` asks about."""
    if not orders:
        return {}
    return {
        "trueup.state.order_id": next(reversed(orders)),
        "trueup.state.items_verified": True,
        "trueup.state.address_confirmed": True,
        "trueup.correlation.order_id": next(reversed(orders)),  # by which billing will speak of it
        "trueup.task.outcome": "completed",  # the agent's own claim
    }


def main(conversation: str) -> None:
    """Serves one customer."""
    agent = create_agent(
        "openai:gpt-4o-mini",
        tools=[search_products, look_up_address, create_order, send_confirmation],
        system_prompt="You take orders for a shop. Ask before you order.",
        checkpointer=InMemorySaver(),
        name="order_agent",
    )
    for words in ("Do you have a red kettle? I need two.", "Yes, order them please."):
        print(f"customer: {words}")
        with tracer.start_as_current_span("turn") as turn:
            said = {"messages": [{"role": "user", "content": words}]}
            answer = agent.invoke(said, config={"configurable": {"thread_id": conversation}})
            turn.set_attributes(state())
        print(f"agent:    {answer['messages'][-1].content}")
    print(f"conversation {conversation}, order {', '.join(orders)}")
    provider.shutdown()  # exports what is left


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else f"chat-{uuid4().hex[:8]}")
