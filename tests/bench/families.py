"""The task families of `contracts/`, as the workload plays them, and what is counted of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from schemas.segment import Rate
from tests.bench.encoding import Value


@dataclass(frozen=True, slots=True)
class Family:
    """How sessions of a family go.

    Args:
        claims: share of sessions whose agent says that the task is completed.
        sound: of those that claim it, the share whose reported state satisfies the contract.
        escalates: of those that claim nothing, the share that goes to a person.
        state, unsound_state: what the last root reports.
        evidence: the field and value that settle the required independent criterion, where there is one.
        final_tool: the tool whose success the contract takes for a claim.
    """

    name: str
    weight: float
    agent: str
    claims: float
    sound: float
    escalates: float
    state: tuple[tuple[str, Value], ...]
    unsound_state: tuple[tuple[str, Value], ...]
    evidence: tuple[str, str] | None = None
    final_tool: str = ""


FAMILIES = (
    Family(
        "order_placement", 0.30, "order_agent", 0.82, 0.93, 0.55,
        (("order_id", "A-1001"), ("items_verified", True), ("address_confirmed", True)),
        (("order_id", "A-1001"), ("items_verified", False), ("address_confirmed", True)),
        evidence=("payment_status", "settled"),
    ),
    Family(
        "product_search", 0.25, "product_search_agent", 0.74, 0.90, 0.58,
        (("result_count", 7), ("category_match", True), ("pricing_current", True)),
        (("result_count", 7), ("category_match", True), ("pricing_current", False)),
    ),
    Family(
        "order_status", 0.20, "order_status_agent", 0.61, 0.95, 0.64,
        (("order_id", "A-1001"), ("status_reported", True), ("status_age_minutes", 4)),
        (("order_id", "A-1001"), ("status_reported", True), ("status_age_minutes", 95)),
    ),
    Family(
        "return", 0.15, "returns_agent", 0.90, 0.97, 0.30,
        (("return_auth_id", "R-77"), ("refund_amount", 19.5), ("label_needed", True), ("label_generated", True)),
        (("return_auth_id", "R-77"), ("refund_amount", 19.5), ("label_needed", True), ("label_generated", False)),
        evidence=("refund_status", "settled"),
    ),
    Family(
        "multi_item_modification", 0.10, "modification_agent", 0.45, 0.88, 0.15,
        (("changes_requested", 3), ("changes_applied", 3), ("total_recalculated", True), ("total_changed", False)),
        (("changes_requested", 3), ("changes_applied", 2), ("total_recalculated", True), ("total_changed", False)),
        final_tool="commit_changes",
    ),
)  # fmt: skip


@dataclass(slots=True)
class Counts:
    """Of one family.

    Args:
        claimed: the agent said so; completed: the contract holds.
    """

    sessions: int = 0
    claimed: int = 0
    completed: int = 0
    escalated: int = 0
    reopened: int = 0

    def add(self, claimed: bool, completed: bool, escalated: bool, reopened: bool) -> None:
        self.sessions += 1
        self.claimed += claimed
        self.completed += completed
        self.escalated += escalated
        self.reopened += reopened


def differences(found: dict[str, Counts], truth: dict[str, Counts], names: tuple[str, ...]) -> list[str]:
    """Where the numbers called `names` are not the truth, a line each."""
    lines = []
    for family in sorted(found.keys() | truth.keys()):
        told, true = asdict(found.get(family, Counts())), asdict(truth.get(family, Counts()))
        lines += [f"{family}: {name} {told[name]}, in truth {true[name]}" for name in names if told[name] != true[name]]
    return lines


RateCount = tuple[dict[str, str], str, int, int]
"""As the store tells it: dimensions, rate, numerator, denominator."""


def counted(rates: Iterable[RateCount]) -> dict[str, Counts]:
    """What the published rates of the families say."""
    found: dict[str, Counts] = {}
    for dimensions, rate, numerator, denominator in rates:
        counts = found.setdefault(dimensions["family"], Counts())
        if rate == Rate.COMPLETION:
            counts.sessions, counts.completed = denominator, numerator
        elif rate == Rate.CLAIMED_COMPLETION:
            counts.claimed = numerator
        elif rate == Rate.ESCALATION:
            counts.escalated = numerator
        elif rate == Rate.REOPEN:
            counts.reopened = numerator
    return found
