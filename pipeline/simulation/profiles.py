"""The five task families of the simulated shop: what their agents do, and how often each thing happens.

Shares follow what a real support desk reports (status questions are easy, modifications are hard), and every family has
its own rates and delays, so that a number taken from the wrong family cannot go unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.simulation.plan import HOUR_NS

# Stands for the session's own business key in a reported state.
KEY = "{key}"

Reported = Mapping[str, bool | int | str]


@dataclass(frozen=True, slots=True)
class StateCriterion:
    """A criterion on what the agent reports. `gate`: the reported flag without which it does not apply."""

    id: str
    good: Reported
    bad: tuple[Reported, ...]
    pass_rate: float
    required: bool = True
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class EvidenceCriterion:
    """A criterion that only an independent system can settle, within `deadline_ns` of the session's end."""

    id: str
    field: str
    good: bool | str
    bad: bool | str
    deadline_ns: int
    pass_rate: float
    source: str
    required: bool = True
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A task family and its rates, all as probabilities; `share` is its part of the traffic."""

    name: str
    share: float
    service: str
    agent: str
    helper: str
    tools: tuple[str, ...]
    key_name: str
    key_prefix: str
    issues: tuple[str, ...]
    state: tuple[StateCriterion, ...]
    evidence: tuple[EvidenceCriterion, ...]
    reopen_window_ns: int
    assumes_claims: bool
    claim_tool: str | None
    hand_off_tool: str
    approval_tool: str
    tool_failure: float
    hand_off: float
    hand_off_failed: float
    escalated_later: float
    reopened_later: float
    answered: float
    confirms: float
    returns: float
    approvals: bool = False  # an interrupt at its approval tool waits for a person, not for the customer

    @property
    def criteria(self) -> tuple[StateCriterion | EvidenceCriterion, ...]:
        return (*self.state, *self.evidence)

    @property
    def horizon_ns(self) -> int:
        return max([self.reopen_window_ns, *(criterion.deadline_ns for criterion in self.evidence)])


PRODUCT_SEARCH = Family(
    name="product_search", share=0.22, service="storefront-agents", agent="product_search_agent",
    helper="pricing_agent",
    tools=("search_catalogue", "filter_products", "get_price", "check_stock"),
    key_name="search_id", key_prefix="SE", issues=("winter-jacket", "road-bike", "helmet"),
    state=(
        StateCriterion("products_found", {"result_count": 7}, ({"result_count": 0},), 0.985),
        StateCriterion("category_match", {"category_match": True}, ({"category_match": False}, {}), 0.985),
        StateCriterion("pricing_current", {"pricing_current": True}, ({"pricing_current": False}, {}), 0.98),
    ),
    evidence=(
        EvidenceCriterion("prices_audited", "price_audit", "current", "stale", 12 * HOUR_NS, 0.92, "catalogue", False),
    ),
    reopen_window_ns=72 * HOUR_NS, assumes_claims=True, claim_tool=None, hand_off_tool="escalate_to_human",
    approval_tool="approve_price_match", tool_failure=0.03, hand_off=0.025, hand_off_failed=0.01,
    escalated_later=0.015, reopened_later=0.02, answered=0.25, confirms=0.9, returns=0.8,
)  # fmt: skip

ORDER_PLACEMENT = Family(
    name="order_placement", share=0.24, service="storefront-agents", agent="order_agent", helper="payment_agent",
    tools=("create_cart", "validate_address", "reserve_stock", "wrap_gift", "submit_order"),
    key_name="order_id", key_prefix="OR", issues=("bike-order", "parts-order"),
    state=(
        StateCriterion("order_created", {"order_id": KEY}, ({"order_id": ""}, {}), 0.98),
        StateCriterion("items_verified", {"items_verified": True}, ({"items_verified": False}, {}), 0.98),
        StateCriterion("address_confirmed", {"address_confirmed": True}, ({"address_confirmed": False},), 0.985),
        StateCriterion("gift_wrapped", {}, ({},), 0.9, required=False, gate="gift"),
    ),
    evidence=(
        EvidenceCriterion("payment_confirmed", "payment_status", "settled", "declined", 24 * HOUR_NS, 0.93, "billing"),
        EvidenceCriterion(
            "shipped_as_ordered", "shipment", "as_ordered", "wrong_items", 48 * HOUR_NS, 0.92, "warehouse", False
        ),
    ),
    reopen_window_ns=72 * HOUR_NS, assumes_claims=True, claim_tool=None, hand_off_tool="escalate_to_human",
    approval_tool="approve_large_order", tool_failure=0.05, hand_off=0.05, hand_off_failed=0.015,
    escalated_later=0.025, reopened_later=0.03, answered=0.3, confirms=0.85, returns=1.0, approvals=True,
)  # fmt: skip

ORDER_STATUS = Family(
    name="order_status", share=0.18, service="after-sales-agents", agent="order_status_agent", helper="carrier_agent",
    tools=("find_order", "track_shipment", "estimate_delivery"),
    key_name="order_id", key_prefix="ST", issues=("where-is-it", "delayed-parcel"),
    state=(
        StateCriterion("order_found", {"order_id": KEY}, ({},), 0.99),
        StateCriterion("status_reported", {"status_reported": True}, ({"status_reported": False}, {}), 0.985),
        StateCriterion("status_fresh", {"status_age_minutes": 4}, ({"status_age_minutes": 95},), 0.985),
        StateCriterion("delivery_estimated", {"delivery_estimated": True}, ({},), 0.8, required=False),
    ),
    evidence=(),
    reopen_window_ns=48 * HOUR_NS, assumes_claims=True, claim_tool=None, hand_off_tool="escalate_to_human",
    approval_tool="approve_reship", tool_failure=0.02, hand_off=0.015, hand_off_failed=0.01,
    escalated_later=0.015, reopened_later=0.015, answered=0.2, confirms=0.93, returns=0.9,
)  # fmt: skip

RETURN = Family(
    name="return", share=0.19, service="after-sales-agents", agent="returns_agent", helper="refund_agent",
    tools=("check_policy", "authorize_return", "calculate_refund", "create_label"),
    key_name="return_id", key_prefix="RE", issues=("damaged-item", "wrong-size", "changed-mind"),
    state=(
        StateCriterion("return_authorized", {"return_auth_id": KEY}, ({"return_auth_id": ""}, {}), 0.95),
        StateCriterion("refund_calculated", {"refund_amount": 45}, ({"refund_amount": 0}, {}), 0.96),
        StateCriterion(
            "label_generated", {"label_generated": True}, ({"label_generated": False}, {}), 0.94, gate="label_needed"
        ),
        StateCriterion("timeline_set", {"timeline_set": True}, ({},), 0.85, required=False),
    ),
    evidence=(
        EvidenceCriterion("refund_settled", "refund_status", "settled", "rejected", 48 * HOUR_NS, 0.89, "billing"),
    ),
    reopen_window_ns=72 * HOUR_NS, assumes_claims=False, claim_tool=None, hand_off_tool="open_supervisor_case",
    approval_tool="approve_refund", tool_failure=0.07, hand_off=0.12, hand_off_failed=0.03,
    escalated_later=0.07, reopened_later=0.05, answered=0.35, confirms=0.72, returns=1.2, approvals=True,
)  # fmt: skip

MULTI_ITEM = Family(
    name="multi_item_modification", share=0.17, service="after-sales-agents", agent="modification_agent",
    helper="pricing_agent",
    tools=("load_order", "update_line", "swap_item", "recalculate_total", "send_confirmation"),
    key_name="order_id", key_prefix="MO", issues=("swap-size", "add-items", "split-delivery"),
    state=(
        StateCriterion(
            "changes_applied", {"changes_requested": 3, "changes_applied": 3},
            ({"changes_requested": 3, "changes_applied": 1}, {"changes_requested": 4}), 0.88,
        ),
        StateCriterion("total_recalculated", {"total_recalculated": True}, ({"total_recalculated": False}, {}), 0.93),
    ),
    evidence=(
        EvidenceCriterion(
            "order_reconciled", "order_matches", True, False, 24 * HOUR_NS, 0.86, "orders", gate="total_changed"
        ),
    ),
    reopen_window_ns=72 * HOUR_NS, assumes_claims=True, claim_tool="commit_changes", hand_off_tool="escalate_to_human",
    approval_tool="approve_discount", tool_failure=0.1, hand_off=0.16, hand_off_failed=0.04,
    escalated_later=0.08, reopened_later=0.06, answered=0.4, confirms=0.62, returns=1.3,
)  # fmt: skip

FAMILIES: Mapping[str, Family] = {
    family.name: family for family in (PRODUCT_SEARCH, ORDER_PLACEMENT, ORDER_STATUS, RETURN, MULTI_ITEM)
}
LONGEST_HORIZON_NS = max(family.horizon_ns for family in FAMILIES.values())
