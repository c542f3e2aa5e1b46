"""Which session of its conversation an outcome reaches (RULES.md 34-36), and what it proves (38-40a)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.summarise import summary_of
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


def stated(sessions: Iterable[Session]) -> list[frozenset[Via]]:
    """Of each session the keys that its spans state."""
    return [frozenset(summary_of(one).keys) for one in sessions]


def reached(
    outcome: Outcome,
    vias: Iterable[Via],
    sessions: Sequence[Session],
    keys: Sequence[AbstractSet[Via]],
    rules: TimeRules,
) -> set[int]:
    """Indices of the sessions of this conversation that the outcome reaches by these ways.

    Args:
        keys: of each session those that its spans state.
    """
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
            found.update(i for i, one in enumerate(sessions) if trace_id in summary_of(one).trace_ids)
        else:
            holds = [i for i, one in enumerate(sessions) if one.start <= begun_by and via in keys[i]]
            found.update(holds if outcome.kind is OutcomeKind.EVIDENCE else holds[-1:])
    return found


def horizon_of(kind: OutcomeKind, session: Session, rules: TimeRules) -> int | None:
    """Up to when an outcome of this kind counts for it, ns; None where nothing would read it (rules 28, 38)."""
    contract, end = session.family.contract, summary_of(session).end
    if kind is OutcomeKind.EVIDENCE:
        deadlines = [one.deadline for one in contract.criteria if one.deadline is not None] if contract else []
        return end + max(deadlines) if deadlines else None
    if kind is OutcomeKind.REOPEN:
        return end + (contract.reopen_window if contract else rules.reopen_window)
    if kind in (OutcomeKind.ESCALATION, OutcomeKind.RESOLUTION):
        return end + (contract.horizon if contract else rules.reopen_window)
    return end + rules.retention


def attach(
    outcomes: Mapping[tuple[str, str], tuple[Outcome, Sequence[Via]]], sessions: Sequence[Session], rules: TimeRules
) -> tuple[list[Proof], dict[tuple[str, str], bool]]:
    """A `Proof` for each session, and the outcomes that reach one: whether any of them does so in time."""
    proofs = [Proof() for _ in sessions]
    reaching: dict[tuple[str, str], bool] = {}
    keys = stated(sessions) if outcomes else []
    ordered = sorted(outcomes.values(), key=lambda one: (one[0].event_time, one[0].event_id, one[0].source))
    for outcome, vias in ordered:
        indices = reached(outcome, vias, sessions, keys, rules)
        if indices:
            horizons = [horizon_of(outcome.kind, sessions[index], rules) for index in indices]
            reaching[outcome.identity] = any(one is None or outcome.event_time <= one for one in horizons)
        for index in indices:
            proof = proofs[index]
            proof.shown.append(outcome)
            if outcome.barred or (outcome.from_agent and outcome.kind is not OutcomeKind.EVALUATION):
                continue  # a claim, shown and nothing else (rule 40a)
            if outcome.kind is OutcomeKind.EVIDENCE:
                for name, value in outcome.data.items():
                    if value is not None:
                        proof.evidence.setdefault(name, []).append(
                            EvidenceValue(outcome.event_time, outcome.event_id, value)
                        )
            else:
                proof.events.setdefault(outcome.kind, []).append(outcome)
    return proofs, reaching
