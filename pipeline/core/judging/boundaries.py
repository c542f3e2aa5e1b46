"""Where one session ends and the next begins (RULES.md 7-14), in one pass over the runs of a conversation.

```
run arrives -> states another family?            -> next session      (rule 9)
            -> resumes what waits?               -> same session, same turn (10)
            -> after an explicit claim: past the grace and no mere thanks -> next (11)
            -> quiet for longer than gap and resume window -> next    (12)
            -> else the same session, a new turn
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.core.contracts.book import CompiledContract, ContractBook
from pipeline.core.judging.claims import Claim, Claims
from pipeline.core.judging.facts import variables
from pipeline.core.judging.summary import Summary
from pipeline.core.judging.views import CALLS, RunView, TraceView, runs_of
from pipeline.core.timeline import TimeRules
from schemas.span import Kind


class FamilySource(StrEnum):
    STATED = "stated"
    DERIVED = "derived"
    INHERITED = "inherited"
    NONE = "no_contract"
    AMBIGUOUS = "ambiguous_contract"


@dataclass(frozen=True, slots=True)
class Family:
    """The task family of a session, where it comes from, and the contract that judges it.

    Args:
        raised: how many `applies_when` raised when it was looked for; each of them is false (rule 26).
    """

    name: str
    source: FamilySource
    contract: CompiledContract | None
    raised: int = 0


@dataclass(slots=True)
class Session:
    """One session of the present cut. `turns` counts runs that do not resume another.

    Args:
        summary: what judging reads of its spans, once it was asked for (`summarise.summary_of`); all there is of a
            packed session.
        late: it would change a packed session, if that still could be changed.
    """

    runs: list[RunView] = field(default_factory=list)
    turns: int = 0
    family: Family = Family("", FamilySource.NONE, None)
    claim: Claim | None = None
    summary: Summary | None = None
    late: bool = False

    start: int = field(default=0, init=False)
    end: int = field(default=0, init=False)
    has_model: bool = field(default=False, init=False)
    stated_family: str = field(default="", init=False)
    _last: RunView | None = field(default=None, init=False)
    _claims: Claims = field(default_factory=Claims, init=False)

    def __post_init__(self) -> None:
        if self.packed is not None:
            self.start, self.end, self.has_model = self.packed.start, self.packed.end, self.packed.has_model

    @property
    def packed(self) -> Summary | None:
        """Its summary, where no run is left."""
        return None if self.runs else self.summary

    @property
    def waits(self) -> bool:
        """Whether its last run does."""
        return self.packed.last_run.waits if self.packed is not None else self.last_run.waits

    @property
    def ended_in_known_answer(self) -> bool:
        return self.packed.last_run.known_answer if self.packed is not None else self.last_run.ended_in_known_answer

    @property
    def last_run(self) -> RunView:
        """The one that ended last (ties: started last)."""
        assert self._last is not None
        return self._last

    @property
    def traces(self) -> list[TraceView]:
        return [trace for run in self.runs for trace in (*run.traces, *run.idle_traces)]

    def add(self, run: RunView, resumes: bool) -> None:
        """One more run; they come in order of start (ties: trace id). What is known of all of them is kept up."""
        self.start = min(self.start, run.start) if self.runs else run.start
        self.end = max(self.end, run.end) if self.runs else run.end
        if self._last is None or _ended_last(run) > _ended_last(self._last):
            self._last = run
        self.runs.append(run)
        self.turns += not resumes
        self.has_model = self.has_model or run.has_model
        self.stated_family = self.stated_family or run.stated_family
        self._claims.add(run)

    def claims(self) -> Claim | None:
        """The explicit claim that holds now."""
        return self._claims.latest(self.family.contract)


def cut(
    traces: Iterable[TraceView], book: ContractBook, rules: TimeRules, packed: Iterable[Session] = ()
) -> list[Session]:
    """The sessions of a conversation, first to last; empty when it has no work.

    Args:
        packed: the first sessions, which have settled; a run that would change them is not let in, and is marked late.
    """
    sessions = list(packed)
    for run in runs_of(traces, rules.session_gap):
        current = sessions[-1] if sessions else None
        late = False
        if current is not None:
            joins, resumes = _joins(current, run, rules)
            late = current.packed is not None and (joins or run.start < current.packed.last_start)
            if joins and not late:
                current.add(run, resumes)
                _update(current, sessions[-2] if len(sessions) > 1 else None, book, rules)
                continue
        fresh = Session(late=late)
        fresh.add(run, resumes=False)
        sessions.append(fresh)
        _update(fresh, current, book, rules)
    return sessions


def _ended_last(run: RunView) -> tuple[int, int, bytes]:
    return run.end, run.start, run.trace_id


def _update(session: Session, before: Session | None, book: ContractBook, rules: TimeRules) -> None:
    session.family = family_of(session, before, book, rules)
    session.claim = session.claims()


def family_of(session: Session, before: Session | None, book: ContractBook, rules: TimeRules) -> Family:
    """Rule 13: stated, else derived, else that of the session before within its reopen window, else none."""
    start = session.start
    if session.stated_family:
        return Family(session.stated_family, FamilySource.STATED, book.in_force(session.stated_family, start))
    derived, raised = book.derive(variables(session.runs, None), start) if book.derives else ([], 0)
    if len(derived) == 1:
        return Family(derived[0], FamilySource.DERIVED, book.in_force(derived[0], start), raised)
    if derived:
        return Family("", FamilySource.AMBIGUOUS, None, raised)
    if before is not None and before.family.name:
        contract = before.family.contract
        window = contract.reopen_window if contract is not None else rules.reopen_window
        if start - before.end <= window:
            return Family(before.family.name, FamilySource.INHERITED, book.in_force(before.family.name, start), raised)
    return Family("", FamilySource.NONE, None, raised)


def _joins(session: Session, run: RunView, rules: TimeRules) -> tuple[bool, bool]:
    """(same session, same turn) for the next run."""
    contract = session.family.contract
    stated = run.stated_family
    own = session.family.name if session.family.source in (FamilySource.STATED, FamilySource.DERIVED) else ""
    if stated and own and stated != own:
        return False, False
    if session.claim is None and _resumes(session, run, contract.wait_window if contract else rules.wait_window):
        return True, True
    if session.claim is not None:
        grace = contract.closing_grace if contract else rules.closing_grace
        if run.start - session.claim.time <= grace:
            return True, False
        window = contract.resume_window if contract else rules.resume_window
        return _is_thanks(run) and run.start - session.claim.time <= window, False
    quiet = max(rules.session_gap, contract.resume_window if contract else rules.resume_window)
    return run.start - session.end <= quiet, False


def _resumes(session: Session, run: RunView, wait_window: int) -> bool:
    """Rule 10."""
    if run.start - session.end > wait_window or not (run.has_model or session.has_model):
        return False
    if session.waits:
        return True
    first = run.first_leaf
    return first is not None and first.kind in CALLS and not session.ended_in_known_answer


def _is_thanks(run: RunView) -> bool:
    """A run that does nothing and states nothing: the customer's closing word (rule 11)."""
    for span in run.spans:
        if span.kind in (Kind.TOOL, Kind.HANDOFF):
            return False
        said = span.said
        if said is not None and (said.families or said.issues or said.keys or said.claim):
            return False
    return True
