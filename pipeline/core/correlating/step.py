"""Stage 3 for one partition: everything that moves an outcome identity, a key, or what is known of a subject.

```
outcome --> its identity: newest version? --> to its conversation, or to each of its keys (elsewhere in this stage)
                                         --> withdrawn from where it was before and no longer is
key: a trace states it, or an outcome is addressed to it --> to the conversations it leads to now; withdrawn from others
a conversation says whether an outcome reaches a session of it --> its identity, which waits until one does
a conversation tells of its sessions --> their subject: who came back elsewhere --> to it, and to the others
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.core.correlating.erase import OutcomeEraser
from pipeline.core.correlating.identities import Identities
from pipeline.core.correlating.keys import Keys
from pipeline.core.correlating.returns import SubjectSessions
from pipeline.core.correlating.state import Identity, KeyState
from pipeline.core.effects import Changed, Outbox, Versions
from pipeline.core.packing import WORD
from pipeline.core.timeline import TimeRules
from schemas.contact import Contacts, Reached
from schemas.erasing import Forgotten, Unaddressed
from schemas.outcome import Addressed, OutcomeArrival
from schemas.span import Stated


class CorrelateStep:
    """One partition of stage 3."""

    def __init__(self, partition: int, partitions: int, rules: TimeRules) -> None:
        self.partition, self.partitions, self.rules = partition, partitions, rules
        self.outbox, self.versions = Outbox(), Versions()
        self.watermark = 0
        self._outcomes = Identities(partition, partitions, rules, self.outbox, self.versions)
        self._keys = Keys(partitions, rules, self.outbox, self.versions)
        self._subjects = SubjectSessions(partitions, rules.retention, self.outbox, self.versions)
        self._eraser = OutcomeEraser(
            partition, partitions, rules, self.outbox, self._outcomes, self._keys, self._subjects
        )
        self._replaying = False

    @property
    def identities(self) -> Mapping[bytes, Identity]:
        return self._outcomes.kept.states

    @property
    def keys(self) -> Mapping[bytes, KeyState]:
        return self._keys.kept.states

    # -- restoring -----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> None:
        if self._eraser.tombstones.load(key, state):
            return
        if key[:1] == WORD:
            self._keys.kept.packed.words.load(key, state)
        elif key[:1] == self._outcomes.kept.prefix:
            self._outcomes.load(key, state)
        elif key[:1] == self._keys.kept.prefix:
            self._keys.kept.take_over(key, state)
        else:
            self._subjects.load(key, state)

    def opened(self, watermark: int) -> None:
        self.watermark = watermark
        self._replaying = True

    def caught_up(self) -> None:
        self._replaying = False

    # -- input ---------------------------------------------------------------------------------------------------------

    def apply(
        self, records: Sequence[OutcomeArrival | Stated | Addressed | Contacts | Reached | Forgotten | Unaddressed]
    ) -> None:
        for record in records:
            if isinstance(record, Forgotten):
                self._eraser.order(record)
            elif isinstance(record, Unaddressed):
                self._eraser.unaddress(record, self.watermark)
            elif self._eraser.refuses(record, self.watermark):
                continue
            elif isinstance(record, Stated):
                self._keys.state_it(record, self.watermark, self._replaying)
            elif isinstance(record, Contacts):
                self._subjects.take(record, self.watermark, self._replaying)
            elif isinstance(record, Reached):
                self._outcomes.hear(record, self.watermark)
            elif isinstance(record, Addressed):
                self._keys.take(record, self.watermark)
                self._eraser.after(record)
            else:
                outcome = msgspec.structs.replace(record.outcome, heard_at=record.record_time)
                self._outcomes.take(outcome, self.watermark, self._replaying)
        self._eraser.forget(self.watermark)

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self._eraser.tombstones.expire(watermark)
        self._outcomes.expire(watermark)
        self._keys.expire(watermark)
        self._subjects.expire(watermark)

    def passes_on(self, watermark: int) -> int:
        return watermark

    # -- output --------------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Nothing waits: what is sent is decided record by record."""

    def changed(self) -> Changed:
        states: list[tuple[bytes, bytes]] = []
        gone: list[bytes] = []
        for kept in (self._outcomes.kept, self._keys.kept, self._subjects.kept):
            changed, forgotten = kept.changed()
            states += changed
            gone += forgotten
        return self._eraser.tombstones.with_changes(states, gone)

    # -- for gauges ----------------------------------------------------------------------------------------------------

    def waiting_outcomes(self) -> int:
        """Outcomes that no session has yet."""
        return self._outcomes.waiting

    def known_subjects(self) -> int:
        """Conversations of known subjects that are kept."""
        return len(self._subjects.kept.states)
