"""Which session of its conversation an outcome reaches (RULES.md 34-36), and what it proves (38-40a)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.core.judging.boundaries import Session
from pipeline.core.timeline import TimeRules
from schemas.outcome import SESSION_VIA, TRACE_KEY, Outcome, OutcomeKind
from schemas.span import Value

Via = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvidenceValue:
    """One value of one evidence field."""

    time: int
    event_id: str
    value: Value


@dataclass(slots=True)
class Proof:
    """The outcomes of one session, by kind; each list in order of (event time, event id)."""

    evidence: dict[str, list[EvidenceValue]] = field(default_factory=dict)
    events: dict[OutcomeKind, list[Outcome]] = field(default_factory=dict)
    shown: list[Outcome] = field(default_factory=list)

    def of(self, kind: OutcomeKind, until: int) -> list[Outcome]:
        """Outcomes of `kind` with event time at or before `until`."""
        return [one for one in self.events.get(kind, ()) if one.event_time <= until]

    def evidence_until(self, until: int) -> dict[str, EvidenceValue]:
        """Of each field the value with the greatest (event time, event id) at or before `until` (rule 28)."""
        found = {}
        for name, values in self.evidence.items():
            known = [one for one in values if one.time <= until]
            if known:
                found[name] = known[-1]
        return found


def reached(outcome: Outcome, vias: Iterable[Via], sessions: Sequence[Session], rules: TimeRules) -> set[int]:
    """Indices of the sessions of this conversation that the outcome reaches by these ways."""
    found: set[int] = set()
    begun_by = outcome.event_time + rules.max_clock_skew
    for via in vias:
        if via == SESSION_VIA:
            if outcome.ordinal is not None:
                found.update([outcome.ordinal - 1] if outcome.ordinal <= len(sessions) else [])
            else:
                begun = [index for index, one in enumerate(sessions) if one.start <= begun_by]
                found.update(begun[-1:])
        elif via[0] == TRACE_KEY:
            trace_id = bytes.fromhex(via[1])
            found.update(i for i, one in enumerate(sessions) if any(t.trace_id == trace_id for t in one.traces))
        else:
            holds = [i for i, one in enumerate(sessions) if one.start <= begun_by and states_key(one, via)]
            found.update(holds if outcome.kind is OutcomeKind.EVIDENCE else holds[-1:])
    return found


def states_key(session: Session, key: Via) -> bool:
    name, value = key
    for run in session.runs:
        for span in run.spans:
            if span.said is not None and value in span.said.keys.get(name, ()):
                return True
    return False


def attach(
    outcomes: Mapping[tuple[str, str], tuple[Outcome, Sequence[Via]]], sessions: Sequence[Session], rules: TimeRules
) -> tuple[list[Proof], int]:
    """A `Proof` for each session, and how many outcomes reach none of them yet."""
    proofs = [Proof() for _ in sessions]
    waiting = 0
    ordered = sorted(outcomes.values(), key=lambda one: (one[0].event_time, one[0].event_id, one[0].source))
    for outcome, vias in ordered:
        indices = reached(outcome, vias, sessions, rules)
        elsewhere = outcome.kind is OutcomeKind.EVIDENCE and SESSION_VIA not in vias
        waiting += not indices and not elsewhere  # evidence by key may be another conversation's; stage 3 knows
        for index in indices:
            proof = proofs[index]
            proof.shown.append(outcome)
            if outcome.from_agent:
                continue  # a claim, shown and nothing else (rule 40a)
            if outcome.kind is OutcomeKind.EVIDENCE:
                for name, value in outcome.data.items():
                    if value is not None:
                        proof.evidence.setdefault(name, []).append(
                            EvidenceValue(outcome.event_time, outcome.event_id, value)
                        )
            else:
                proof.events.setdefault(outcome.kind, []).append(outcome)
    return proofs, waiting
