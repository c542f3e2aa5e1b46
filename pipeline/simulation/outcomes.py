"""What systems of record and customers say about a session, hours later: facts, and the reports that carry them.

A fact is what holds in the end. Its reports are the versions sent on the way there (first answers, corrections,
retractions), some late, some twice, some in the wrong order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from pipeline.simulation.plan import (
    HOUR_NS,
    MINUTE_NS,
    SECOND_NS,
    ConversationPlan,
    Ending,
    Fact,
    FactKind,
    Kind,
    Report,
    SessionPlan,
    Standing,
)
from pipeline.simulation.profiles import FAMILIES, EvidenceCriterion, Family

# How evidence comes: what is said, first to last. Of each pair the first name is the story, the second its weight.
GOOD_STORIES = {
    "in_time": 0.7, "early": 0.07, "mended": 0.06, "corrected": 0.06, "revived": 0.03, "overtaken": 0.04,
    "refuted_refutation": 0.04,
}  # fmt: skip
BAD_STORIES = {"refused": 0.36, "never": 0.2, "late": 0.12, "reversed": 0.12, "corrected": 0.12, "withdrawn": 0.08}
ESCALATIONS = {
    "accepted": 0.56,
    "attempted": 0.1,
    "failed": 0.08,
    "withdrawn": 0.1,
    "corrected": 0.08,
    "too_late": 0.08,
}
REOPENS = {"reopened": 0.66, "withdrawn": 0.18, "too_late": 0.16}
ANSWERS = {"plain": 0.74, "changed": 0.11, "corrected": 0.08, "withdrawn": 0.04, "too_late": 0.03}
LATE_SHARE = 0.06
DUPLICATE_SHARE = 0.05
SWAPPED_SHARE = 0.25

Data = Mapping[str, bool | str]


@dataclass(slots=True)
class Sayings:
    """What has been said about one session so far."""

    facts: list[Fact]
    reports: list[Report]


def told(rng: Random, conversation: ConversationPlan, now_ns: int) -> tuple[ConversationPlan, list[Report]]:
    """The conversation with the facts about each of its sessions, and the reports that tell them."""
    sessions, reports = [], []
    for index in range(len(conversation.sessions)):
        teller = Teller(rng, conversation, index, now_ns)
        teller.tell()
        sessions.append(replace(conversation.sessions[index], facts=tuple(teller.said.facts)))
        reports += teller.said.reports
    return replace(conversation, sessions=tuple(sessions)), reports


class Teller:
    """Tells the story of one session."""

    def __init__(self, rng: Random, conversation: ConversationPlan, index: int, now_ns: int) -> None:
        self.rng = rng
        self.conversation = conversation
        self.index = index
        self.session: SessionPlan = conversation.sessions[index]
        self.family: Family = FAMILIES[self.session.family]
        self.now_ns = now_ns
        self.said = Sayings([], [])

    def tell(self) -> None:
        """All that is said about the session."""
        for criterion in self.family.evidence:
            self._evidence(criterion)
        if self.rng.random() < self.family.escalated_later:
            self._escalation(self._drawn(ESCALATIONS))
        if self.rng.random() < self.family.reopened_later:
            self._reopen(self._drawn(REOPENS))
        if self.rng.random() < self.family.answered:
            self._answer(self._drawn(ANSWERS), self.rng.random() < self.family.confirms)

    def _evidence(self, criterion: EvidenceCriterion) -> None:
        session, rng = self.session, self.rng
        silent = session.ending in (Ending.CRASHES, Ending.WAITS_FOR_CUSTOMER, Ending.WAITS_FOR_PERSON)
        if (silent or session.standing is Standing.GUARDED) and rng.random() < 0.75:
            return
        good: Data = {criterion.field: criterion.good}
        bad: Data = {criterion.field: criterion.bad}
        sooner_ns = self._after(criterion.deadline_ns, 0.03, 0.45)
        later_ns = self._after(criterion.deadline_ns, 0.5, 0.9)
        too_late_ns = session.end_ns + criterion.deadline_ns + self._hours(2, 9)
        source = criterion.source
        if rng.random() < criterion.pass_rate:
            match self._drawn(GOOD_STORIES):
                case "early":
                    # Known before the session's first span: some seconds before it starts, well inside the clock skew.
                    at_ns = session.start_ns - round(rng.uniform(20, 90) * SECOND_NS)
                    self._say(FactKind.EVIDENCE, source, [good], at_ns, prompt=True)
                case "mended":
                    self._say(FactKind.EVIDENCE, source, [bad], sooner_ns)
                    self._say(FactKind.EVIDENCE, source, [good], later_ns)
                case "corrected":
                    self._say(FactKind.EVIDENCE, source, [bad, good], sooner_ns)
                case "revived":
                    self._say(FactKind.EVIDENCE, source, [good, None, good], sooner_ns)
                case "overtaken":
                    self._say(FactKind.EVIDENCE, source, [good], sooner_ns)
                    self._say(FactKind.EVIDENCE, source, [bad], too_late_ns)
                case "refuted_refutation":
                    self._say(FactKind.EVIDENCE, source, [good], sooner_ns)
                    self._say(FactKind.EVIDENCE, source, [bad, None], later_ns)
                case _:
                    self._say(FactKind.EVIDENCE, source, [good], rng.choice((sooner_ns, later_ns)))
            return
        match self._drawn(BAD_STORIES):
            case "refused":
                self._say(FactKind.EVIDENCE, source, [bad], rng.choice((sooner_ns, later_ns)))
            case "late":
                self._say(FactKind.EVIDENCE, source, [good], too_late_ns)
            case "reversed":
                self._say(FactKind.EVIDENCE, source, [good], sooner_ns)
                self._say(FactKind.EVIDENCE, source, [bad], later_ns)
            case "corrected":
                self._say(FactKind.EVIDENCE, source, [good, bad], sooner_ns)
            case "withdrawn":
                self._say(FactKind.EVIDENCE, source, [good, None], sooner_ns)
            case _:
                return

    def _escalation(self, story: str) -> None:
        at_ns = self._after(self.family.horizon_ns, 0.02, 0.6)
        accepted: Data = {"state": "accepted"}
        versions: dict[str, list[Data | None]] = {
            "attempted": [{"state": "attempted"}],
            "failed": [{"state": "failed"}],
            "withdrawn": [accepted, None],
            "corrected": [accepted, {"state": "failed"}],
        }
        if story == "too_late":
            at_ns = self._past(self.family.horizon_ns) or at_ns
        self._say(FactKind.ESCALATION, "helpdesk", versions.get(story, [accepted]), at_ns)

    def _reopen(self, story: str) -> None:
        at_ns = self._after(self.family.reopen_window_ns, 0.05, 0.9)
        ticket: Data = {"reason": "customer wrote again"}
        if story == "too_late":
            at_ns = self._past(self.family.reopen_window_ns) or at_ns
        self._say(FactKind.REOPEN, "helpdesk", [ticket, None] if story == "withdrawn" else [ticket], at_ns)

    def _answer(self, story: str, confirmed: bool) -> None:
        at_ns = self._after(self.family.horizon_ns, 0.02, 0.4)
        answer: Data = {"confirmed": confirmed}
        other: Data = {"confirmed": not confirmed}
        if story == "changed":
            self._say(FactKind.RESOLUTION, "survey", [other], at_ns)
            at_ns = self._after(self.family.horizon_ns, 0.5, 0.9)
        if story == "too_late":
            at_ns = self._past(self.family.horizon_ns) or at_ns
        versions: dict[str, list[Data | None]] = {"corrected": [other, answer], "withdrawn": [answer, None]}
        self._say(FactKind.RESOLUTION, "survey", versions.get(story, [answer]), at_ns)

    def _say(
        self, kind: FactKind, source: str, versions: Sequence[Data | None], at_ns: int, *, prompt: bool = False
    ) -> None:
        """One outcome event in all its versions; the last of them is what holds."""
        at_ns -= at_ns % (SECOND_NS // 1000)  # events carry milliseconds
        event_id = f"{source}:{kind}-{self.rng.getrandbits(48):012x}"
        by_key, address = self._address(kind, at_ns)
        arrivals = self._arrivals(at_ns, len(versions), prompt=prompt)
        for version, (data, arrival_ns) in enumerate(zip(versions, arrivals, strict=True), start=1):
            event: dict[str, object] = {
                "event_id": event_id,
                "event_version": version,
                "event_time": iso(at_ns),
                "source": source,
            }
            event |= {"kind": "retract"} if data is None else {"kind": str(kind), **address, "data": dict(data)}
            self.said.reports.append(Report(arrival_ns, at_ns, event))
            if self.rng.random() < DUPLICATE_SHARE:
                again_ns = arrival_ns + round(self.rng.uniform(1, 36000) * SECOND_NS)
                self.said.reports.append(Report(min(again_ns, self.now_ns), at_ns, event))
        last = versions[-1]
        if last is not None:
            ((name, value),) = last.items()
            self.said.facts.append(Fact(kind, name, value, at_ns, by_key, event_id))

    def _address(self, kind: FactKind, at_ns: int) -> tuple[bool, dict[str, object]]:
        """By business key, or by conversation: with an ordinal wherever the time alone would not single it out."""
        shared = self.conversation.kind is Kind.RETURNS_TO_SAME_ORDER
        evidence = kind is FactKind.EVIDENCE
        by_key_share = 0.65 if evidence else 0.0 if shared else 0.4
        if not self.conversation.attributed or self.rng.random() < by_key_share:
            keys = {self.family.key_name: self.session.key}
            if evidence and self.rng.random() < 0.15:
                keys["shipment_id"] = f"SH-{self.rng.getrandbits(40):010x}"
            return True, {"correlation": keys}
        address: dict[str, object] = {"session_id": self.conversation.name}
        following = self.conversation.sessions[self.index + 1 : self.index + 2]
        if (following and at_ns > following[0].start_ns - 15 * MINUTE_NS) or self.rng.random() < 0.2:
            address["ordinal"] = self.index + 1
        return False, address

    def _arrivals(self, at_ns: int, versions: int, *, prompt: bool) -> list[int]:
        arrivals = []
        arrival_ns = at_ns
        for _ in range(versions):
            arrival_ns += round(self.rng.uniform(0.2, 45) * SECOND_NS)
            if not prompt and self.rng.random() < LATE_SHARE:
                arrival_ns += self._hours(0.5, 15)
            arrivals.append(arrival_ns)
            arrival_ns += self._hours(0.1, 5)
        if versions > 1 and self.rng.random() < SWAPPED_SHARE:
            arrivals.reverse()
        return [min(arrival, self.now_ns) for arrival in arrivals]

    def _after(self, span_ns: int, least: float, most: float) -> int:
        return self.session.end_ns + round(span_ns * self.rng.uniform(least, most))

    def _past(self, limit_ns: int) -> int | None:
        """A moment clearly past the limit, where there is one before the world's end."""
        at_ns = self.session.end_ns + limit_ns + self._hours(1, 3)
        return at_ns if at_ns < self.now_ns - 10 * MINUTE_NS else None

    def _hours(self, least: float, most: float) -> int:
        return round(self.rng.uniform(least, most) * HOUR_NS)

    def _drawn(self, weights: Mapping[str, float]) -> str:
        return self.rng.choices(list(weights), list(weights.values()))[0]


def iso(at_ns: int) -> str:
    """A moment as events carry it."""
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ns // 1_000_000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
