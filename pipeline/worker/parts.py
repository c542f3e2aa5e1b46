"""What a process may consist of, and what it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pipeline.core.dialects.otel_genai import CONVERSATION_KEYS
from pipeline.core.timeline import TimeRules
from pipeline.runners.options import Breakpoints, RunnerOptions
from pipeline.worker.contracts import Files
from schemas.outcome import OutcomeKind
from schemas.segment import CUBES


class Part(StrEnum):
    """The parts, in the order data flows."""

    GATEWAY = "gateway"
    INGEST = "ingest"
    STAGES = "stages"
    SINK = "sink"
    API = "api"


EVERYTHING = frozenset(Part)
"""All of it in one process."""
WORKER = frozenset({Part.INGEST, Part.STAGES, Part.API})
GATEWAY = frozenset({Part.GATEWAY})
SINK = frozenset({Part.SINK, Part.API})


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """What a process is made from.

    Args:
        parts: which of it run here.
        runner: shared by all runners.
        contracts: those that this process brings; None where it judges nothing and shows nothing.
        dsn: of the store; empty where this process has none.
        gateway_port, api_port: 0 takes a free one.
        replication: of the topics that are missing; -1 is the broker's default.
        patience: see `topology.Setup`.
        agent_sources: see `Ingest`; None: those whose tokens may also send spans.
        outcome_sources, dead_letter_payload: see `Ingest`.
        subject_key: what subjects are hashed by; needed by who ingests.
        store_days: of the store's tables, by name: how long rows are kept.
        tokens: the file of bearer tokens; without it only loopback is served.
    """

    parts: frozenset[Part]
    runner: RunnerOptions
    rules: TimeRules
    contracts: Files | None = None
    host: str = "127.0.0.1"
    gateway_port: int = 0
    api_port: int = 0
    dsn: str = ""
    replication: int = -1
    patience: int = 4
    tokens: Path | None = None
    cubes: tuple[str, ...] = CUBES
    label_budget: int = 1000
    version: str = "unknown"
    tenant_from: str | None = None
    agent_sources: frozenset[str] | None = None
    outcome_sources: Mapping[OutcomeKind, frozenset[str]] = field(default_factory=dict)
    subject_key: bytes = b""
    dead_letter_payload: bool = False
    store_days: Mapping[str, int] = field(default_factory=dict)
    conversation_keys: tuple[str, ...] = CONVERSATION_KEYS
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    breakpoints: Breakpoints = field(default_factory=Breakpoints)
