"""Which rates are delayed, over which ages, and what their events mean (DESIGN.md 5, the table of rates)."""

from __future__ import annotations

from pipeline.core.contracts.book import CompiledContract, ContractBook
from schemas.segment import Rate

DELAYED = frozenset(
    {Rate.COMPLETION, Rate.VERIFIED_COMPLETION, Rate.RESOLUTION, Rate.REOPEN, Rate.ESCALATION, Rate.CONTAINMENT}
)
EVENT_IS_FAILURE = frozenset({Rate.RESOLUTION, Rate.CONTAINMENT})
"""Their rate is the share without event; of the other delayed rates it is the share with one."""


def ages(contract: CompiledContract, rate: str) -> tuple[int, ...]:
    """The age grid of a rate, ns: the contract's, up to where this rate's evidence ends."""
    if rate == Rate.COMPLETION:
        limit = max((one.deadline or 0 for one in contract.criteria if one.required), default=0)
    elif rate == Rate.VERIFIED_COMPLETION:
        limit = max((one.deadline or 0 for one in contract.criteria if one.required or one.independent), default=0)
    elif rate == Rate.REOPEN:
        limit = contract.reopen_window
    else:
        limit = contract.horizon
    return tuple(age for age in contract.age_grid if age <= limit)


def target(book: ContractBook, stratum: str, rate: str) -> float | None:
    """The target of a rate in the contract `family@version`."""
    contract = book.named(stratum)
    return contract.targets.get(rate) if contract is not None else None
