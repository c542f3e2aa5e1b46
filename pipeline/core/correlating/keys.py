"""Business keys: the traces that state one, the outcomes addressed to it, and where it leads them (RULES.md 36).

The rule this file keeps: what an outcome reaches by a key is a function of the traces that state the key, whichever
came first. A key that thousands of traces state must not cost thousands of looks for each further one: what a further
trace can change is looked at alone.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable

from pipeline.core.correlating.identities import attach
from pipeline.core.correlating.packed import KeptKeys
from pipeline.core.correlating.state import AddressedOutcome, Key, KeyState, Statement
from pipeline.core.effects import Outbox, Result, Versions
from pipeline.core.erasing import ERASED
from pipeline.core.timeline import TimeRules
from schemas.contact import Reached
from schemas.outcome import TRACE_KEY, Addressed, Outcome, OutcomeKind
from schemas.span import Stated
from schemas.topics import Topic, partition_of

MOST_TRACES = 200
"""Source: RULES.md 36: a key that more traces state, begun by then, is too broad."""


def targets(state: KeyState, outcome: Outcome, max_clock_skew: int) -> tuple[set[str], bool]:
    """(conversations that an outcome by this key goes to, whether the key is too broad for it).

    Evidence goes to every conversation that holds a trace stating the key; stage 4 chooses the sessions. Other kinds go
    to that of the latest trace that states it and had begun, or, where none had, of the earliest (rule 36).
    """
    live = [(one.start, trace_id, one.conversation) for trace_id, one in state.statements.items() if one.conversation]
    if state.name == TRACE_KEY:
        return {conversation for _, _, conversation in live}, False
    begun_by = outcome.event_time + max_clock_skew
    begun = [one for one in live if one[0] <= begun_by]
    if len(begun) > MOST_TRACES:
        return set(), True
    if outcome.kind is OutcomeKind.EVIDENCE:
        return {conversation for _, _, conversation in live}, False
    chosen: Iterable[tuple[int, bytes, str]] = [max(begun)] if begun else sorted(live)[:1]
    return {conversation for _, _, conversation in chosen}, False


class _Index:
    """Of one key: the starts of its traces in order, and the outcomes that it is not too broad for."""

    __slots__ = ("narrow", "starts")

    def __init__(self, state: KeyState) -> None:
        self.starts = sorted(one.start for one in state.statements.values() if one.conversation)
        self.narrow = {identity for identity, one in state.outcomes.items() if one.outcome and not one.too_broad}


class Keys:
    """The correlation keys of one partition."""

    def __init__(self, partitions: int, rules: TimeRules, outbox: Outbox, versions: Versions) -> None:
        self._partitions, self._rules, self._outbox, self._versions = partitions, rules, outbox, versions
        self.kept = KeptKeys(b"k", _last, rules.retention)
        self._indices: dict[bytes, _Index] = {}

    def state_it(self, record: Stated, watermark: int, replaying: bool) -> None:
        """A trace states the key, elsewhere or no longer."""
        key, state = self._get(record.tenant, record.name, record.value)
        known = state.statements.get(record.trace_id)
        if known is not None and record.stamp < known.stamp:
            return
        state.statements[record.trace_id] = Statement(record.stamp, record.start, record.conversation)
        self.kept.touch(key, state, watermark)
        if not state.outcomes:
            self._indices.pop(key, None)
        elif (known is None or not known.conversation) and record.conversation:
            self._add(key, state, record)
        elif known is None or replaying or (known.start, known.conversation) != (record.start, record.conversation):
            self._indices.pop(key, None)
            for identity, one in state.outcomes.items():
                if one.outcome is not None:
                    self._retarget(state, identity, one.outcome, again=replaying)

    def _add(self, key: bytes, state: KeyState, record: Stated) -> None:
        """One more trace states the key: a key that was too broad for an outcome stays so."""
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = _Index(state)
        else:
            insort(index.starts, record.start)
        skew = self._rules.max_clock_skew
        for identity in sorted(index.narrow):
            one = state.outcomes[identity]
            outcome = one.outcome
            assert outcome is not None
            had_begun = record.start <= outcome.event_time + skew
            if state.name == TRACE_KEY or (outcome.kind is OutcomeKind.EVIDENCE and not had_begun):
                if record.conversation not in one.sent:
                    one.sent.add(record.conversation)
                    self._attach(state, record.conversation, outcome, outcome)
            elif had_begun or not bisect_right(index.starts, outcome.event_time + skew):
                self._retarget(state, identity, outcome, again=False)
                if one.too_broad:
                    index.narrow.discard(identity)

    def take(self, record: Addressed, watermark: int) -> None:
        """An outcome is addressed to the key, in this version, or no longer."""
        key, state = self._get(record.tenant, record.name, record.value)
        identity = f"{record.source}\0{record.event_id}"
        known = state.outcomes.get(identity)
        if known is not None and record.stamp < known.stamp:
            return
        before = known.outcome if known is not None else None
        one = state.outcomes[identity] = AddressedOutcome(
            record.stamp, record.outcome, known.sent if known else set(), bool(known and known.too_broad)
        )
        self._indices.pop(key, None)
        if record.outcome is not None:
            self._retarget(state, identity, record.outcome, again=True)
            if not one.sent:
                self._leads_nowhere(record)
        elif before is not None:
            for conversation in sorted(one.sent):
                self._attach(state, conversation, before, None)
            one.sent, one.too_broad = set(), False
        self.kept.touch(key, state, watermark)

    def expire(self, watermark: int) -> None:
        for key, _ in self.kept.due(watermark):
            self.forget(key)

    def forget(self, key: bytes) -> None:
        self.kept.forget(key)
        self._indices.pop(key, None)

    def withdraw(self, state: KeyState, conversation: str) -> None:
        """A trace of it that stated the key is erased: what went there by that trace alone is there no longer."""
        for one in state.outcomes.values():
            outcome = one.outcome
            if outcome is None or conversation not in one.sent:
                continue
            if conversation not in targets(state, outcome, self._rules.max_clock_skew)[0]:
                self._attach(state, conversation, outcome, None)
                one.sent = one.sent - {conversation}

    def changed(self, key: bytes, state: KeyState, watermark: int) -> None:
        """Some of what states it, or is addressed to it, was erased."""
        self._indices.pop(key, None)
        self.kept.touch(key, state, watermark)

    def _get(self, tenant: str, name: str, value: str) -> tuple[bytes, KeyState]:
        key = self.kept.key(tenant, name, value)
        return key, self.kept.states.get(key) or KeyState(tenant, name, value, {}, {})

    def _retarget(self, state: KeyState, identity: str, outcome: Outcome, again: bool) -> None:
        """Send an outcome to the conversations its key leads to now.

        Args:
            again: also to those that have it (its content changed, or a dead worker may have sent something else).
        """
        one = state.outcomes[identity]
        now, too_broad = targets(state, outcome, self._rules.max_clock_skew)
        if too_broad and not one.too_broad:
            self._outbox.count(Result.NOTED, "too_broad")
        for conversation in sorted(now):
            if again or conversation not in one.sent:
                self._attach(state, conversation, outcome, outcome)
        for conversation in sorted(one.sent - now):
            self._attach(state, conversation, outcome, None)
        one.sent, one.too_broad = now, too_broad

    def _attach(self, state: KeyState, conversation: str, outcome: Outcome, content: Outcome | None) -> None:
        if conversation == ERASED:
            return
        via: Key = (state.name, state.value)
        attach(self._outbox, self._partitions, self._versions, conversation, outcome, via, content)

    def _leads_nowhere(self, record: Addressed) -> None:
        stamp = self._versions.next()
        answer = Reached(record.tenant, record.source, record.event_id, "", stamp, False)
        partition = partition_of(self._partitions, record.tenant, record.source, record.event_id)
        self._outbox.send(Topic.CORRELATIONS, partition, answer)


def _last(state: KeyState) -> int | None:
    times = [one.start for one in state.statements.values()]
    times += [one.outcome.event_time for one in state.outcomes.values() if one.outcome is not None]
    return max(times, default=None)
