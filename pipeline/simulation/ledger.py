"""The truth of a simulated world: what each session came to, worked out from the plan alone.

It reads no span and no event, and shares no code with the pipeline. It asks of the plan what a person who was there
could answer: was it claimed, did the evidence come in time, did the customer come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.simulation.plan import (
    CLOCK_SKEW_NS,
    RESUME_WINDOW_NS,
    ConversationPlan,
    Ending,
    Fact,
    FactKind,
    HandOff,
    SessionPlan,
    Standing,
)
from pipeline.simulation.profiles import FAMILIES, EvidenceCriterion

RATES = (
    "completion",
    "claimed_completion",
    "verified_completion",
    "resolution",
    "confirmed_resolution",
    "reopen",
    "escalation",
    "containment",
    "tool_success",
    "attribution",
)
SYSTEM = ""
Truth = dict[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Account:
    """What one session came to. `verified` is None where no independent criterion applies.

    Args:
        family: empty where no contract, or more than one, would judge it.
        follow_up: it is no conversation's first session and takes no claim back.
        across: its own claim is taken back in another conversation.
        goal: how far it was scored to achieve its goal, 0 to 10; no rate reads it.
    """

    family: str
    invalid: bool
    eligible: bool
    attributed: bool
    complete: bool
    claimed: bool
    verified: bool | None
    escalated: bool
    attempted: bool
    abandoned: bool
    reopened: bool
    answer: bool | None
    tool_calls: int
    tool_calls_ok: int
    follow_up: bool = False
    across: bool = False
    goal: float | None = None

    @property
    def resolved(self) -> bool:
        return self.complete and not self.escalated and not self.reopened and self.answer is not False


def claimed(session: SessionPlan) -> bool:
    """Completion was claimed: in so many words, or by an answer after which the customer stayed away."""
    return session.ending is Ending.CLAIMS_COMPLETED or assumed(session)


def assumed(session: SessionPlan) -> bool:
    """The claim is only assumed: no word of it, no person took over, no guardrail stopped it."""
    return (
        FAMILIES[session.family].assumes_claims
        and session.ending is Ending.ANSWERS
        and session.hand_off is not HandOff.ACCEPTED
        and session.standing is not Standing.GUARDED
    )


def accounts(conversation: ConversationPlan) -> list[Account]:
    """The account of each session of a conversation."""
    returned_to = _returned_to(conversation.sessions)
    return [
        _account(
            conversation,
            session,
            came_back=index in returned_to.values(),
            follow_up=index > 0 and index not in returned_to,
        )
        for index, session in enumerate(conversation.sessions)
    ]


def truth(conversations: Iterable[ConversationPlan]) -> Truth:
    """Numerator and denominator of every rate, for each family and for the whole system (family '')."""
    return summed(account for conversation in conversations for account in accounts(conversation))


def summed(found: Iterable[Account]) -> Truth:
    """The same, of accounts."""
    numerators: Counter[tuple[str, str]] = Counter()
    denominators: Counter[tuple[str, str]] = Counter()
    families = [SYSTEM, *FAMILIES]
    for account in found:
        if account.family not in families:
            families.append(account.family)
        for rate, (counted, of) in _counts(account).items():
            for family in {account.family, SYSTEM}:
                numerators[family, rate] += counted
                denominators[family, rate] += of
    rows = [(family, rate) for family in families for rate in RATES]
    return {row: (numerators[row], denominators[row]) for row in rows}


def _counts(account: Account) -> dict[str, tuple[int, int]]:
    valid = not account.invalid
    eligible = account.eligible
    answered = eligible and account.answer is not None
    verifiable = eligible and account.verified is not None
    members = {
        "completion": (account.complete, eligible),
        "claimed_completion": (account.claimed, eligible),
        "verified_completion": (account.verified is True, verifiable),
        "resolution": (account.resolved, eligible),
        "confirmed_resolution": (account.answer is True, answered),
        "reopen": (account.reopened, eligible and account.claimed),
        "escalation": (account.escalated, eligible),
        "containment": (not account.attempted and not account.abandoned, eligible),
        "attribution": (account.attributed, valid),
    }
    counts = {rate: (int(counted and of), int(of)) for rate, (counted, of) in members.items()}
    counts["tool_success"] = (account.tool_calls_ok, account.tool_calls) if valid else (0, 0)
    return counts


def _account(conversation: ConversationPlan, session: SessionPlan, *, came_back: bool, follow_up: bool) -> Account:
    family = FAMILIES[session.family]
    invalid = session.standing is Standing.TEST
    hand_offs = _within(session, FactKind.ESCALATION, family.horizon_ns)
    reopens = _within(session, FactKind.REOPEN, family.reopen_window_ns)
    answers = sorted(_within(session, FactKind.RESOLUTION, family.horizon_ns), key=_order)
    proofs = {c.id: _proven(conversation, session, c) for c in family.evidence if c.id not in session.exempt}
    needed = [c.id for c in family.criteria if c.required and c.id not in session.exempt]
    complete = all(proofs.get(name, name in session.passed) for name in needed)
    by_agent = session.hand_off is HandOff.ACCEPTED
    escalated = by_agent or any(fact.value == "accepted" for fact in hand_offs)
    attempted = bool(hand_offs) or session.hand_off is not HandOff.NONE or session.ending is Ending.CLAIMS_ESCALATED
    return Account(
        family=session.family,
        invalid=invalid,
        eligible=session.standing is Standing.VALID,
        attributed=conversation.attributed,
        complete=complete,
        claimed=claimed(session),
        verified=(complete and all(proofs.values())) if proofs else None,
        escalated=escalated,
        attempted=attempted,
        abandoned=session.ending is Ending.WAITS_FOR_CUSTOMER,
        reopened=came_back or bool(reopens),
        answer=answers[-1].value is True if answers else None,
        tool_calls=session.tool_calls,
        tool_calls_ok=session.tool_calls_ok,
        follow_up=follow_up,
    )


def _proven(conversation: ConversationPlan, session: SessionPlan, criterion: EvidenceCriterion) -> bool:
    """What the independent system said last, in time. By key it reaches every session on the key begun by then."""
    known = [fact for fact in session.facts if fact.name == criterion.field]
    for other in conversation.sessions:
        if other is not session and other.key == session.key:
            known += [
                fact
                for fact in other.facts
                if fact.name == criterion.field and fact.by_key and session.start_ns <= fact.at_ns + CLOCK_SKEW_NS
            ]
    in_time = [fact for fact in known if fact.at_ns <= session.end_ns + criterion.deadline_ns]
    return bool(in_time) and max(in_time, key=_order).value == criterion.good


def _returned_to(sessions: Sequence[SessionPlan]) -> dict[int, int]:
    """Who came back, and to which: the latest claimed session of the same task and, if both say, of the same issue."""
    found: dict[int, int] = {}
    for later_index, later in enumerate(sessions):
        for index in reversed(range(later_index)):
            earlier = sessions[index]
            gap_ns = later.start_ns - earlier.end_ns
            long_enough = not assumed(earlier) or gap_ns > RESUME_WINDOW_NS
            in_window = 0 < gap_ns <= FAMILIES[earlier.family].reopen_window_ns
            same_issue = earlier.issue is None or later.issue is None or earlier.issue == later.issue
            if earlier.family == later.family and claimed(earlier) and in_window and long_enough and same_issue:
                found[later_index] = index
                break
    return found


def _within(session: SessionPlan, kind: FactKind, limit_ns: int) -> list[Fact]:
    return [fact for fact in session.facts if fact.kind is kind and fact.at_ns <= session.end_ns + limit_ns]


def _order(fact: Fact) -> tuple[int, str]:
    return fact.at_ns, fact.event_id
