"""Explicit claims: what the agent says about its own end (RULES.md 15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.contracts.book import CompiledContract
from pipeline.core.contracts.expressions import Truth
from pipeline.core.judging.facts import variables
from pipeline.core.judging.views import CALLS, RunView, ended_last
from schemas.span import Span

CLAIMS = frozenset({"completed", "escalated", "refused", "failed"})


@dataclass(frozen=True, slots=True)
class Claim:
    """An explicit claim; the grace runs from `time`, the end of the span that made it (ns)."""

    value: str
    time: int
    span_id: bytes
    by_rule: bool = False


def explicit_claim(runs: Sequence[RunView], contract: CompiledContract | None) -> Claim | None:
    """The latest claim by span end (then started last, then the greater span id; attribute before rule)."""
    best: tuple[tuple[tuple[int, int, bytes], bool], Claim] | None = None
    spans = [span for run in runs for span in run.spans]
    for span in spans:
        if span.said is not None and span.said.claim in CLAIMS:
            candidate = ((ended_last(span), True), Claim(span.said.claim, span.end, span.span_id))
            if best is None or candidate[0] > best[0]:
                best = candidate
    if contract is not None and contract.claimed_when is not None:
        made = _first_holds(runs, contract, spans)
        if made is not None and (best is None or (ended_last(made), False) > best[0]):
            return Claim("completed", made.end, made.span_id, by_rule=True)
    return best[1] if best is not None else None


def _first_holds(runs: Sequence[RunView], contract: CompiledContract, spans: list[Span]) -> Span | None:
    """The span whose end first made `claimed_when` true.

    Only the end of a span that can move what the expression reads is looked at: tools move with tool and hand-off
    spans, state with spans that report it.
    """
    expression = contract.claimed_when
    assert expression is not None
    ordered = sorted(spans, key=ended_last)
    wanted = expression.variables
    for index, span in enumerate(ordered):
        moves = not wanted <= {"tools", "state"}
        moves = moves or ("tools" in wanted and span.kind in CALLS)
        moves = moves or ("state" in wanted and span.said is not None and bool(span.said.state))
        if moves or index == 0:
            seen = ordered[: index + 1]
            if expression.holds(variables(runs, contract, seen, wanted)) is Truth.TRUE:
                return span
    return None
