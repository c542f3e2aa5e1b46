"""Who came back in another conversation: the sessions of one subject, held against each other (RULES.md 42).

The rule this file keeps: what a conversation is told is a function of the sessions that the others told of last. A
conversation that tells of its sessions is answered at once, also that nobody came back; the others hear what changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from pipeline.core.correlating.state import Kept, Side
from pipeline.core.effects import Outbox, Versions
from pipeline.core.erasing import ERASED
from schemas.contact import Contact, Contacts, Link, Returns
from schemas.topics import Topic, partition_of

MOST_SHOWN = 8
"""Sessions that one session is said to reopen: that there are any decides, the rest is for people."""

Token = tuple[str, ...]


def reopens(before: Contact, after: Contact) -> bool:
    """Whether the later session takes the claim of the earlier one back: rule 42 but for subject and conversation."""
    if not before.after < after.start <= before.until or before.family != after.family:
        return False
    issues = set(before.issues).intersection(after.issues)
    if before.issues and after.issues and not issues:
        return False
    return bool(issues) or not set(before.keys).isdisjoint(after.keys)


def tokens(session: Contact) -> Iterable[Token]:
    """What another session must have one of in common with it."""
    yield from ((session.family, "issue", issue) for issue in session.issues)
    yield from ((session.family, "key", *key) for key in session.keys)


def links(own: Iterable[Contact], others: Iterable[Side]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """(each of our sessions with the earliest elsewhere that reopens it, ours with the latest that they reopen)."""
    sessions = list(own)
    elsewhere = [(one, side.conversation) for side in others for one in side.sessions]
    reopened: list[Link] = []
    taken_back: list[Link] = []
    for mine in sessions:
        later = [(one.start, name, one.ordinal) for one, name in elsewhere if mine.until and reopens(mine, one)]
        if later:
            at, name, ordinal = min(later)
            reopened.append(Link(mine.trace_id, at, name, ordinal))
        earlier = [(one.start, name, one.ordinal) for one, name in elsewhere if one.until and reopens(one, mine)]
        taken_back += [
            Link(mine.trace_id, mine.start, name, ordinal)
            for _, name, ordinal in sorted(earlier, reverse=True)[:MOST_SHOWN]
        ]
    return tuple(reopened), tuple(taken_back)


class SubjectSessions:
    """The sessions of the subjects of one partition, by subject and conversation."""

    def __init__(self, partitions: int, retention: int, outbox: Outbox, versions: Versions) -> None:
        self._partitions, self._outbox, self._versions = partitions, outbox, versions
        self.kept = Kept(b"s", Side, _last, retention)
        self._sharing: dict[tuple[str, str, Token], dict[bytes, None]] = {}

    def load(self, key: bytes, state: bytes) -> None:
        self._index(key, self.kept.load(key, state))

    def take(self, record: Contacts, watermark: int, replaying: bool) -> None:
        """A conversation tells of its sessions."""
        key = self.kept.key(record.tenant, record.subject, record.conversation)
        side = self.kept.states.get(key)
        if side is not None and record.stamp < side.stamp:
            return
        touched: set[bytes] = set()
        if side is None:
            side = Side(record.tenant, record.subject, record.conversation, record.stamp)
        else:
            touched = self._near(key, side)
            self._drop(key, side)
        before = msgspec.structs.replace(side)
        side.stamp, side.sessions = record.stamp, record.sessions
        self._index(key, side)
        self.kept.touch(key, side, watermark)
        touched |= self._near(key, side)
        self._tell(key, side, watermark, answers=True)
        for other in sorted(touched):
            there = self.kept.states[other]
            if replaying or links(there.sessions, [before]) != links(there.sessions, [side]):
                self._tell(other, there, watermark, answers=replaying)

    def erase(self, is_erased: Callable[[str, str], bool], watermark: int) -> None:
        """Conversations of these tenants and names are gone; what they said of others stays said, without a name."""
        for key, side in list(self.kept.states.items()):
            if is_erased(side.tenant, side.conversation):
                self._drop(key, side)
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
            self._drop(key, side)
            self.kept.forget(key)

    def _tell(self, key: bytes, side: Side, watermark: int, answers: bool) -> None:
        """Tell a conversation what the others say of its sessions; if nothing changed, only where it `answers`."""
        reopened, taken_back = links(side.sessions, [self.kept.states[other] for other in self._near(key, side)])
        reopened, taken_back = _with_erased(side, reopened, taken_back)
        if not answers and (reopened, taken_back) == (side.reopened, side.reopens):
            return
        side.reopened, side.reopens = reopened, taken_back
        self.kept.touch(key, side, watermark)
        partition = partition_of(self._partitions, side.tenant, side.conversation)
        stamp = self._versions.next()
        record = Returns(side.tenant, side.conversation, side.subject, stamp, side.stamp, reopened, taken_back)
        self._outbox.send(Topic.SESSION_EVENTS, partition, record)

    def _tokens(self, side: Side) -> Iterable[tuple[str, str, Token]]:
        return ((side.tenant, side.subject, token) for session in side.sessions for token in tokens(session))

    def _index(self, key: bytes, side: Side) -> None:
        for token in self._tokens(side):
            self._sharing.setdefault(token, {})[key] = None

    def _drop(self, key: bytes, side: Side) -> None:
        for token in self._tokens(side):
            sharing = self._sharing.get(token, {})
            sharing.pop(key, None)
            if not sharing:
                self._sharing.pop(token, None)

    def _near(self, key: bytes, side: Side) -> set[bytes]:
        """The conversations that have something in common with this one."""
        found = {other for token in self._tokens(side) for other in self._sharing.get(token, ())}
        return found - {key}


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
