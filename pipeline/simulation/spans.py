"""Makes the planned spans real: the OpenTelemetry SDK builds each one, with its own times, and ends children first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from pipeline.simulation.plan import ConversationPlan, RunPlan, SpanPlan, Value
from pipeline.simulation.profiles import FAMILIES

CONVERSATION_ID = "gen_ai.conversation.id"
SCOPE = "adventure_works.agents"


class SeededIds(IdGenerator):
    """Ids from a seed, so that a world can be made again."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def generate_trace_id(self) -> int:
        return self._rng.getrandbits(128) or 1

    def generate_span_id(self) -> int:
        return self._rng.getrandbits(64) or 1


class Collected(SpanProcessor):
    """Keeps every ended span, in the order in which they ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    def taken(self) -> list[ReadableSpan]:
        spans, self.spans = self.spans, []
        return spans


class Agents:
    """The shop's services, each with its tracer; the test environment's are the same with `trueup.test` set."""

    def __init__(self, rng: Random) -> None:
        self._collected = Collected()
        ids = SeededIds(rng)
        services = sorted({family.service for family in FAMILIES.values()})
        self._tracers: dict[tuple[str, bool], Tracer] = {
            (service, test): self._tracer(ids, service, test=test) for service in services for test in (False, True)
        }

    def traces(self, conversations: Iterable[ConversationPlan]) -> Iterator[list[ReadableSpan]]:
        """The spans of every run, a list for each trace, children before their parent and the root last."""
        for conversation in conversations:
            for session in conversation.sessions:
                for run in session.runs:
                    yield self._trace(conversation, run, FAMILIES[session.family].service)

    def _trace(self, conversation: ConversationPlan, run: RunPlan, service: str) -> list[ReadableSpan]:
        on_root: dict[str, Value] = {CONVERSATION_ID: conversation.name} if conversation.attributed else {}
        on_all = {} if run.id_on_root_only else on_root
        tracer = self._tracers[service, run.test]
        self._record(tracer, run.root, Context(), conversation.base_ns, on_root, on_all)
        return self._collected.taken()

    def _record(
        self,
        tracer: Tracer,
        plan: SpanPlan,
        context: Context,
        base_ns: int,
        identity: dict[str, Value],
        inherited: dict[str, Value],
    ) -> None:
        kind = SpanKind.CLIENT if plan.attributes["gen_ai.operation.name"] == "chat" else SpanKind.INTERNAL
        span = tracer.start_span(
            plan.name,
            context=context,
            kind=kind,
            attributes={**plan.attributes, **identity},
            start_time=base_ns + plan.start_ns,
        )
        inside = set_span_in_context(span, context)
        for child in plan.children:
            self._record(tracer, child, inside, base_ns, inherited, inherited)
        if plan.error is not None:
            span.set_status(Status(StatusCode.ERROR, plan.error))
        span.end(end_time=base_ns + plan.end_ns)

    def _tracer(self, ids: IdGenerator, service: str, *, test: bool) -> Tracer:
        described: dict[str, bool | str] = {"service.name": service}
        if test:
            described["trueup.test"] = True
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource(described), shutdown_on_exit=False, id_generator=ids
        )
        provider.add_span_processor(self._collected)
        return provider.get_tracer(SCOPE)
