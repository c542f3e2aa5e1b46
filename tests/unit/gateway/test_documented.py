"""The page about tokens and limits says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.gateway.broker import DELIVERY_SECONDS, MAX_RECORD_BYTES
from pipeline.gateway.limits import Limits
from pipeline.operate.migrate import RETENTION_DAYS
from pipeline.tokens import Scope, load
from schemas.topics import DAY_MS, TOPICS, Topic

PAGE = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text("utf-8")


def test_the_tokens_of_the_page_can_be_used(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "tokens.toml"
    file.write_text(example)
    tokens = load(file)

    [shop, billing, dashboards] = re.findall(r'^token = "(.*)"', example, re.MULTILINE)
    assert tokens.admit(f"Bearer {shop}", Scope.SPANS).tenant == "acme"
    assert tokens.admit(f"Bearer {billing}", Scope.OUTCOMES).sources == frozenset({"billing", "stripe"})
    assert tokens.admit(f"Bearer {dashboards}", Scope.READ).tenant is None
    assert tokens.agent_sources == {("acme", "shop-agent")}


def test_its_limits_are_the_real_ones() -> None:
    limits = Limits()
    for written in (
        f"| {limits.request_bytes >> 20} MiB | 413",
        f"| {limits.bytes_in_flight >> 20} MiB | 429",
        f"| {limits.items:,} | 413",
        f"| {limits.values:,} | 413",
        f"| {limits.depth} | protobuf",
        f"| {limits.read_seconds:g} s | 408",
        f"| {MAX_RECORD_BYTES:,} bytes |",
        f"within {DELIVERY_SECONDS:g} s",
    ):
        assert written in PAGE


def test_its_retention_is_the_real_one() -> None:
    assert f"{RETENTION_DAYS} days after a row was written" in PAGE
    rows = {
        "`trueup.spans`, `.session-events`, `.correlations`, `.partials`": (
            Topic.SPANS,
            Topic.SESSION_EVENTS,
            Topic.CORRELATIONS,
            Topic.PARTIALS,
        ),
        "`trueup.rows`, the `-snap` topics": (Topic.ROWS, *(topic for topic in Topic if topic.endswith("-snap"))),
        "`trueup.dead-letters`": (Topic.DEAD_LETTERS,),
    }
    for name, topics in rows.items():
        [days] = re.findall(rf"^\| {re.escape(name)} \| (\d+) days \|$", PAGE, re.MULTILINE)
        assert {TOPICS[topic].retention_ms for topic in topics} == {int(days) * DAY_MS}
