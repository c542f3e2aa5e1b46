"""Sends a world in its order: spans with the real OTLP exporter, outcomes as JSON; or yields the requests themselves.

A receiver that is behind is waited for as it asks, one that is away (it restarts) for as long as patience lasts; a
refusal ends the sending with a `DeliveryError`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import requests as http
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from pipeline.simulation.traffic import SpanBatch
from pipeline.simulation.world import World

BEHIND = (429, 503)
PATIENCE_SECONDS = 120.0
AWAY_SECONDS = 0.5
REQUEST_TIMEOUT_SECONDS = 30.0

Progress = Callable[[int, int], None]


class DeliveryError(Exception):
    """The receiver refused a batch for good, or stayed behind for longer than our patience."""


class Delivery(http.Session):
    """An HTTP session that remembers how the last request was answered, which the exporter keeps to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False  # a proxy of the environment must not come between us and a gateway on this machine
        self.answer = "no answer"
        self.status: int | None = None
        self.retry_after_seconds = 1.0
        self.hooks["response"].append(self._remember)

    def forget(self) -> None:
        """Before a request: what the one before was answered no longer matters."""
        self.status, self.answer = None, "no answer"

    def _remember(self, response: http.Response, *_: object, **__: object) -> None:
        self.status = response.status_code
        self.answer = f"{response.status_code} {response.text[:200]}"
        self.retry_after_seconds = _seconds(response.headers.get("Retry-After"))


def send(
    world: World,
    traces_url: str,
    outcomes_url: str,
    headers: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> None:
    """Send everything, in order. `progress` is told how many batches of how many are through.

    Raises:
        DeliveryError: a batch was refused, or nobody answers.
    """
    given = dict(headers or {})
    with Delivery() as session:
        exporter = OTLPSpanExporter(
            endpoint=traces_url, headers=given, timeout=REQUEST_TIMEOUT_SECONDS, session=session
        )
        for done, arrival in enumerate(world.arrivals, start=1):
            if isinstance(arrival, SpanBatch):
                _insist(session, traces_url, partial(_export, exporter, arrival), patience_seconds)
            else:
                post = partial(_post, session, outcomes_url, arrival.events, given)
                _insist(session, outcomes_url, post, patience_seconds)
            if progress is not None:
                progress(done, len(world.arrivals))


def requests(world: World) -> Iterator[bytes | list[dict[str, object]]]:
    """The same without HTTP: each a serialized ExportTraceServiceRequest, or a list of outcome events."""
    for arrival in world.arrivals:
        yield encode_spans(arrival.spans).SerializeToString() if isinstance(arrival, SpanBatch) else arrival.events


def _insist(session: Delivery, url: str, attempt: Callable[[], bool], patience_seconds: float) -> None:
    """Repeat while the receiver says that it is behind, or does not answer, as long as patience lasts."""
    give_up_at = time.monotonic() + patience_seconds
    session.forget()
    while not attempt():
        wait = AWAY_SECONDS if session.status is None else session.retry_after_seconds
        if session.status not in (*BEHIND, None) or time.monotonic() + wait > give_up_at:
            raise DeliveryError(f"{url} did not take a batch: {session.answer}")
        time.sleep(wait)
        session.forget()


def _export(exporter: OTLPSpanExporter, batch: SpanBatch) -> bool:
    return exporter.export(batch.spans) is SpanExportResult.SUCCESS


def _post(session: Delivery, url: str, events: list[dict[str, object]], headers: Mapping[str, str]) -> bool:
    told = {**headers, "Content-Type": "application/json"}
    try:
        return session.post(url, data=json.dumps(events), headers=told, timeout=REQUEST_TIMEOUT_SECONDS).ok
    except (http.ConnectionError, http.Timeout):
        return False  # whether it was taken or not, it is sent again, and counts once


def _seconds(retry_after: str | None) -> float:
    """The wait that was asked for; a date, or nothing, is a second."""
    return min(30.0, float(retry_after)) if retry_after is not None and retry_after.isdecimal() else 1.0
