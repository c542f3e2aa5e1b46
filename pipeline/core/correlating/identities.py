"""Where the versions of an outcome meet, and whether a session has it (RULES.md 32, 33, 37).

The rule this file keeps: of one identity the newest version is where it is addressed and nowhere else, and an outcome
that no session has waits until its retention is over, as one, however many keys and conversations it was sent to.
"""

from __future__ import annotations

import msgspec

from pipeline.core.correlating.state import Identity, Kept, Key, addresses
from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.timeline import TimeRules
from schemas.contact import Reached
from schemas.outcome import SESSION_VIA, Addressed, Attached, Outcome, OutcomeKind
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter, Keyed


class Identities:
    """The outcome identities of one partition."""

    def __init__(self, partition: int, partitions: int, rules: TimeRules, outbox: Outbox, versions: Versions) -> None:
        self._partition, self._partitions, self._rules = partition, partitions, rules
        self._outbox, self._versions = outbox, versions
        self.kept = Kept(b"i", Identity, lambda one: one.outcome.event_time, rules.retention)
        self._waiting: set[bytes] = set()

    def load(self, key: bytes, state: bytes) -> None:
        self._note(key, self.kept.load(key, state))

    def take(self, outcome: Outcome, watermark: int, replaying: bool) -> None:
        """A version of an outcome, or one of its copies."""
        key = self.kept.key(outcome.tenant, outcome.source, outcome.event_id)
        known = self.kept.states.get(key)
        if known is None:
            if outcome.event_time + self._rules.retention < watermark:
                self._dead_letter(outcome, "sealed", "an outcome older than the retention of outcomes")
                return
            known = Identity(outcome.tenant, outcome, [], "", {})
            self._outbox.count(Result.USED, "outcome")
        elif outcome.order < known.outcome.order:
            self._outbox.count(Result.DROPPED, "superseded")
            return
        elif outcome.order == known.outcome.order:
            self._outbox.count(Result.DROPPED, "duplicate")
            if outcome.event_time >= known.outcome.event_time and not replaying:
                return
            outcome = min(outcome, known.outcome, key=lambda one: one.event_time)  # rule 33: the earliest record time
        else:
            self._outbox.count(Result.USED, "outcome")
            if outcome.event_version == known.outcome.event_version:
                self._outbox.count(Result.NOTED, "equal_versions")
        known.outcome, known.answered = outcome, False
        self.kept.touch(key, known, watermark)
        self._note(key, known)
        self._route(known)

    def hear(self, record: Reached, watermark: int) -> None:
        """What became of it in a conversation, or that its key leads to none."""
        key = self.kept.key(record.tenant, record.source, record.event_id)
        known = self.kept.states.get(key)
        if known is None:
            return
        before, _ = known.reached.get(record.conversation, (0, False))
        if record.stamp < before:
            return
        if record.conversation:
            known.reached[record.conversation] = record.stamp, record.reached
        known.answered = True
        self.kept.touch(key, known, watermark)
        self._note(key, known)

    def expire(self, watermark: int) -> None:
        """Forget what is past its retention; what nobody has answered for yet is asked about again."""
        for key, known in self.kept.due(watermark):
            if known.waits:
                if not known.answered:
                    continue
                detail = "an outcome that no session claimed until its retention was over"
                self._dead_letter(known.outcome, "no_session", detail)
            self.forget(key)

    def forget(self, key: bytes) -> None:
        """It is erased."""
        self.kept.forget(key)
        self._waiting.discard(key)

    @property
    def waiting(self) -> int:
        """Outcomes that no session has yet."""
        return len(self._waiting)

    def _note(self, key: bytes, known: Identity) -> None:
        (self._waiting.add if known.waits else self._waiting.discard)(key)

    def _route(self, known: Identity) -> None:
        """Send the newest version where it is addressed; withdraw it from where it was sent before."""
        outcome = known.outcome
        now = set(addresses(outcome))
        keys = sorted(now.union(known.keys))
        conversation = outcome.session_id if outcome.kind is not OutcomeKind.RETRACT else ""
        for name, value in keys:
            content = outcome if (name, value) in now else None
            stamp = self._versions.next()
            record = Addressed(known.tenant, name, value, outcome.source, outcome.event_id, stamp, content)
            self._outbox.send(Topic.CORRELATIONS, partition_of(self._partitions, known.tenant, name, value), record)
        known.keys = keys
        for target in sorted({conversation, known.conversation} - {""}):
            content = outcome if target == conversation else None
            attach(self._outbox, self._partitions, self._versions, target, outcome, SESSION_VIA, content)
        known.conversation = conversation or known.conversation

    def _dead_letter(self, outcome: Outcome, why: str, detail: str) -> None:
        self._outbox.count(Result.DEAD_LETTERED, why)
        detail = f"{detail}: {outcome.kind.value} {outcome.source} {outcome.event_id}"
        letter = DeadLetter(why, detail, Topic.CORRELATIONS, self._partition, -1, 0, 0, outcome.tenant)
        self._outbox.send(
            Topic.DEAD_LETTERS, self._partition, Keyed(Topic.CORRELATIONS.encode(), msgspec.json.encode(letter))
        )


def attach(
    outbox: Outbox,
    partitions: int,
    versions: Versions,
    conversation: str,
    one: Outcome,
    via: Key,
    content: Outcome | None,
) -> None:
    """Tell a conversation that it has the outcome by this way; None: no longer."""
    record = Attached(one.tenant, conversation, one.source, one.event_id, via, versions.next(), content)
    outbox.send(Topic.SESSION_EVENTS, partition_of(partitions, one.tenant, conversation), record)
