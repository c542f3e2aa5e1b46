"""The workload is what it says, and the hand-written loop counts it right: else the ratio compares nothing."""

from __future__ import annotations

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.bench.baseline import Loop
from tests.bench.core_line import Line
from tests.bench.families import differences
from tests.bench.workload import generate

SESSIONS = 150


def test_a_seed_gives_the_same_bytes_and_another_one_others() -> None:
    assert generate(20, 3) == generate(20, 3)
    assert generate(20, 3).spans != generate(20, 4).spans


def test_the_bytes_are_what_the_official_classes_write() -> None:
    for message in generate(SESSIONS).spans:
        request = ExportTraceServiceRequest.FromString(message.value)
        assert request.SerializeToString() == message.value


def test_spans_are_of_the_stated_size() -> None:
    workload = generate(SESSIONS)
    spans = [
        span
        for message in workload.spans
        for resource_spans in ExportTraceServiceRequest.FromString(message.value).resource_spans
        for span in resource_spans.scope_spans[0].spans
    ]
    assert len(spans) == workload.sent > workload.distinct == len({span.span_id for span in spans})
    assert 14 <= sum(len(span.attributes) for span in spans) / len(spans) <= 17
    assert 600 <= sum(span.ByteSize() for span in spans) / len(spans) <= 720


def test_half_of_the_traces_name_the_conversation_on_the_root_alone() -> None:
    named: dict[bytes, list[bool]] = {}
    for message in generate(SESSIONS).spans:
        for resource_spans in ExportTraceServiceRequest.FromString(message.value).resource_spans:
            for span in resource_spans.scope_spans[0].spans:
                has_id = any(pair.key == "gen_ai.conversation.id" for pair in span.attributes)
                assert has_id or span.parent_span_id
                named.setdefault(span.trace_id, []).append(has_id)
    on_root_alone = sum(not all(has_id) for has_id in named.values())
    assert 0.4 < on_root_alone / len(named) < 0.6


def test_the_steps_and_the_hand_written_loop_find_the_truth() -> None:
    workload = generate(SESSIONS)
    line, loop = Line(), Loop()
    line.take(workload)
    line.runner.end_of_input(workload.end)
    for message in workload.spans:
        loop.take_spans(message.value)
    for message in workload.outcomes:
        loop.take_outcome(message.value)
    assert not differences(line.counts(), workload.truth, ("sessions", "claimed", "completed", "escalated", "reopened"))
    assert not differences(loop.counts(), workload.truth, ("sessions", "claimed", "escalated", "reopened"))
    assert line.steps() == workload.distinct
    assert line.clock.seconds.keys() == {"ingest", "resolve", "correlate", "judge", "measure"}
