"""The sessions of one subject by what they have in common and when they were: who takes whose claim back (RULES.md 42).

The rule this file keeps: a subject that thousands share, such as `anonymous`, must not cost thousands of looks for each
further session: neighbours in time are looked at, and those whose answer cannot change are passed over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import itemgetter

from schemas.contact import Contact

MOST_SHOWN = 8
"""Sessions that one session is said to reopen: that there are any decides, the rest is for people."""

Token = tuple[str, ...]
Place = tuple[int, str, int]
"""When a session started (or since when its claim can be taken back), its conversation, its ordinal."""
Entry = tuple[int, str, int, Contact]

_moment = itemgetter(0)


def takes_back(before: Contact, after: Contact) -> bool:
    """Whether the later of two that share a token, if it starts past `before.after`, takes the claim back."""
    if after.start > before.until:
        return False
    return not before.issues or not after.issues or not set(before.issues).isdisjoint(after.issues)


def tokens(session: Contact) -> Iterable[Token]:
    """What another session must have one of in common with it: the family, and an issue or a business key."""
    yield from ((session.family, "issue", issue) for issue in session.issues)
    yield from ((session.family, "key", *key) for key in session.keys)


class Meeting:
    """All sessions of one subject.

    Args:
        earliest_told: (conversation, first trace) of a session -> the session that was last found to reopen it.
    """

    __slots__ = ("_claims", "_longest", "_starts", "earliest_told")

    def __init__(self) -> None:
        self._starts: dict[Token, list[Entry]] = {}
        self._claims: dict[Token, list[Entry]] = {}
        self._longest = 0
        self.earliest_told: dict[tuple[str, bytes], Place] = {}

    def __bool__(self) -> bool:
        return bool(self._starts)

    def add(self, conversation: str, session: Contact) -> None:
        for token in tokens(session):
            insort(self._starts.setdefault(token, []), (session.start, conversation, session.ordinal, session))
            if session.until:
                insort(self._claims.setdefault(token, []), (session.after, conversation, session.ordinal, session))
                self._longest = max(self._longest, session.until - session.after)

    def remove(self, conversation: str, session: Contact) -> None:
        for token in tokens(session):
            _take_out(self._starts, token, (session.start, conversation, session.ordinal, session))
            if session.until:
                _take_out(self._claims, token, (session.after, conversation, session.ordinal, session))
        self.earliest_told.pop((conversation, session.trace_id), None)

    def earliest(self, conversation: str, session: Contact) -> Place | None:
        """The earliest session elsewhere that takes its claim back."""
        best: Place | None = None
        for token in tokens(session) if session.until else ():
            starts = self._starts.get(token, [])
            for index in range(bisect_right(starts, session.after, key=_moment), len(starts)):
                start, name, ordinal, one = starts[index]
                if start > session.until or (best is not None and (start, name, ordinal) >= best):
                    break
                if name != conversation and takes_back(session, one):
                    best = start, name, ordinal
                    break
        return best

    def latest(self, conversation: str, session: Contact) -> list[Place]:
        """Some sessions elsewhere whose claim it takes back, those whose claims are the latest."""
        found: set[Place] = set()
        for token in tokens(session):
            claims = self._claims.get(token, [])
            n = 0
            for index in range(bisect_left(claims, session.start, key=_moment) - 1, -1, -1):
                after, name, ordinal, one = claims[index]
                if n == MOST_SHOWN or after < session.start - self._longest:
                    break
                if name != conversation and takes_back(one, session):
                    found.add((after, name, ordinal))
                    n += 1
        return sorted(found, reverse=True)[:MOST_SHOWN]

    def touched(self, conversation: str, session: Contact) -> set[str]:
        """The conversations of which something is otherwise with the session than without it."""
        found: set[str] = set()
        mine = session.start, conversation, session.ordinal
        for token in tokens(session):
            claims = self._claims.get(token, [])
            for index in range(bisect_left(claims, session.start, key=_moment) - 1, -1, -1):
                after, name, _, one = claims[index]
                if after < session.start - self._longest:
                    break
                told = self.earliest_told.get((name, one.trace_id))
                if (told is None or mine <= told) and name != conversation and takes_back(one, session):
                    found.add(name)
            starts = self._starts.get(token, []) if session.until else []
            for index in range(bisect_right(starts, session.after, key=_moment), len(starts)):
                start, name, _, one = starts[index]
                if start > session.until:
                    break
                if name != conversation and takes_back(session, one):
                    found.add(name)
        return found


def _take_out(lists: dict[Token, list[Entry]], token: Token, entry: Entry) -> None:
    held = lists.get(token, [])
    index = bisect_left(held, entry[:3], key=itemgetter(0, 1, 2))
    if index < len(held) and held[index][:3] == entry[:3]:
        del held[index]
    if not held:
        lists.pop(token, None)
