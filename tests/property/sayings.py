"""What spans and outcomes of the laws' worlds may say."""

from __future__ import annotations

from typing import Any

from tests.builders import trace_id

STEPS: tuple[dict[str, Any], ...] = (
    {"kind": "inference", "finish_reasons": ("stop",)},
    {"kind": "tool", "tool": "place_order", "arguments": {"item": "a", "count": "1"}},
    {"kind": "tool", "tool": "search", "call_id": "1", "arguments": {}},
    {"kind": "tool", "tool": "lookup"},
    {"kind": "inference", "finish_reasons": ("tool_calls",), "asked_tools": 1},
    {"kind": "tool", "tool": "place_order", "failed": True, "call_id": "1"},
    {"kind": "tool", "tool": "place_order", "call_id": "1"},
    {"kind": "tool", "tool": "refund", "interrupted": True, "call_id": "1"},
    {"kind": "tool", "tool": "refund", "call_id": "1"},
    {"kind": "tool", "tool": "ask_customer", "interrupted": True},
    {"kind": "tool", "tool": "notify"},
    {"kind": "tool", "tool": "escalate_to_human"},
    {"kind": "tool", "tool": "escalate_to_human", "failed": True},
    {"kind": "tool", "tool": "refuse"},
    {"kind": "tool", "tool": "search", "failed": True, "call_id": "1"},
    {"kind": "handoff", "handoff_target": "care_human"},
    {"kind": "handoff", "handoff_target": "care_human", "control_flow": True, "failed": True},
    {"kind": "handoff", "handoff_target": "other_agent"},
    {"kind": "inference", "finish_reasons": ("tool_calls",)},
    {"kind": "inference", "finish_reasons": ("length",), "asked_tools": 2},
    {"kind": "inference", "failed": True},
    {"kind": "inference", "input_tokens": 7, "response_id": "r1"},
    {"kind": "inference", "input_tokens": 7, "response_id": "r2"},
    {"kind": "embedding", "input_tokens": 2},
    {"kind": "agent", "agent": "second"},
    {"kind": "step"},
    {"kind": "guardrail", "guardrail_tripped": True},
)

SAYINGS: tuple[dict[str, Any], ...] = (
    {"family": ("order",)},
    {"family": ("search", "order")},
    {"family": ("ask",)},
    {"family": ("other",)},
    {"claim": "completed"},
    {"claim": "failed"},
    {"claim": "escalated"},
    {"claim": "refused"},
    {"state": {"told": True}},
    {"state": {"told": False, "found": 2}},
    {"state": {"found": "many"}},
    {"state": {"found": 0, "told": None}},
    {"keys": {"order": ("k1",)}},
    {"keys": {"order": ("k1", "k2")}},
    {"keys": {"parcel": (7,)}},
    {"issues": ("i1",)},
    {"issues": ("i2", "i1")},
    {"issues": ("i2",)},
    {"subject": ("s", "t")},
    {"subject": "t"},
    {"scenario": "buy", "trial": "7"},
    {"scenario": "other"},
    {"resource": {"test": True}},
)

KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("evidence", {"settled": True}),
    ("evidence", {"settled": False}),
    ("evidence", {"settled": None, "score": 3}),
    ("evidence", {"score": 1, "settled": True}),
    ("evidence", {"score": "good"}),
    ("evidence", {"seen": True}),
    ("escalation", {"state": "accepted"}),
    ("escalation", {"state": "attempted"}),
    ("escalation", {"state": "failed"}),
    ("reopen", {}),
    ("refusal", {}),
    ("invalidate", {}),
    ("feedback", {"score": 4, "scale": [1, 5]}),
    ("feedback", {"score": True}),
    ("feedback", {"score": 7, "scale": 5}),
    ("resolution", {"confirmed": True}),
    ("resolution", {"confirmed": False}),
)

EVALUATIONS: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    ("evaluation", data)
    for data in (
        {"name": "coherence", "score": 8, "contradictions": ["one", "two"]},
        {"name": "coherence", "state": "abstained"},
        {"name": "coherence", "score": 11},
        {"name": "accuracy", "score": 2.1, "layer": "knowledge"},
        {"name": "accuracy", "score": 4},
        {"name": "effort", "score": 1, "scale": [0, 2]},
        {"name": "effort", "score": 3, "layer": "prompt"},
        {"name": "effort", "state": "error", "score": 1},
        {"name": "recall", "score": 0.3, "layer": "memory"},
        {"name": "recall", "score": 3, "scale": 5, "layer": "memory"},
        {"name": "choice", "label": "good", "layer": "tool"},
        {"name": "choice", "score": 0.25, "layer": "tool"},
        {"name": "all", "score": 2, "layer": "system"},
        {"name": "nothing"},
    )
)

NOBODY: tuple[dict[str, Any], ...] = (
    {"session_id": "nobody"},
    {"trace_id": trace_id(9999)},
    {"correlation": {"x": 1}},
)
