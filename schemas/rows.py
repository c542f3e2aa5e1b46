"""The ClickHouse tables: names and columns, in the order in which rows carry them. Migrations create them so."""

from __future__ import annotations

TABLES: dict[str, tuple[str, ...]] = {
    "verdicts": (
        "tenant", "conversation", "ordinal", "version", "is_deleted", "revision", "reason", "start", "end", "bucket",
        "attributed", "family", "family_source", "contract_version", "claim", "claimed", "terminal_reason",
        "completion", "verified", "escalated", "handoff_attempted", "reopened", "reopened_at", "follow_up", "confirmed",
        "refused", "invalid", "eligible", "resolved", "score", "turns", "runs", "tool_calls", "tool_calls_ok", "errors",
        "retries", "input_tokens", "output_tokens", "cached_tokens", "agents", "models", "tools", "trace_ids", "flags",
        "subject", "issues", "settled", "as_of",
    ),
    "criteria": (
        "tenant", "conversation", "ordinal", "version", "is_deleted", "criterion", "required", "independent", "weight",
        "status", "reason", "passed_at", "deadline", "stage", "agent",
    ),
    "revisions": (
        "tenant", "conversation", "ordinal", "revision", "version", "is_deleted", "as_of", "reason", "changed", "verdict",
    ),
    "outcomes": (
        "tenant", "conversation", "source", "event_id", "via", "version", "is_deleted", "event_version", "event_time",
        "kind", "data", "from_agent",
    ),
    "agent_steps": (
        "tenant", "conversation", "trace_id", "span_id", "version", "is_deleted", "parent_id", "start", "end", "kind",
        "name", "agent", "tool", "call_id", "model", "failed", "control", "input_tokens", "output_tokens",
        "cached_tokens", "flags",
    ),
    "segment_metrics": (
        "cube", "dimensions", "rate", "bucket", "version", "is_deleted", "numerator", "denominator", "first_numerator",
        "first_denominator", "as_of",
    ),
    "dead_letters": (
        "reason", "detail", "topic", "partition", "offset", "size", "record_time", "tenant", "trace_id", "payload",
    ),
}
"""`data`, `verdict` and `changed` are JSON text; `dimensions` a map; `*_at` are 0 where unknown; `via` is `name=value`."""
