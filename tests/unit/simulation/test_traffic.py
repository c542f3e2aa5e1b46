"""How the world is sent: batches, faults that are really there and counted, and receivers that are behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipeline.simulation.deliver import DeliveryError, requests, send
from pipeline.simulation.traffic import LARGEST_BATCH, SMALLEST_BATCH, OutcomeBatch, SpanBatch, end_ns, trace_and_span
from pipeline.simulation.world import World, build

NOW = datetime(2026, 4, 8, 12, 0, tzinfo=UTC)


@cache
def world() -> World:
    return build(1, 300, NOW)


class Gateway(BaseHTTPRequestHandler):
    """Answers with the statuses that the test listed, then with 200, and keeps what it took."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = server.statuses.pop(0) if server.statuses else 200
        if status == 200:
            server.taken.append((self.path, self.headers.get("x-team"), body))
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def gateway(*statuses: int) -> Iterator[tuple[str, list[tuple[str, str | None, bytes]]]]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    server.statuses, server.taken = list(statuses), []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def spans_of(body: bytes) -> list[tuple[str, str]]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        (span.trace_id.hex(), span.span_id.hex())
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_every_request_is_a_real_export_request_or_a_list_of_events() -> None:
    sent = [spans_of(each) for each in requests(world()) if isinstance(each, bytes)]
    batches = [arrival for arrival in world().arrivals if isinstance(arrival, SpanBatch)]

    assert len(sent) == len(batches)
    for parsed, batch in zip(sent, batches, strict=True):
        made = [(f"{trace:032x}", f"{span:016x}") for trace, span in map(trace_and_span, batch.spans)]
        assert sorted(parsed) == sorted(made)


def test_batches_are_of_an_exporters_size_and_mix_traces() -> None:
    batches = [arrival.spans for arrival in world().arrivals if isinstance(arrival, SpanBatch)]

    assert all(len(spans) <= LARGEST_BATCH for spans in batches)
    assert sum(len(spans) < SMALLEST_BATCH for spans in batches) <= 2  # the last one, and a copy of it
    assert all(len({trace_and_span(span)[0] for span in spans}) > 1 for spans in batches)


def test_duplicates_are_exact_copies_and_as_many_as_counted() -> None:
    spans = [trace_and_span(s) for a in world().arrivals if isinstance(a, SpanBatch) for s in a.spans]
    events = [e for a in world().arrivals if isinstance(a, OutcomeBatch) for e in a.events]
    identities = Counter((e["event_id"], e["event_version"]) for e in events)
    texts = Counter(json.dumps(e, sort_keys=True) for e in events)

    assert len(texts) == len(identities)
    copies = len(spans) - len(set(spans)) + len(events) - len(identities)
    assert world().faults.duplicates == copies > 0


def test_late_and_reordered_spans_are_really_there() -> None:
    newest_ns, late, before = 0, 0, 0
    seen: set[tuple[int, int]] = set()
    for arrival in world().arrivals:
        for span in arrival.spans if isinstance(arrival, SpanBatch) else []:
            behind_ns = newest_ns - end_ns(span)
            if trace_and_span(span) not in seen:
                late += behind_ns > 300 * 10**9
                before += 0 < behind_ns <= 300 * 10**9
            seen.add(trace_and_span(span))
            newest_ns = max(newest_ns, end_ns(span))

    assert 0 < late <= world().faults.late
    assert 0 < before <= world().faults.reordered


def test_no_span_is_more_than_a_few_hours_behind_and_some_roots_are_behind_by_more_than_ten_minutes() -> None:
    newest_ns, behind, roots_behind = 0, [], []
    seen: set[tuple[int, int]] = set()
    for arrival in world().arrivals:
        for span in arrival.spans if isinstance(arrival, SpanBatch) else []:
            if trace_and_span(span) not in seen:
                behind.append(newest_ns - end_ns(span))
                if span.parent is None:
                    roots_behind.append(newest_ns - end_ns(span))
            seen.add(trace_and_span(span))
            newest_ns = max(newest_ns, end_ns(span))

    assert max(behind) < 6 * 3600 * 10**9
    assert max(roots_behind) > 600 * 10**9


def test_everything_is_sent_in_order_with_the_headers_even_to_a_receiver_that_is_behind() -> None:
    small = build(2, 12, NOW)
    told: list[tuple[int, int]] = []
    with gateway(503, 429, 200, 429, 503) as (url, taken):
        send(small, f"{url}/v1/traces", f"{url}/v1/outcomes", {"x-team": "blue"}, lambda *done: told.append(done))

    assert [path for path, _, _ in taken] == [
        "/v1/traces" if isinstance(arrival, SpanBatch) else "/v1/outcomes" for arrival in small.arrivals
    ]
    assert {team for _, team, _ in taken} == {"blue"}
    for (path, _, body), expected in zip(taken, requests(small), strict=True):
        assert (spans_of(body) if path == "/v1/traces" else json.loads(body)) == (
            spans_of(expected) if isinstance(expected, bytes) else expected
        )
    assert told == [(done, len(small.arrivals)) for done in range(1, len(small.arrivals) + 1)]


@pytest.mark.parametrize("status", [400, 401, 413])
def test_a_refusal_is_an_error_that_says_what_was_answered(status: int) -> None:
    small = build(2, 12, NOW)
    with gateway(status) as (url, taken), pytest.raises(DeliveryError, match=str(status)):
        send(small, f"{url}/v1/traces", f"{url}/v1/outcomes")

    assert taken == []


def test_nobody_there_is_an_error_that_names_the_address() -> None:
    small = build(2, 12, NOW)
    outcomes_first = [arrival for arrival in small.arrivals if isinstance(arrival, OutcomeBatch)]
    small.arrivals[:] = outcomes_first

    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1:1/v1/outcomes"):
        send(small, "http://127.0.0.1:1/v1/traces", "http://127.0.0.1:1/v1/outcomes", patience_seconds=0.6)
