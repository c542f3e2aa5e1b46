"""Why an incomplete session is incomplete: its earliest cause, and the stage in which the task broke.

The rule this file keeps: the cause is what came first, not what was seen last. What broke in the spans can be the cause
of what the agent did not do or report; it is never the cause of what an independent system said about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.core.contracts.book import CompiledContract, CompiledCriterion
from pipeline.core.judging.claims import Claim
from pipeline.core.judging.summary import Break
from schemas.verdict import CriterionVerdict, Failure, Stage, Status

REFUSAL, BREAK, CRITERION = range(3)
"""Which goes first at one time."""


def cause_of(
    contract: CompiledContract, criteria: Sequence[CriterionVerdict], breaks: Sequence[Break], claim: Claim | None
) -> Failure | None:
    """The earliest of: a claimed refusal, what broke in the spans, the required criteria that failed.

    Args:
        criteria: as judged, in the order of the contract; without a required one that failed there is no cause.
    """
    failed = [one for one in criteria if one.required and one.status in (Status.FAILED, Status.ERROR)]
    if not failed:
        return None
    stated = {one.id: one for one in contract.criteria}
    found = [(one.failed_at, CRITERION + place, _of_criterion(one)) for place, one in enumerate(failed)]
    done = [stated[one.id] for one in failed if stated[one.id].check.variables != {"evidence"}]
    if done:  # something that the agent was to do or to report is missing
        found += [(one.at, BREAK, _of_break(one)) for one in breaks if _may_cause(one, done)]
        if claim is not None and claim.value == "refused":
            found.append((claim.time, REFUSAL, Failure(Stage.POLICY, "refusal", "", claim.time)))
    return min(found, key=lambda one: one[:2])[2]


def _of_criterion(one: CriterionVerdict) -> Failure:
    stage = Stage(one.stage or Stage.VERIFICATION) if one.status is Status.FAILED else Stage.INFRASTRUCTURE
    return Failure(stage, one.id, one.agent, one.failed_at)


def _of_break(one: Break) -> Failure:
    if one.what == "tool":
        return Failure(Stage.EXECUTION, f"tool {one.name}", one.agent, one.at)
    return Failure(Stage.INFRASTRUCTURE, one.what, one.agent, one.at)


def _may_cause(one: Break, criteria: Sequence[CompiledCriterion]) -> bool:
    """A criterion that names tools fails for want of those alone; any other may fail for want of any tool."""
    named = [criterion.check.reads("tools") for criterion in criteria]
    return one.what != "tool" or any(not names or one.name in names for names in named)
