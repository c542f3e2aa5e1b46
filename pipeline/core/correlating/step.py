"""Stage 3 for one partition: everything that moves an outcome identity or a key.

```
outcome --> its identity: newest version? --> to its conversation, or to each of its keys (elsewhere in this stage)
                                         --> withdrawn from where it was before and no longer is
key: a trace states it, or an outcome is addressed to it --> to the conversations it leads to now; withdrawn from others
```
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from pipeline.core.correlating.state import Identity, Key, KeyState, Statement, addresses, targets, waits
from pipeline.core.effects import Changed, Outbox, Result, Versions
from pipeline.core.timeline import TimeRules
from schemas.outcome import SESSION_VIA, TRACE_KEY, Addressed, Attached, Outcome, OutcomeArrival, OutcomeKind
from schemas.span import Stated
from schemas.topics import Topic, partition_of
from schemas.wire import DeadLetter, Keyed

_encode = msgspec.msgpack.Encoder().encode
_decode_identity = msgspec.msgpack.Decoder(Identity).decode
_decode_key = msgspec.msgpack.Decoder(KeyState).decode
IDENTITY, KEY = b"i", b"k"


class CorrelateStep:
    """One partition of stage 3."""

    def __init__(self, partition: int, partitions: int, rules: TimeRules) -> None:
        self.partition, self.partitions, self.rules = partition, partitions, rules
        self.outbox, self.versions = Outbox(), Versions()
        self.identities: dict[bytes, Identity] = {}
        self.keys: dict[bytes, KeyState] = {}
        self.watermark = 0
        self._timers: list[tuple[int, bytes]] = []
        self._armed: set[bytes] = set()
        self._dirty: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._replaying = False

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        if key[:1] == IDENTITY:
            self.identities[key] = _decode_identity(state)
        else:
            self.keys[key] = _decode_key(state)
        self._arm(key)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self._replaying = True

    def caught_up(self) -> None:
        self._replaying = False

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(self, records: Sequence[OutcomeArrival | Stated | Addressed]) -> None:
        for record in records:
            if isinstance(record, OutcomeArrival):
                self._take_outcome(msgspec.structs.replace(record.outcome, heard_at=record.record_time))
            elif isinstance(record, Stated):
                self._take_statement(record)
            else:
                self._take_address(record)

    def _take_outcome(self, outcome: Outcome) -> None:
        key = IDENTITY + "\0".join((outcome.tenant, outcome.source, outcome.event_id)).encode()
        known = self.identities.get(key)
        if known is None:
            if outcome.event_time + self.rules.retention < self.watermark:
                self._dead_letter(outcome, "sealed", "an outcome older than the retention of outcomes")
                return
            known = self.identities[key] = Identity(outcome.tenant, outcome, [], "")
            self._gone.discard(key)
            self.outbox.count(Result.USED, "outcome")
        elif outcome.order < known.outcome.order:
            self.outbox.count(Result.DROPPED, "superseded")
            return
        elif outcome.order == known.outcome.order:
            self.outbox.count(Result.DROPPED, "duplicate")
            if outcome.event_time >= known.outcome.event_time and not self._replaying:
                return
            outcome = min(outcome, known.outcome, key=lambda one: one.event_time)  # rule 33: the earliest record time
        else:
            self.outbox.count(Result.USED, "outcome")
            if outcome.event_version == known.outcome.event_version:
                self.outbox.count(Result.NOTED, "equal_versions")
        known.outcome = outcome
        self._dirty.add(key)
        self._arm(key)
        self._route(known)

    def _route(self, known: Identity) -> None:
        """Send the newest version where it is addressed; withdraw it from where it was sent before."""
        outcome = known.outcome
        now = addresses(outcome)
        conversation = outcome.session_id if outcome.kind is not OutcomeKind.RETRACT else ""
        for name, value in sorted({*now, *known.keys}):
            content = outcome if (name, value) in now else None
            record = Addressed(
                known.tenant, name, value, outcome.source, outcome.event_id, self.versions.next(), content
            )
            self.outbox.send(Topic.CORRELATIONS, partition_of(self.partitions, known.tenant, name, value), record)
        known.keys = sorted({*now, *known.keys})
        for target in sorted({conversation, known.conversation} - {""}):
            self._attach(known.tenant, target, outcome, SESSION_VIA, outcome if target == conversation else None)
        known.conversation = conversation or known.conversation

    def _take_statement(self, record: Stated) -> None:
        key, state = self._key(record.tenant, record.name, record.value)
        known = state.statements.get(record.trace_id)
        if known is not None and record.stamp < known.stamp:
            return
        state.statements[record.trace_id] = Statement(record.stamp, record.start, record.conversation)
        for identity, (_, outcome) in state.outcomes.items():
            if outcome is not None:
                self._retarget(state, identity, outcome, again=self._replaying)
        self._dirty.add(key)
        self._arm(key)

    def _take_address(self, record: Addressed) -> None:
        key, state = self._key(record.tenant, record.name, record.value)
        identity = f"{record.source}\0{record.event_id}"
        known = state.outcomes.get(identity)
        if known is not None and record.stamp < known[0]:
            return
        state.outcomes[identity] = (record.stamp, record.outcome)
        if record.outcome is not None:
            self._retarget(state, identity, record.outcome, again=True)
        elif known is not None and known[1] is not None:
            for conversation in state.sent.pop(identity, []):
                self._attach(state.tenant, conversation, known[1], (state.name, state.value), None)
        self._dirty.add(key)
        self._arm(key)

    def _key(self, tenant: str, name: str, value: str) -> tuple[bytes, KeyState]:
        key = KEY + "\0".join((tenant, name, value)).encode()
        state = self.keys.get(key)
        if state is None:
            state = self.keys[key] = KeyState(tenant, name, value, {}, {}, {})
            self._gone.discard(key)
        return key, state

    def _retarget(self, state: KeyState, identity: str, outcome: Outcome, again: bool) -> None:
        """Send an outcome to the conversations its key leads to now.

        Args:
            again: also to those that have it (its content changed, or a dead worker may have sent something else).
        """
        now, too_broad = targets(state, outcome, self.rules.max_clock_skew)
        before = state.sent.get(identity, [])
        via: Key = (state.name, state.value)
        if too_broad and before:
            self.outbox.count(Result.NOTED, "too_broad")
        for conversation in now:
            if again or conversation not in before:
                self._attach(state.tenant, conversation, outcome, via, outcome)
        for conversation in before:
            if conversation not in now:
                self._attach(state.tenant, conversation, outcome, via, None)
        state.sent[identity] = now

    def _attach(self, tenant: str, conversation: str, one: Outcome, via: Key, content: Outcome | None) -> None:
        partition = partition_of(self.partitions, tenant, conversation)
        record = Attached(tenant, conversation, one.source, one.event_id, via, self.versions.next(), content)
        self.outbox.send(Topic.SESSION_EVENTS, partition, record)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _expires(self, key: bytes, empty_since: int) -> int:
        """When nothing of it can count any more, ns; of a key that holds nothing, from `empty_since` on."""
        if key[:1] == IDENTITY:
            return self.identities[key].outcome.event_time + self.rules.retention
        state = self.keys[key]
        times = [one.start for one in state.statements.values()]
        times += [outcome.event_time for _, outcome in state.outcomes.values() if outcome is not None]
        return max(times, default=empty_since) + self.rules.retention

    def _arm(self, key: bytes) -> None:
        if key not in self._armed:
            self._armed.add(key)
            heapq.heappush(self._timers, (self._expires(key, self.watermark), key))

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        while self._timers and self._timers[0][0] < watermark:
            due, key = heapq.heappop(self._timers)
            self._armed.discard(key)
            if key not in self.identities and key not in self.keys:
                continue
            if self._expires(key, due - self.rules.retention) >= watermark:
                self._arm(key)
                continue
            if key in self.keys:
                self._expire_waiting(self.keys.pop(key))
            else:
                del self.identities[key]
            self._gone.add(key)
            self._dirty.discard(key)

    def _expire_waiting(self, state: KeyState) -> None:
        for identity, (_, outcome) in state.outcomes.items():
            if outcome is not None and waits(state, identity, outcome, self.rules.max_clock_skew):
                self._dead_letter(
                    outcome, "no_session", "an outcome that no session claimed until its retention was over"
                )

    def _dead_letter(self, outcome: Outcome, why: str, detail: str) -> None:
        self.outbox.count(Result.DEAD_LETTERED, why)
        detail = f"{detail}: {outcome.kind.value} {outcome.source} {outcome.event_id}"
        letter = DeadLetter(why, detail, Topic.CORRELATIONS, self.partition, -1, 0, 0, outcome.tenant)
        self.outbox.send(
            Topic.DEAD_LETTERS, self.partition, Keyed(Topic.CORRELATIONS.encode(), msgspec.json.encode(letter))
        )

    def passes_on(self, watermark: int) -> int:
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Nothing waits: what is sent is decided record by record."""

    def changed(self) -> Changed:
        states: list[tuple[bytes, bytes]] = []
        for key in self._dirty:
            if key in self.identities:
                states.append((key, _encode(self.identities[key])))
            elif key in self.keys:
                states.append((key, _encode(self.keys[key])))
        gone = list(self._gone)
        self._dirty, self._gone = set(), set()
        return Changed(states, gone)

    def waiting_outcomes(self) -> int:
        """Outcomes by key that no session has claimed yet."""
        return sum(
            outcome is not None and waits(state, identity, outcome, self.rules.max_clock_skew)
            for state in self.keys.values()
            if state.name != TRACE_KEY or state.outcomes
            for identity, (_, outcome) in state.outcomes.items()
        )
