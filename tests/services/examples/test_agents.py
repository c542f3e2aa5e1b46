"""Each agent of `examples/`, with its own instrumentation: from its spans to a verdict that an outcome revises."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.live.test_live import PATIENCE_SECONDS, SEEN_WITHIN_SECONDS
from tests.services.examples.conftest import ROOT, Trueup, bare

MODEL = "gpt-4o-mini"
TOLD = re.compile(r"^conversation (\S+), order (A-[0-9a-f]{8})$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """What an example does, and what becomes of it.

    Attributes:
        session: fields of its verdict when it is first judged.
        outcome: what is posted then, but for its address; by the order where it is evidence, else by the conversation.
        revised: fields of its verdict after that.
        reason: what the second revision says of it.
        rate, before, after: numerator and denominator of the rate of its family that the outcome moves.
    """

    name: str
    family: str
    agents: list[str]
    tools: list[str]
    session: dict[str, Any]
    outcome: dict[str, Any]
    revised: dict[str, Any]
    reason: str
    rate: str
    before: tuple[int, int]
    after: tuple[int, int]


CASES = (
    Case(
        "langgraph_agent",
        "order_placement",
        ["order_agent"],
        ["search_products", "look_up_address", "create_order", "send_confirmation"],
        {"turns": 2, "runs": 2, "tool_calls": 4, "tool_calls_ok": 4, "errors": 0, "completion": "pending"},
        {"source": "billing", "kind": "evidence", "data": {"payment_status": "settled"}},
        {"completion": "complete", "resolved": True},
        "payment_confirmed: pending -> passed",
        "completion",
        (0, 1),
        (1, 1),
    ),
    Case(
        "openai_agents",
        "return",
        ["triage_agent", "returns_agent"],
        ["look_up_order", "authorize_return", "send_label"],
        {"turns": 2, "runs": 2, "tool_calls": 3, "tool_calls_ok": 3, "errors": 0, "completion": "pending"},
        {"source": "billing", "kind": "evidence", "data": {"refund_status": "rejected"}},
        {"completion": "incomplete", "verified": False, "resolved": False},
        "refund_settled: pending -> failed (fails_when)",
        "claimed_completion",
        (1, 1),
        (1, 1),
    ),
    Case(
        "pydantic_ai",
        "order_status",
        ["order_status_agent"],
        ["find_order", "track_parcel"],
        {"turns": 2, "runs": 2, "tool_calls": 3, "tool_calls_ok": 2, "errors": 1, "completion": "complete"},
        {"source": "desk", "kind": "reopen"},
        {"completion": "complete", "reopened": True, "resolved": False},
        "reopen desk",
        "reopen",
        (0, 1),
        (1, 1),
    ),
)


def rate(live: Trueup, case: Case) -> tuple[int, int] | None:
    """Numerator and denominator, of the family over an hour; None while nothing is counted."""
    query = {"cube": "family", "window": "1h", "rate": case.rate}
    found = requests.get(f"{live.worker}/api/rates", params=query, timeout=PATIENCE_SECONDS).json()["rates"]
    of_family = [one for one in found if one["dimensions"] == {"family": case.family} and one["denominator"]]
    return (of_family[0]["numerator"], of_family[0]["denominator"]) if of_family else None


def gauge(live: Trueup, case: Case) -> tuple[int, int]:
    """The same, as Prometheus would scrape it."""
    text = requests.get(f"{live.worker}/metrics", timeout=PATIENCE_SECONDS).text
    wanted = {"cube": "family", "family": case.family, "window": "1h", "rate": case.rate}
    found = {
        sample.name: int(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if wanted.items() <= sample.labels.items()
    }
    return found["trueup_rate_numerator_sessions"], found["trueup_rate_denominator_sessions"]


@dataclass(frozen=True)
class Played:
    """What an example said, and how soon its session could be read."""

    conversation: str
    order: str
    seen_after_seconds: float


@pytest.fixture(scope="module")
def played(live: Trueup, python: str) -> dict[str, Played]:
    """All examples, one after the other: what they wait for, they wait for together."""
    return {case.name: play(live, python, case.name) for case in CASES}


def play(live: Trueup, python: str, name: str) -> Played:
    done = subprocess.run(
        [python, "examples/stub_model.py", python, f"examples/{name}/agent.py"],
        cwd=ROOT,
        env={**bare(), "OTEL_EXPORTER_OTLP_ENDPOINT": live.gateway},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    ended = time.monotonic()
    assert (done.returncode, done.stderr) == (0, "")
    [(conversation, order)] = TOLD.findall(done.stdout)
    live.until(lambda: live.session(conversation), f"the session of {conversation}")
    return Played(conversation, order, time.monotonic() - ended)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_example_arrives_is_judged_and_is_revised(live: Trueup, played: dict[str, Played], case: Case) -> None:
    mine = played[case.name]
    first = live.revision(mine.conversation, 1)
    counted = live.until(lambda: rate(live, case), "a session that is counted")
    by_order = case.outcome["kind"] == "evidence"
    live.report(
        event_id=f"{case.name}-1",
        event_time=datetime.now(UTC).isoformat(),
        **case.outcome,
        **({"correlation": {"order_id": mine.order}} if by_order else {"session_id": mine.conversation}),
    )
    second = live.revision(mine.conversation, 2)
    live.until(lambda: case.after if rate(live, case) == case.after else None, f"a {case.rate} of {case.after}")

    assert mine.seen_after_seconds < SEEN_WITHIN_SECONDS
    verdict = first["verdict"]
    assert (verdict["agents"], verdict["tools"], verdict["models"]) == (case.agents, case.tools, [MODEL])
    assert (verdict["family"], verdict["family_source"], verdict["attributed"]) == (case.family, "derived", True)
    assert (verdict["claim"], verdict["claimed"], verdict["terminal_reason"]) == ("completed", "explicit", "completed")
    assert verdict["input_tokens"] > verdict["output_tokens"] > 0
    assert {name: verdict[name] for name in case.session} == case.session
    assert {name: second["verdict"][name] for name in case.revised} == case.revised
    assert [one["revision"] for one in second["revisions"]] == [1, 2]
    assert case.reason in second["revisions"][1]["reason"]
    assert (counted, gauge(live, case)) == (case.before, case.after)
