"""Erasure in stage 3: outcomes of a conversation that is erased, what its traces stated, and what came back from it.

The rule this file keeps: an outcome goes with the last conversation that has it, and no other conversation gains or
loses one. So a trace that is erased goes on stating its key, without a name, for as long as another states it, too:
what belonged to the erased one belongs to nobody else. A key that nobody else states goes, with its outcomes.
"""

from __future__ import annotations

import msgspec

from pipeline.core.correlating.identities import Identities
from pipeline.core.correlating.keys import Keys, targets
from pipeline.core.correlating.returns import SubjectSessions
from pipeline.core.correlating.state import Identity, KeyState, Statement, addresses
from pipeline.core.effects import Outbox
from pipeline.core.erasing import (
    CONVERSATION,
    ERASED,
    IDENTITY,
    KEY,
    Tombstone,
    Tombstones,
    bury,
    conversation_digest,
    digest_of,
    receipt,
)
from pipeline.core.timeline import TimeRules
from schemas.contact import Contacts, Reached
from schemas.erasing import Forgotten, Unaddressed
from schemas.outcome import TRACE_KEY, Addressed, OutcomeArrival, OutcomeKind
from schemas.span import Stated
from schemas.topics import Stage, Topic, partition_of

Refusable = OutcomeArrival | Stated | Addressed | Contacts | Reached


class OutcomeEraser:
    """Erases from what one partition keeps of outcomes, keys and subjects, and remembers what."""

    def __init__(
        self,
        partition: int,
        partitions: int,
        rules: TimeRules,
        outbox: Outbox,
        outcomes: Identities,
        keys: Keys,
        subjects: SubjectSessions,
    ) -> None:
        self.tombstones = Tombstones()
        self._partition, self._partitions, self._rules, self._outbox = partition, partitions, rules, outbox
        self._outcomes, self._keys, self._subjects = outcomes, keys, subjects
        self._orders: list[Forgotten] = []

    # -- what comes later ----------------------------------------------------------------------------------------------

    def refuses(self, record: Refusable, watermark: int) -> bool:
        """Whether it is of something erased; then it is dealt with."""
        if isinstance(record, Stated) and record.erased:
            self._unstate(record, record.erased, watermark)
            return True
        if not self.tombstones:
            return False
        if isinstance(record, OutcomeArrival):
            return self._refuses_outcome(record)
        if isinstance(record, Addressed):
            return self._refuses_address(record)
        held = self.tombstones.find(CONVERSATION, record.tenant, record.conversation) if record.conversation else None
        if held is not None and isinstance(record, Stated):
            self._unstate(record, held.until, watermark)
        return held is not None

    def _refuses_outcome(self, record: OutcomeArrival) -> bool:
        one = record.outcome
        erased = self.tombstones.find(IDENTITY, one.tenant, one.source, one.event_id) is not None or (
            one.session_id and self.tombstones.find(CONVERSATION, one.tenant, one.session_id) is not None
        )
        if erased:
            bury(self._outbox, self._partition, Topic.CORRELATIONS, one.tenant, "an outcome")
        return bool(erased)

    def _refuses_address(self, record: Addressed) -> bool:
        held = self.tombstones.find(KEY, record.tenant, record.name, record.value)
        if held is None or self._keys.kept.key(record.tenant, record.name, record.value) in self._keys.kept.states:
            return False  # another trace states the key again
        if record.outcome is not None:
            bury(self._outbox, self._partition, Topic.CORRELATIONS, record.tenant, "an outcome")
            self._unaddress(record.tenant, record.name, record.value, f"{record.source}\0{record.event_id}", held.until)
        return True

    def after(self, record: Addressed) -> None:
        """An outcome was taken that belongs to a trace that is erased, though others state the key, too."""
        state = self._keys.kept.states.get(self._keys.kept.key(record.tenant, record.name, record.value))
        identity = f"{record.source}\0{record.event_id}"
        one = state.outcomes.get(identity) if state is not None else None
        if state is not None and one is not None and one.sent == {ERASED}:
            bury(self._outbox, self._partition, Topic.CORRELATIONS, record.tenant, "an outcome")
            self._lose(state, identity, max(one.start for one in state.statements.values()) + self._rules.retention)

    # -- the order -----------------------------------------------------------------------------------------------------

    def order(self, order: Forgotten) -> None:
        """Refuse what comes from now on; `forget` erases what is there."""
        self.tombstones.add(order.digest, Tombstone(order.until))
        self._orders.append(order)

    def forget(self, watermark: int) -> None:
        """All that the orders since the last call are about, in one look at the whole state."""
        if not self._orders:
            return
        wanted = {one.digest: one for one in self._orders}
        self._orders = []
        names = _Names(wanted)
        outcomes = dict.fromkeys(wanted, 0)
        stated = dict.fromkeys(wanted, 0)
        for key, known in list(self._outcomes.kept.states.items()):
            if (order := self._strip(key, known, names, watermark)) is not None:
                outcomes[order.digest] += 1
        for key, state in list(self._keys.kept.states.items()):
            hit = None
            for trace_id, one in state.statements.items():
                if (found := names.order(state.tenant, one.conversation)) is not None:
                    hit = found
                    state.statements[trace_id] = Statement(one.stamp, one.start, ERASED)
            if hit is not None:
                stated[hit.digest] += 1
                self._settle(key, state, hit.until, watermark)
        self._subjects.erase(lambda tenant, name: names.order(tenant, name) is not None, watermark)
        for digest, order in wanted.items():
            for what, n in (("outcomes", outcomes[digest]), ("keys", stated[digest])):
                row = receipt(order.order, Stage.CORRELATE, self._partition, order.alias, what, n)
                self._outbox.send(Topic.ROWS, self._partition, row)

    def _strip(self, key: bytes, known: Identity, names: _Names, watermark: int) -> Forgotten | None:
        """Take the conversation out of an outcome; the order, if that was all that it was addressed to."""
        outcome = known.outcome
        hit = names.order(known.tenant, outcome.session_id) or names.order(known.tenant, known.conversation)
        reached = [one for one in known.reached if names.order(known.tenant, one) is not None]
        for conversation in reached:
            del known.reached[conversation]
        if names.order(known.tenant, known.conversation) is not None:
            known.conversation = ""
        addressed = outcome.session_id if outcome.kind is not OutcomeKind.RETRACT else ""
        if hit is not None and (names.order(known.tenant, addressed) is not None or not _has_address(known)):
            self._erase_outcome(key, known, hit.until)
            return hit
        if names.order(known.tenant, outcome.session_id) is not None:  # a retraction may name what never had it
            known.outcome = msgspec.structs.replace(outcome, session_id="")
        if hit is not None or reached:
            self._outcomes.kept.touch(key, known, watermark)
        return None

    def unaddress(self, record: Unaddressed, watermark: int) -> None:
        """A key that the outcome was addressed to is erased; with the last one it goes itself."""
        key = self._outcomes.kept.key(record.tenant, record.source, record.event_id)
        known = self._outcomes.kept.states.get(key)
        if known is None:
            return
        via = record.name, record.value
        known.keys = [one for one in known.keys if one != via]
        keys = tuple(one for one in known.outcome.keys if one != via)
        trace_id = b"" if via == (TRACE_KEY, known.outcome.trace_id.hex()) else known.outcome.trace_id
        known.outcome = msgspec.structs.replace(known.outcome, keys=keys, trace_id=trace_id)
        if _has_address(known):
            self._outcomes.kept.touch(key, known, watermark)
        else:
            self._erase_outcome(key, known, record.until)

    def _erase_outcome(self, key: bytes, known: Identity, until: int) -> None:
        one = known.outcome
        self.tombstones.add(digest_of(IDENTITY, one.tenant, one.source, one.event_id), Tombstone(until))
        self._outcomes.forget(key)

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _unstate(self, record: Stated, until: int, watermark: int) -> None:
        key = self._keys.kept.key(record.tenant, record.name, record.value)
        state = self._keys.kept.states.get(key)
        if state is None:
            self.tombstones.add(digest_of(KEY, record.tenant, record.name, record.value), Tombstone(until))
            return
        known = state.statements.get(record.trace_id)
        if known is None or record.stamp >= known.stamp:
            state.statements[record.trace_id] = Statement(record.stamp, record.start, ERASED)
            if known is not None and self.tombstones.find(CONVERSATION, record.tenant, known.conversation) is None:
                self._keys.withdraw(state, known.conversation)  # sent there when it was not known yet where it leads
            self._settle(key, state, until, watermark)

    def _settle(self, key: bytes, state: KeyState, until: int, watermark: int) -> None:
        """Some of what stated the key is erased: what it still leads elsewhere, and what it does not."""
        if not any(one.conversation not in ("", ERASED) for one in state.statements.values()):
            for identity in state.outcomes:
                self._unaddress(state.tenant, state.name, state.value, identity, until)
            self.tombstones.add(digest_of(KEY, state.tenant, state.name, state.value), Tombstone(until))
            self._keys.forget(key)
            return
        for identity, one in list(state.outcomes.items()):
            now = targets(state, one.outcome, self._rules.max_clock_skew)[0] if one.outcome is not None else set()
            if now == {ERASED}:
                self._lose(state, identity, until)
            else:
                one.sent = now
        self._keys.changed(key, state, watermark)

    def _lose(self, state: KeyState, identity: str, until: int) -> None:
        del state.outcomes[identity]
        self._unaddress(state.tenant, state.name, state.value, identity, until)

    def _unaddress(self, tenant: str, name: str, value: str, identity: str, until: int) -> None:
        source, _, event_id = identity.partition("\0")
        record = Unaddressed(tenant, source, event_id, name, value, until)
        self._outbox.send(Topic.CORRELATIONS, partition_of(self._partitions, tenant, source, event_id), record)


def _has_address(known: Identity) -> bool:
    """Whether anybody else may have it; a retraction has no address but those that it was sent to before."""
    outcome = known.outcome
    if outcome.kind is OutcomeKind.RETRACT:
        return bool(known.keys or known.conversation)
    return bool(addresses(outcome) or outcome.session_id)


class _Names:
    """Orders by the conversations that they are about; each name is digested once."""

    def __init__(self, wanted: dict[bytes, Forgotten]) -> None:
        self._wanted = wanted
        self._tenants = {one.tenant for one in wanted.values()}
        self._known: dict[tuple[str, str], Forgotten | None] = {}

    def order(self, tenant: str, conversation: str) -> Forgotten | None:
        if not conversation or tenant not in self._tenants:
            return None
        name = tenant, conversation
        if name not in self._known:
            self._known[name] = self._wanted.get(conversation_digest(*name))
        return self._known[name]
