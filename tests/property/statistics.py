"""What the worlds of the laws held: counted over a run, printed at its end, and held to least shares."""

from __future__ import annotations

from collections import Counter

from hypothesis import event

from pipeline.core.windows import folded_before
from tests.oracle.model import DAY, OOutcome, OSpan
from tests.oracle.model import World as Answer
from tests.oracle.outcomes import event_hash
from tests.property.delivery import Batch
from tests.property.driver import Pipeline
from tests.property.worlds import RULES, World, corrected

WANTED = ("two sessions in a conversation", "a duplicate", "a late outcome", "a conflict")


ONLY_LIVED = frozenset({"a re-cut or a move", "a move to the conversation named later", "a verdict revised"})
"""Known of worlds that were lived before they were noted."""
NEVER = {"longer horizons": frozenset({"a trace without an id"})}
"""What the worlds of a law hold by no chance."""
SHARES = {
    "all four": 1 / 3,
    "a re-cut or a move": 1 / 4,
    "a verdict revised": 1 / 3,
    "a session reopened": 1 / 4,
    "a session of another conversation reopened": 1 / 20,
    "a key of several conversations": 1 / 5,
    "a key too broad": 1 / 25,
    "subjects or issues as sets": 1 / 5,
    "two versions of a contract": 1 / 10,
    "an evaluation scored": 1 / 6,
    "goal achievement known": 1 / 25,
    "a failure with its cause": 1 / 4,
    "a scenario compared": 1 / 25,
    "a wrong clock": 1 / 4,
    "an outcome corrected or retracted": 1 / 3,
    "an outcome sent elsewhere": 1 / 10,
    "an agent's own outcome": 1 / 4,
    "refused or invalid": 1 / 12,
    "an outcome that waits": 1 / 5,
    "two families in a conversation": 1 / 3,
    "a trace without an id": 1 / 8,
    "a session of more than a day": 1 / 50,
    "a hand-off accepted": 1 / 4,
    "a hand-off only attempted": 1 / 5,
    "confirmed by the customer": 1 / 25,
    "denied by the customer": 1 / 25,
    "an evaluation abstained or failed": 1 / 12,
    "an hour that is folded": 1 / 4,
    "a move to the conversation named later": 1 / 100,
}
"""Of its examples each law sees at least so many with a feature."""


def features(world: World, answer: Answer) -> dict[str, bool]:
    """What a world holds."""
    sessions = answer.sessions
    stating: dict[object, set[str]] = {}
    for one in sessions:
        for key in one.keys:
            stating.setdefault(key, set()).add(one.conversation)
    families: dict[str, set[str | None]] = {}
    for one in sessions:
        families.setdefault(one.conversation, set()).add(one.family)
    versions: dict[str, set[int | None]] = {}
    for one in sessions:
        versions.setdefault(one.family or "", set()).add(one.contract_version)
    said: dict[str, list[OOutcome]] = {}
    for event_ in world.outcomes:
        said.setdefault(event_.event_id, []).append(event_)
    return {
        "two sessions in a conversation": any(one.ordinal > 1 for one in sessions),
        "a duplicate": len({(one.trace_id, one.span_id) for one in world.spans}) < len(world.spans),
        "a conflict": _conflict(world),
        "a trace held": bool(world.held),
        "a session reopened": any(one.reopens for one in sessions),
        "a session of another conversation reopened": any(
            name != one.conversation for one in sessions for name, _ in one.reopens
        ),
        "an outcome that waits": bool(answer.waiting),
        "a key of several conversations": any(len(names) > 1 for names in stating.values()),
        "a key too broad": answer.counted["too_broad"] > 0,
        "subjects or issues as sets": any(len(one.subjects) > 1 or len(one.issues) > 1 for one in sessions),
        "two versions of a contract": any(len(found - {None}) > 1 for found in versions.values()),
        "an evaluation scored": any(e.score is not None for one in sessions for e in one.evaluations.values()),
        "goal achievement known": any(one.goal_achievement is not None for one in sessions),
        "a failure with its cause": any(one.failure is not None for one in sessions),
        "a scenario compared": any(one.trial is not None and one.trial.expected for one in sessions),
        "a wrong clock": any(corrected(one).flags for one in world.spans),
        "an outcome corrected or retracted": any(
            len({one.event_version for one in events}) > 1 or events[-1].kind == "retract" for events in said.values()
        ),
        "an outcome sent elsewhere": any(
            len({(one.session_id, one.ordinal, one.trace_id, *one.correlation.items()) for one in events}) > 1
            for events in said.values()
        ),
        "an agent's own outcome": any(one.from_agent for one in world.outcomes),
        "refused or invalid": any(one.refused or one.invalid for one in sessions),
        "two families in a conversation": any(len(found - {None}) > 1 for found in families.values()),
        "a trace without an id": any(not one.attributed for one in sessions),
        "a session of more than a day": any(one.end - one.start > DAY for one in sessions),
        "a hand-off accepted": any(one.escalated for one in sessions),
        "a hand-off only attempted": any(one.handoff_attempted and not one.escalated for one in sessions),
        "confirmed by the customer": any(one.confirmed is True for one in sessions),
        "denied by the customer": any(one.answered and one.confirmed is False for one in sessions),
        "an evaluation abstained or failed": any(
            e.state in ("abstained", "error") for one in sessions for e in one.evaluations.values()
        ),
        "an hour that is folded": any(one.end < folded_before(world.watermark, RULES) for one in sessions),
    }


class Statistics:
    """Examples with each feature, by law."""

    def __init__(self) -> None:
        self.examples: Counter[str] = Counter()
        self.features: Counter[tuple[str, str]] = Counter()

    def note(
        self, law: str, world: World, answer: Answer, batches: list[Batch], pipeline: Pipeline | None = None
    ) -> None:
        """Count one example.

        Args:
            pipeline: that has lived it; some features are known by what it told.
        """
        self.examples[law] += 1
        held = {**features(world, answer), "a late outcome": _late(answer, batches)}
        if pipeline is not None:
            documents = [one for told in pipeline.documents().values() for one in told]
            gone = [one["conversation"] for one in documents if one["deleted"]]
            held["a re-cut or a move"] = bool(gone)
            held["a move to the conversation named later"] = any(name.startswith("trace:") for name in gone)
            held["a verdict revised"] = any(one["revision"] > 1 for one in documents)
        held["all four"] = all(held[name] for name in WANTED)
        for name, holds in held.items():
            if holds:
                self.features[law, name] += 1
                event(name)

    def missed(self, law: str) -> list[str]:
        """The features that a law saw too seldom."""
        n = self.examples[law]
        known = {name for of, name in self.features if of == law}
        return [
            f"{name}: {self.features[law, name]} of {n}"
            for name, share in SHARES.items()
            if (name in known or name not in ONLY_LIVED)
            and name not in NEVER.get(law, ())
            and self.features[law, name] < share * n
        ]

    def lines(self) -> list[str]:
        found = []
        for law, n in sorted(self.examples.items()):
            shares = ", ".join(f"{name} {count}" for (of, name), count in sorted(self.features.items()) if of == law)
            found.append(f"{law}: {n} examples; {shares}")
        return found


def _late(answer: Answer, batches: list[Batch]) -> bool:
    """An outcome that comes when its session had been judged."""
    ends: dict[tuple[str, str], int] = {}
    for one in answer.sessions:
        for identity in one.outcomes:
            ends[identity] = min(one.end, ends.get(identity, one.end))
    watermark = 0
    for batch in batches:
        for record in batch.records:
            if isinstance(record, OOutcome):
                end = ends.get((record.source, record.event_id))
                if end is not None and watermark > end + RULES.session_gap:
                    return True
        watermark = max(watermark, batch.watermark)
    return False


def _conflict(world: World) -> bool:
    """Two events of one identity and version, or two copies of one span, that say different things."""
    said: dict[object, set[object]] = {}
    for outcome in world.outcomes:
        said.setdefault((outcome.event_id, outcome.event_version), set()).add(event_hash(outcome))
    for span in world.spans:
        said.setdefault((span.trace_id, span.span_id), set()).add(_content(span))
    return any(len(versions) > 1 for versions in said.values())


def _content(span: OSpan) -> object:
    return span.end, span.failed, span.attribute_count, span.conversation_ids


STATISTICS = Statistics()
