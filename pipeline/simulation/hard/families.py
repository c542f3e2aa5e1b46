"""The shop's tasks as the scenes play them: what an agent says of one, and what its systems of record say later."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.simulation.plan import Value

ORDER, STATUS, RETURN, MULTI, SEARCH = (
    "order_placement", "order_status", "return", "multi_item_modification", "product_search",
)  # fmt: skip
ORDER_KEY = "order_id"

DONE: Mapping[str, Mapping[str, Value]] = {
    ORDER: {"order_id": "A-100", "items_verified": True, "address_confirmed": True, "gift": False},
    STATUS: {"order_id": "A-100", "status_reported": True, "status_age_minutes": 4},
    RETURN: {"return_auth_id": "R-1", "refund_amount": 45, "label_generated": True, "label_needed": True},
    MULTI: {"changes_requested": 3, "changes_applied": 3, "total_recalculated": True, "total_changed": True},
    SEARCH: {"result_count": 7, "category_match": True, "pricing_current": True},
}
"""What an agent reports when all went well; what is left to others is proof."""

SETTLED, DECLINED = {"payment_status": "settled"}, {"payment_status": "declined"}
SHIPPED = {"shipment": "as_ordered"}
REFUNDED = {"refund_status": "settled"}
ACCEPTED, REFUSED = {"state": "accepted"}, {"state": "failed"}
YES, NO = {"confirmed": True}, {"confirmed": False}
TICKET = {"reason": "the customer wrote again"}


def states(family: str) -> dict[str, Value]:
    """All that a session of the family has to report."""
    return {f"trueup.state.{name}": value for name, value in DONE[family].items()}


def claims(value: str = "completed") -> dict[str, Value]:
    """An explicit claim."""
    return {"trueup.task.outcome": value}


def task(
    family: str | None = ORDER,
    *,
    done: bool = True,
    claim: str | None = "completed",
    issue: str | None = None,
    subject: str | None = None,
    key: str | None = None,
    key_name: str = ORDER_KEY,
) -> dict[str, Value]:
    """What the root span of a run says of its task.

    Args:
        done: it reports that all went well.
    """
    said: dict[str, Value] = {}
    if family is not None:
        said |= {"trueup.task.family": family, **(states(family) if done else {})}
    if claim is not None:
        said |= claims(claim)
    stated = {"trueup.issue": issue, "trueup.subject": subject, f"trueup.correlation.{key_name}": key}
    return said | {name: value for name, value in stated.items() if value is not None}


def by_key(key: str, name: str = ORDER_KEY) -> dict[str, object]:
    """The address of whoever states this key."""
    return {"correlation": {name: key}}
