"""What the worlds of the laws held: counted over a run, printed at its end, and held to a third of the examples."""

from __future__ import annotations

from collections import Counter

from hypothesis import event

from tests.oracle.model import OOutcome, OSpan
from tests.oracle.model import World as Answer
from tests.oracle.outcomes import event_hash
from tests.property.delivery import Batch
from tests.property.worlds import RULES, World

WANTED = ("two sessions in a conversation", "a duplicate", "a late outcome", "a conflict")


class Statistics:
    """Examples with each feature, by law."""

    def __init__(self) -> None:
        self.examples: Counter[str] = Counter()
        self.features: Counter[tuple[str, str]] = Counter()

    def note(self, law: str, world: World, answer: Answer, batches: list[Batch]) -> None:
        self.examples[law] += 1
        held = {
            "two sessions in a conversation": any(one.ordinal > 1 for one in answer.sessions),
            "a duplicate": len({(one.trace_id, one.span_id) for one in world.spans}) < len(world.spans),
            "a late outcome": _late(answer, batches),
            "a conflict": _conflict(world),
            "a trace held": bool(world.held),
            "a session reopened": any(one.reopens for one in answer.sessions),
            "an outcome that waits": bool(answer.waiting),
        }
        for name, holds in held.items():
            if holds:
                self.features[law, name] += 1
                event(name)
        if all(held[name] for name in WANTED):
            self.features[law, "all four"] += 1

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
