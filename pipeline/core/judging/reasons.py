"""Why a verdict was revised, in the words of a colleague: what arrived, and what it changed.

The rule this file keeps: a revision names the inputs that changed that session, those of its neighbours only where they
did, and time where it was time alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.judging.changes import gone_with_the_cut, of_neighbours
from pipeline.core.judging.state import About, Input
from schemas.outcome import Outcome
from schemas.verdict import Verdict

MOST_CAUSES, MOST_CHANGES = 3, 4


@dataclass(frozen=True, slots=True)
class Inputs:
    """What arrived for a conversation since it was published last, and the sessions that it has now.

    Args:
        causes: in the words of a reason. about: which input each of them is; of one that is not there nothing is known.
        attached: the outcomes of each session.
    """

    causes: Sequence[str]
    about: Mapping[str, About]
    verdicts: Sequence[Verdict]
    attached: Sequence[Sequence[Outcome]]

    def of(self, index: int, before: Verdict | None, after: Verdict) -> list[str]:
        """Those that changed a session, in the order in which they came; none: it was time.

        Args:
            before: None where it was not judged before.
            after: deleted where the cut has it no more.
        """
        own = self._about({index}, before)
        own |= {cause for cause in self.causes if self._touches(self.about.get(cause), before, after)}
        if of_neighbours(before, after):
            others = self._about(self._linked(index, before, after), None)
            own |= others if own or others else self._of_whichever()
        return [cause for cause in self.causes if cause in own]

    def _about(self, indices: Collection[int], before: Verdict | None) -> set[str]:
        """The causes that are spans and outcomes of these sessions, as they are or as one of them was."""
        traces = set(before.trace_ids) if before is not None else set()
        outcomes: set[str] = set()
        for index in indices:
            if index < len(self.verdicts):
                traces.update(self.verdicts[index].trace_ids)
                outcomes.update(f"{one.source}\0{one.event_id}" for one in self.attached[index])
        return {
            cause
            for cause, one in self.about.items()
            if (one.what is Input.TRACE and one.name in traces)
            or (one.what is Input.OUTCOME and (one.name in outcomes or not set(one.had).isdisjoint(indices)))
        }

    def _touches(self, one: About | None, before: Verdict | None, after: Verdict) -> bool:
        """Whether what is neither a span nor an outcome may have changed the session."""
        if one is None or before is None:
            return one is None
        if one.what is Input.CONTRACT:
            return (before.contract, before.family_source) != (
                after.contract,
                after.family_source,
            ) or gone_with_the_cut(before, after)
        return one.what is Input.RETURNS and (
            (before.reopened, before.reopened_at, before.reopened_by, before.reopens_elsewhere, before.follow_up)
            != (after.reopened, after.reopened_at, after.reopened_by, after.reopens_elsewhere, after.follow_up)
        )

    def _linked(self, index: int, before: Verdict | None, after: Verdict) -> set[int]:
        """The sessions of the conversation that reopen this one, or that it reopens or did."""
        found = {place for place, one in enumerate(self.verdicts) if one.reopens == index + 1}
        return found | {one.reopens - 1 for one in (before, after) if one is not None and one.reopens}

    def _of_whichever(self) -> set[str]:
        return {cause for cause, one in self.about.items() if one.what in (Input.TRACE, Input.OUTCOME)}


def reason(causes: Sequence[str], changed: Iterable[str]) -> str:
    """One line: what arrived, then what it changed."""
    what = ", ".join(causes[:MOST_CAUSES])
    what += f" and {len(causes) - MOST_CAUSES} more" if len(causes) > MOST_CAUSES else ""
    return f"{what or 'time passed'}: {'; '.join(list(changed)[:MOST_CHANGES])}"
