"""A pydantic-ai agent that tells where a parcel is, though the carrier does not answer at once.

    python examples/stub_model.py python examples/pydantic_ai/agent.py

pydantic-ai instruments itself, and hands its conversation id to every span. What the agent achieved is stated where it
happens: in the tools, on the span that is current there.
"""

from __future__ import annotations

import sys
from uuid import uuid4

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings, ModelRetry, RunContext

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # where to: OTEL_EXPORTER_OTLP_ENDPOINT
trace.set_tracer_provider(provider)
Agent.instrument_all(InstrumentationSettings(include_content=False))  # no word of the customer leaves this program

agent = Agent(
    "openai-chat:gpt-4o-mini",
    name="order_status_agent",
    instructions="You tell customers where their orders are. Never guess.",
    retries=2,
)


@agent.tool_plain
def find_order(order_id: str) -> str:
    """What was ordered, and when."""
    span = trace.get_current_span()
    span.set_attribute("trueup.state.order_id", order_id)
    span.set_attribute("trueup.correlation.order_id", order_id)
    return f"order {order_id}: 1 red kettle, sent yesterday"


@agent.tool
def track_parcel(context: RunContext, order_id: str) -> str:
    """Where the parcel is, as the carrier says now."""
    if context.retry == 0:
        raise ModelRetry("The carrier is busy, try again.")
    span = trace.get_current_span()
    span.set_attribute("trueup.state.status_reported", True)
    span.set_attribute("trueup.state.status_age_minutes", 2)
    span.set_attribute("trueup.state.delivery_estimated", True)
    span.set_attribute("trueup.task.outcome", "completed")
    return f"the parcel of {order_id} was scanned 2 minutes ago in the delivery van"


def main(conversation: str, order: str) -> None:
    """Serves one customer."""
    history = None
    for words in (f"Where is my order {order}?", "Thank you!"):
        print(f"customer: {words}")
        result = agent.run_sync(words, message_history=history, conversation_id=conversation)
        print(f"agent:    {result.output}")
        history = result.all_messages()
    print(f"conversation {conversation}, order {order}")
    provider.shutdown()  # exports what is left


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else f"chat-{uuid4().hex[:8]}", given[1] if len(given) > 1 else f"A-{uuid4().hex[:8]}")
