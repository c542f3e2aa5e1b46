"""Who came back in another conversation: the sessions of one subject, held against each other (RULES.md 42).

The rule this file keeps: what a conversation is told is a function of the sessions that the others told of last. A
conversation that tells of its sessions is answered at once, also that nobody came back; the others hear what changes.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.core.correlating.meeting import Meeting
from pipeline.core.correlating.state import Kept, Side
from pipeline.core.effects import Outbox, Versions
from pipeline.core.erasing import ERASED
from schemas.contact import Contacts, Link, Returns
from schemas.topics import Topic, partition_of


class SubjectSessions:
    """The sessions of the subjects of one partition, by subject and conversation."""

    def __init__(self, partitions: int, retention: int, outbox: Outbox, versions: Versions) -> None:
        self._partitions, self._outbox, self._versions = partitions, outbox, versions
        self.kept = Kept(b"s", Side, _last, retention)
        self._meetings: dict[tuple[str, str], Meeting] = {}

    def load(self, key: bytes, state: bytes) -> None:
        side = self.kept.load(key, state)
        meeting = self._meeting(side)
        for session in side.sessions:
            meeting.add(side.conversation, session)
        for link in side.reopened:
            if link.conversation != ERASED:
                place = link.at, link.conversation, link.ordinal
                meeting.earliest_told[side.conversation, link.trace_id] = place

    def take(self, record: Contacts, watermark: int, replaying: bool) -> None:
        """A conversation tells of its sessions."""
        key = self.kept.key(record.tenant, record.subject, record.conversation)
        side = self.kept.states.get(key)
        if side is not None and record.stamp < side.stamp:
            return
        if side is None:
            side = Side(record.tenant, record.subject, record.conversation, record.stamp)
        meeting = self._meeting(side)
        known, told = set(side.sessions), set(record.sessions)
        changed = known | told if replaying else known ^ told
        touched = {name for one in changed for name in meeting.touched(side.conversation, one)}
        for session in known - told:
            meeting.remove(side.conversation, session)
        for session in told - known:
            meeting.add(side.conversation, session)
        side.stamp, side.sessions = record.stamp, record.sessions
        self.kept.touch(key, side, watermark)
        self._tell(key, side, watermark, answers=True)
        for name in sorted(touched):
            other = self.kept.key(record.tenant, record.subject, name)
            self._tell(other, self.kept.states[other], watermark, answers=replaying)

    def erase(self, is_erased: Callable[[str, str], bool], watermark: int) -> None:
        """Conversations of these tenants and names are gone; what they said of others stays said, without a name."""
        for key, side in list(self.kept.states.items()):
            if is_erased(side.tenant, side.conversation):
                self._drop(side)
                self.kept.forget(key)
        for key, side in list(self.kept.states.items()):
            before = side.reopened, side.reopens
            reopened, taken_back = (
                tuple(
                    Link(one.trace_id, one.at, ERASED, 0) if is_erased(side.tenant, one.conversation) else one
                    for one in said
                )
                for said in before
            )
            if (reopened, taken_back) != before:
                side.reopened, side.reopens = reopened, taken_back
                self._tell(key, side, watermark, answers=True)

    def expire(self, watermark: int) -> None:
        for key, side in self.kept.due(watermark):
            self._drop(side)
            self.kept.forget(key)

    def _tell(self, key: bytes, side: Side, watermark: int, answers: bool) -> None:
        """Tell a conversation what the others say of its sessions; if nothing changed, only where it `answers`."""
        reopened, taken_back = self._links(side)
        reopened, taken_back = _with_erased(side, reopened, taken_back)
        if not answers and (reopened, taken_back) == (side.reopened, side.reopens):
            return
        side.reopened, side.reopens = reopened, taken_back
        self.kept.touch(key, side, watermark)
        partition = partition_of(self._partitions, side.tenant, side.conversation)
        stamp = self._versions.next()
        record = Returns(side.tenant, side.conversation, side.subject, stamp, side.stamp, reopened, taken_back)
        self._outbox.send(Topic.SESSION_EVENTS, partition, record)

    def _links(self, side: Side) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """(each of its sessions with the earliest elsewhere that reopens it, with the latest that they reopen)."""
        meeting, here = self._meeting(side), side.conversation
        reopened: list[Link] = []
        taken_back: list[Link] = []
        for session in side.sessions:
            place = meeting.earliest(here, session)
            if place is None:
                meeting.earliest_told.pop((here, session.trace_id), None)
            else:
                meeting.earliest_told[here, session.trace_id] = place
                reopened.append(Link(session.trace_id, *place))
            for _, name, ordinal in meeting.latest(here, session):
                taken_back.append(Link(session.trace_id, session.start, name, ordinal))
        return tuple(reopened), tuple(taken_back)

    def _meeting(self, side: Side) -> Meeting:
        return self._meetings.setdefault((side.tenant, side.subject), Meeting())

    def _drop(self, side: Side) -> None:
        meeting = self._meeting(side)
        for session in side.sessions:
            meeting.remove(side.conversation, session)
        if not meeting:
            del self._meetings[side.tenant, side.subject]


def _last(side: Side) -> int | None:
    return max((max(one.start, one.until) for one in side.sessions), default=None)


def _with_erased(
    side: Side, reopened: tuple[Link, ...], taken_back: tuple[Link, ...]
) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """What is said of its sessions, with what those that are erased have said of those that are still there."""
    there = {one.trace_id for one in side.sessions}
    said = {one.trace_id: one for one in reopened}
    for one in side.reopened:
        if one.conversation == ERASED and one.trace_id in there:
            known = said.get(one.trace_id, one)
            said[one.trace_id] = min(one, known, key=lambda link: link.at)
    erased = [one for one in side.reopens if one.conversation == ERASED and one.trace_id in there]
    return tuple(said.values()), tuple(dict.fromkeys((*taken_back, *erased)))
