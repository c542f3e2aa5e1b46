"""An order agent as anybody might have it: the stock OTel SDK, the GenAI conventions, and nothing of trueup's.

Where its spans go it learns from OTEL_EXPORTER_OTLP_ENDPOINT alone. Prints the Unix time at which the export request
that carries its closing span begins.
"""

from __future__ import annotations

import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def main(conversation: str, order: str) -> None:
    """Serves one customer: a turn in which an order is placed and confirmed."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer = trace.get_tracer("order-agent")
    asked = {"gen_ai.conversation.id": conversation, "gen_ai.operation.name": "invoke_agent"}
    with tracer.start_as_current_span("invoke_agent order_agent", attributes=asked) as agent:
        agent.set_attribute("gen_ai.agent.name", "order_agent")
        with tracer.start_as_current_span("chat gpt-4o-mini") as chat:
            chat.set_attribute("gen_ai.operation.name", "chat")
            chat.set_attribute("gen_ai.request.model", "gpt-4o-mini")
            chat.set_attribute("gen_ai.usage.input_tokens", 400)
            chat.set_attribute("gen_ai.usage.output_tokens", 30)
        with tracer.start_as_current_span("execute_tool create_order") as tool:
            tool.set_attribute("gen_ai.operation.name", "execute_tool")
            tool.set_attribute("gen_ai.tool.name", "create_order")
        agent.set_attribute("trueup.state.order_id", order)
        agent.set_attribute("trueup.state.items_verified", True)
        agent.set_attribute("trueup.state.address_confirmed", True)
        agent.set_attribute("trueup.correlation.order_id", order)
        agent.set_attribute("trueup.task.outcome", "completed")
    print(time.time(), flush=True)
    provider.shutdown()  # a program that ends exports what it still holds


if __name__ == "__main__":
    main(*sys.argv[1:])
