"""The ledger against the definitions: the brute-force oracle, given what was sent, comes to the planned truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from pipeline.demo.verdicts import Facts, differences, facts_of_verdict
from pipeline.simulation.ledger import RATES, SYSTEM
from pipeline.simulation.profiles import FAMILIES
from pipeline.simulation.traffic import OutcomeBatch, SpanBatch, end_ns
from pipeline.simulation.world import EPOCH, World, build, build_hard
from tests.oracle.model import HOUR, OContract, OCriterion, OOutcome, OSession, OSettings, OSpan
from tests.oracle.model import World as Judged
from tests.oracle.world import judge_world

NOW = datetime(2026, 4, 8, 12, 0, tzinfo=UTC)
FOLDER = Path(__file__).parents[3] / "contracts"
KINDS = {"invoke_agent": "agent", "chat": "inference", "execute_tool": "tool", "guardrail_check": "guardrail"}
SCORE = "gen_ai.evaluation.score.value"
TOO_LATE = ("settled-", "sealed-")
"""Scenes of what arrives too late: of that the oracle, which is given sets, knows nothing."""


def nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def hours(text: str | None) -> int | None:
    return None if text is None else int(text.removesuffix("h")) * HOUR


def contract(path: Path) -> OContract:
    stated: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    criteria = tuple(OCriterion(**{**each, "deadline": hours(each.get("deadline"))}) for each in stated["criteria"])
    escalated, approval = stated["escalated_when"], stated.get("approval_when", {})
    return OContract(
        family=stated["family"],
        version=stated["version"],
        applies_when=stated["applies_when"],
        criteria=criteria,
        goal_achievement={name: (part["max"], part["weight"]) for name, part in stated["goal_achievement"].items()},
        claimed_when=stated.get("claimed_when"),
        assume_claim=stated["assume_claim"],
        escalated_tools=tuple(escalated["tools"]),
        escalated_handoffs=tuple(escalated.get("handoffs", ())),
        approval_tools=tuple(approval.get("tools", ())),
        refused_when=stated["refused_when"],
        invalid_when=stated["invalid_when"],
        reopen_window=hours(stated["reopen_window"]),
        resume_window=hours(stated["resume_window"]),
        wait_window=hours(stated["wait_window"]),
    )


def slim(span: ReadableSpan, now: datetime) -> OSpan:
    """What the definitions need of a span that carries the GenAI convention and our own attributes."""
    stated: dict[str, Any] = dict(span.attributes or {})
    kind = KINDS.get(stated["gen_ai.operation.name"], "step")
    interrupted = stated.get("error.type") == "GraphInterrupt"
    tool = stated.get("gen_ai.tool.name")
    handing_off = tool is not None and tool.startswith("transfer_to_")
    prefix, key_prefix = "trueup.state.", "trueup.correlation."
    assert span.context is not None
    return OSpan(
        trace_id=f"{span.context.trace_id:032x}",
        span_id=f"{span.context.span_id:016x}",
        start=span.start_time or 0,
        end=end_ns(span),
        parent_id=None if span.parent is None else f"{span.parent.span_id:016x}",
        name=span.name,
        kind="handoff" if handing_off else kind,
        tenant=str(span.resource.attributes.get("trueup.tenant", "default")),
        record_time=nanoseconds(now),
        conversation_ids=((0, stated["gen_ai.conversation.id"]),) if "gen_ai.conversation.id" in stated else (),
        links=tuple(f"{link.context.trace_id:032x}" for link in span.links),
        response_id=stated.get("gen_ai.response.id"),
        agent=stated.get("gen_ai.agent.name"),
        tool=tool,
        call_id=stated.get("gen_ai.tool.call.id"),
        model=stated.get("gen_ai.response.model"),
        requested_model=stated.get("gen_ai.request.model"),
        finish_reasons=tuple(stated.get("gen_ai.response.finish_reasons", ())),
        asked_tools=1 if "gen_ai.output.messages" in stated else None,
        failed=span.status.status_code is StatusCode.ERROR,
        interrupted=interrupted,
        control_flow=interrupted,
        handoff_target=tool.removeprefix("transfer_to_") if handing_off and tool is not None else None,
        family=(stated["trueup.task.family"],) if "trueup.task.family" in stated else (),
        claim=stated.get("trueup.task.outcome"),
        state={key.removeprefix(prefix): value for key, value in stated.items() if key.startswith(prefix)},
        keys={key.removeprefix(key_prefix): (value,) for key, value in stated.items() if key.startswith(key_prefix)},
        subject=stated.get("trueup.subject"),
        issues=(stated["trueup.issue"],) if "trueup.issue" in stated else (),
        resource=dict(span.resource.attributes),
        guardrail_tripped=stated.get("gen_ai.guardrail.triggered"),
        attribute_count=len(stated),
        evaluations=tuple(
            {"name": event.attributes["gen_ai.evaluation.name"], "score": event.attributes[SCORE]}
            for event in span.events
            if event.name == "gen_ai.evaluation.result" and event.attributes is not None
        ),
    )


def outcome(event: dict[str, Any], now: datetime) -> OOutcome:
    moment = datetime.fromisoformat(event["event_time"])
    return OOutcome(**{**event, "event_time": nanoseconds(moment), "record_time": nanoseconds(now)})


def judged(of: World) -> Judged:
    spans = [slim(span, of.now) for arrival in of.arrivals if isinstance(arrival, SpanBatch) for span in arrival.spans]
    events = [outcome(event, of.now) for a in of.arrivals if isinstance(a, OutcomeBatch) for event in a.events]
    contracts = [contract(path) for path in sorted(FOLDER.glob("*.yaml"))]
    return judge_world(spans, events, contracts, OSettings(), nanoseconds(of.now))


def facts(one: OSession) -> Facts:
    return facts_of_verdict(
        {
            "family": one.family or "", "attributed": one.attributed, "invalid": one.invalid, "eligible": one.eligible,
            "completion": one.completion, "claimed": one.claim.completed, "verified": one.verified,
            "escalated": one.escalated, "handoff_attempted": one.handoff_attempted,
            "terminal_reason": one.terminal_reason, "reopened": one.reopened, "follow_up": one.follow_up,
            "confirmed": one.confirmed if one.answered else None, "resolved": one.eligible and one.resolved,
            "tool_calls": len(one.tools_ok) + len(one.tools_failed), "tool_calls_ok": len(one.tools_ok),
            "reopened_by": "",
            "quality": {"goal_achievement": one.goal_achievement},
        }
    )  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_the_definitions_applied_to_what_was_sent_give_the_planned_truth(seed: int) -> None:
    made = build(seed, 300, NOW)
    rates = judged(made).rates

    for family in (SYSTEM, *FAMILIES):
        for rate in RATES:
            assert rates.get((family, rate), (0, 0)) == made.truth[family, rate], (family, rate)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_scene_comes_to_what_it_says_by_the_definitions(seed: int) -> None:
    made = build_hard(seed, 300, NOW)
    found = judged(made)
    elsewhere = {of for one in found.sessions for of in one.reopens if of[0] != one.conversation}
    seen = {
        one.key: {**facts(one), "reopened_elsewhere": (one.conversation, one.ordinal) in elsewhere}
        for one in found.sessions
        if not one.conversation.startswith(TOO_LATE)
    }
    truth = {where: account for where, account in made.verdicts.items() if not where[1].startswith(TOO_LATE)}

    assert [str(one) for one in differences(truth, seen)] == []
    assert len(truth) > 200
