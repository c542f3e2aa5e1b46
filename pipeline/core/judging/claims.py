"""Explicit claims: what the agent says about its own end (RULES.md 15)."""

from __future__ import annotations

from bisect import bisect_left
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


class Claims:
    """The explicit claim of a session that grows run by run (rule 15): each run is looked at once.

    The latest claim by span end holds (then started last, then the greater span id; attribute before rule).
    """

    __slots__ = ("_checked", "_contract", "_made", "_ordered", "_runs", "_said")

    def __init__(self) -> None:
        self._runs: list[RunView] = []
        self._said: tuple[tuple[int, int, bytes], Claim] | None = None
        self._ordered: list[Span] = []  # by end
        self._contract: CompiledContract | None = None
        self._checked = 0  # so many of `_ordered` do not make `claimed_when` true
        self._made: Span | None = None  # the one behind them does

    def add(self, run: RunView) -> None:
        """One more run of the session."""
        spans = sorted(run.spans, key=ended_last)
        self._runs.append(run)
        for span in spans:
            if span.said is not None and span.said.claim in CLAIMS:
                key = ended_last(span)
                if self._said is None or key > self._said[0]:
                    self._said = key, Claim(span.said.claim, span.end, span.span_id)
        if not spans:
            return
        place = bisect_left(self._ordered, ended_last(spans[0]), key=ended_last)
        in_place = place == len(self._ordered)
        self._ordered += spans
        if not in_place:
            self._ordered.sort(key=ended_last)
        if place <= self._checked:
            self._checked, self._made = place, None

    def latest(self, contract: CompiledContract | None) -> Claim | None:
        """What holds now, by the session's contract as far as it is known now."""
        said = self._said
        made = self._first_holds(contract) if contract is not None and contract.claimed_when is not None else None
        if made is not None and (said is None or ended_last(made) > said[0]):
            return Claim("completed", made.end, made.span_id, by_rule=True)
        return said[1] if said is not None else None

    def _first_holds(self, contract: CompiledContract) -> Span | None:
        """The span whose end first made `claimed_when` true.

        Only the end of a span that can move what the expression reads is looked at: tools move with tool and hand-off
        spans, state with spans that report it. What reads `session` is looked at anew: that counts runs, too.
        """
        expression = contract.claimed_when
        assert expression is not None
        wanted = expression.variables
        if contract is not self._contract or "session" in wanted:
            self._contract, self._checked, self._made = contract, 0, None
        while self._made is None and self._checked < len(self._ordered):
            span = self._ordered[self._checked]
            moves = self._checked == 0 or not wanted <= {"tools", "state"}
            moves = moves or ("tools" in wanted and span.kind in CALLS)
            moves = moves or ("state" in wanted and span.said is not None and bool(span.said.state))
            if moves:
                seen = self._ordered[: self._checked + 1]
                if expression.holds(variables(self._runs, contract, seen, wanted)) is Truth.TRUE:
                    self._made = span
                    break
            self._checked += 1
        return self._made
