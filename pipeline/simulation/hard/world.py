"""Builds the hard world: half of it the usual week, half of it scenes, every kind in each round.

The same seed, size and moment give the same world, to the last id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from opentelemetry.sdk.trace import ReadableSpan

from pipeline.simulation.conversations import MATURE_NS, draw_conversation
from pipeline.simulation.hard.kinds import KINDS, Kind
from pipeline.simulation.hard.scene import TENANT, Scene, Where, Written
from pipeline.simulation.ledger import Account, accounts
from pipeline.simulation.outcomes import told
from pipeline.simulation.plan import HOUR_NS, MINUTE_NS, ConversationPlan, Report
from pipeline.simulation.spans import Agents
from pipeline.simulation.traffic import Arrival, Faults, SpanBatch, Timed, on_their_way, sent, trace_and_span

USUAL_SHARE = 0.5
DUPLICATES = 0.02
LATER_H = 12.0


class HardWorld:
    """A hard world under construction."""

    def __init__(self, rng: Random, now_ns: int) -> None:
        self.rng, self.now_ns = rng, now_ns
        self.conversations: list[ConversationPlan] = []
        self.verdicts: dict[Where, Account] = {}
        self.counted: list[Account] = []
        self.kinds: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._timed: list[Timed] = []
        self._closing: list[ReadableSpan] = []

    def usual(self, sessions: int) -> None:
        """At least so many sessions of the usual sort."""
        reports: list[Report] = []
        while len(self.verdicts) < sessions:
            plan = draw_conversation(self.rng, len(self.conversations) + 1, self.now_ns)
            plan, said = told(self.rng, plan, self.now_ns)
            self.conversations.append(plan)
            reports += said
            for ordinal, account in enumerate(accounts(plan), start=1):
                self.verdicts[TENANT, plan.name, ordinal] = account
                self.counted.append(account)
        traces = list(Agents(self.rng).traces(self.conversations))
        self._timed += on_their_way(self.rng, traces, reports)
        self._name_unattributed(iter(traces))

    def scenes(self, sessions: int) -> None:
        """Rounds of scenes, one at least, until there are so many sessions in all."""
        number = 0
        while not number or len(self.verdicts) < sessions:
            names = [name for name, kind in KINDS.items() if number % kind.every == 0]
            self.rng.shuffle(names)
            for name in names:
                if number and len(self.verdicts) >= sessions:
                    break
                self._play(name, KINDS[name], number)
            number += 1

    def arrivals(self) -> tuple[list[Arrival], Faults]:
        """Everything in the order in which it is to be sent; what has no true time comes last."""
        found, faults = sent(self.rng, self._timed)
        return [*found, *([SpanBatch(self._closing)] if self._closing else [])], faults

    def _play(self, name: str, kind: Kind, number: int) -> None:
        latest_ns = self.now_ns - MATURE_NS - round(kind.hours * HOUR_NS) - 10 * MINUTE_NS
        base_ns = self.rng.randint(self.now_ns - round(kind.oldest_h * HOUR_NS), latest_ns)
        if kind.days_ago is not None:
            base_ns = self.now_ns - round(kind.days_ago * 24 * HOUR_NS) + number * MINUTE_NS
        scene = Scene(self.rng, name, number, base_ns - base_ns % 1_000_000, self.now_ns)
        kind.play(scene)
        self._take(scene.written, counted=kind.days_ago is None)
        self.kinds[name] += 1

    def _take(self, written: Written, *, counted: bool) -> None:
        self.verdicts |= written.verdicts
        if counted:
            self.counted += written.verdicts.values()
        self._closing += written.closing
        for timed in written.timed:
            self._timed.append(timed)
            if counted and self.rng.random() < DUPLICATES:
                later_ns = timed.arrival_ns + round(self.rng.uniform(0, LATER_H) * HOUR_NS)
                self._timed.append(replace(timed, arrival_ns=min(later_ns, self.now_ns)))

    def _name_unattributed(self, traces: Iterator[list[ReadableSpan]]) -> None:
        """Usual conversations without an id are called by their one trace."""
        for plan in self.conversations:
            spans = [next(traces) for session in plan.sessions for _ in session.runs]
            if not plan.attributed:
                name = f"trace:{trace_and_span(spans[0][0])[0]:032x}"
                self.verdicts[TENANT, name, 1] = self.verdicts.pop((TENANT, plan.name, 1))
