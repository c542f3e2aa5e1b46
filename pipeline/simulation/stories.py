"""Picks the conversations that tell best why a verdict must be revised: claimed complete, and later found otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.simulation.ledger import Account, accounts
from pipeline.simulation.plan import HOUR_NS, ConversationPlan, Ending, FactKind, SessionPlan
from pipeline.simulation.profiles import FAMILIES

TENANT = "default"  # spans and outcomes of the world name no tenant


@dataclass(frozen=True, slots=True)
class Story:
    """One conversation worth a look, and in words what happened in it."""

    tenant: str
    conversation: str
    what_happened: str


def stories(conversations: Sequence[ConversationPlan], per_plot: int = 1) -> list[Story]:
    """`per_plot` stories of each plot: refuted by evidence, proof never came, came back, reopened, escalated later."""
    told: dict[str, list[Story]] = {}
    for conversation in conversations:
        if not conversation.attributed or len(conversation.sessions) > 2:
            continue
        account, session = accounts(conversation)[0], conversation.sessions[0]
        if not account.eligible or session.ending is not Ending.CLAIMS_COMPLETED:
            continue
        plot = _plot(conversation, session, account)
        if plot is not None and len(told.setdefault(plot[0], [])) < per_plot:
            text = f"{session.family}: the agent claimed completion; {plot[1]}"
            told[plot[0]].append(Story(TENANT, conversation.name, text))
    return [story for plot in sorted(told) for story in told[plot]]


def _plot(conversation: ConversationPlan, session: SessionPlan, account: Account) -> tuple[str, str] | None:
    family = FAMILIES[session.family]
    reported_well = all(c.id in session.passed or c.id in session.exempt for c in family.state if c.required)
    proofs = [c for c in family.evidence if c.required and c.id not in session.exempt]
    if not reported_well:
        return None
    if not account.complete and len(conversation.sessions) == 1:
        criterion = proofs[0]
        refuting = [fact for fact in session.facts if fact.name == criterion.field and fact.value == criterion.bad]
        if refuting:
            return "1 refuted", f"{_later(session, refuting[-1].at_ns)} {criterion.source} said it was not so"
        deadline_hours = criterion.deadline_ns // HOUR_NS
        return "4 unproven", f"{criterion.source} did not confirm it within {deadline_hours} h"
    if account.complete and account.reopened and len(conversation.sessions) == 2:
        return (
            "2 came back",
            f"{_later(session, conversation.sessions[1].start_ns)} the customer came back with the same task",
        )
    if account.complete and len(conversation.sessions) == 1:
        reopened = [fact for fact in session.facts if fact.kind is FactKind.REOPEN]
        if account.reopened and reopened:
            return "3 reopened", f"{_later(session, reopened[0].at_ns)} the help desk reopened the case"
        escalated = [fact for fact in session.facts if fact.kind is FactKind.ESCALATION]
        if account.escalated and escalated:
            return "5 escalated", f"{_later(session, escalated[0].at_ns)} a person took over"
    return None


def _later(session: SessionPlan, at_ns: int) -> str:
    return f"{(at_ns - session.end_ns) / HOUR_NS:.1f} h later"
