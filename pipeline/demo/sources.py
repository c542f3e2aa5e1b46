"""What the pipeline says, read from the outside, as anybody could: the API, a scrape, and the store.

The rule this file keeps: every number is read over HTTP; nothing is taken from the inside.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from pipeline.embedded.machine import Ports
from schemas.segment import CUBES

WINDOW = "7d"
PATIENCE_SECONDS = 20.0
PAGE = 500
NUMERATOR, DENOMINATOR = "trueup_rate_numerator_sessions", "trueup_rate_denominator_sessions"

Counts = dict[tuple[str, str], tuple[int, int]]
"""(family, rate) to (numerator, denominator); the family of the whole system is ''."""


class NotThere(Exception):
    """A page does not answer now, such as that of a worker that restarts."""


class Pages:
    """The pages of a running set-up."""

    def __init__(self, ports: Callable[[], Ports]) -> None:
        self._ports = ports
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy between us and this machine

    def sources(self) -> dict[str, Callable[[], Counts]]:
        """Every way to read the rates: by each worker, by a scrape of all, and from the store."""
        ports = self._ports()
        found: dict[str, Callable[[], Counts]] = {}
        for number, port in enumerate(ports.workers, start=1):
            name = "state" if len(ports.workers) == 1 else f"state {number}"
            found[name] = lambda port=port: self.rates(port)  # type: ignore[misc]
        found["metrics"] = lambda: self.scraped(ports.workers)
        found["store"] = lambda: self.rates(ports.store, "store")
        return found

    def rates(self, port: int, source: str = "state") -> Counts:
        """Of `/api/rates`.

        Raises:
            NotThere: nobody answers.
        """
        found: Counts = {}
        for cube in CUBES:
            body = self.json(port, f"/api/rates?cube={cube}&window={WINDOW}&source={source}")
            for one in body["rates"]:
                found[one["dimensions"].get("family", ""), one["rate"]] = (one["numerator"], one["denominator"])
        return found

    def scraped(self, workers: Iterable[int]) -> Counts:
        """Of `/metrics`; each worker shows the segments that it owns, so they are added up.

        Raises:
            NotThere: nobody answers.
        """
        counts: dict[str, Counter[tuple[str, str]]] = {NUMERATOR: Counter(), DENOMINATOR: Counter()}
        for port in workers:
            text = self._get(port, "/metrics").text
            for family in text_string_to_metric_families(text):
                if family.name in counts:
                    for sample in family.samples:
                        if sample.labels["window"] == WINDOW and sample.labels["cube"] in CUBES:
                            place = sample.labels.get("family", ""), sample.labels["rate"]
                            counts[family.name][place] += int(sample.value)
        return {place: (counts[NUMERATOR][place], n) for place, n in counts[DENOMINATOR].items()}

    def conversation(self, tenant: str, conversation: str) -> dict[str, Any]:
        """All sessions of a conversation.

        Raises:
            NotThere: nobody answers, or the store has none.
        """
        return self.json(self._ports().store, f"/api/sessions/{tenant}/{conversation}")

    def listed(self) -> Iterator[dict[str, Any]]:
        """Every session that the store has, page after page.

        Raises:
            NotThere: nobody answers.
        """
        cursor: str | None = ""
        while cursor is not None:
            page = self.json(
                self._ports().store, f"/api/sessions?limit={PAGE}" + (f"&cursor={cursor}" if cursor else "")
            )
            yield from page["sessions"]
            cursor = page["cursor"]

    def json(self, port: int, path: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self._get(port, path).content)
        return body

    def _get(self, port: int, path: str) -> requests.Response:
        try:
            response = self._session.get(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise NotThere(f"nobody answers at port {port}: {type(error).__name__}") from error
        if response.status_code != 200:
            raise NotThere(f"{path} at port {port} is answered with {response.status_code}: {response.text[:200]}")
        return response
