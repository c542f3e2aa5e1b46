"""The conversations of a partition: those in which something may happen as objects, those at rest as bytes.

```
session settles --> packed, its spans are gone (`packed.py`) --> all of them packed: the conversation rests on a shelf
an outcome, a span, an answer for it --> it wakes, as it was --> judged --> it rests again --> retention over: it leaves
```
The rule this file keeps: to whoever asks, a conversation at rest is the same as if it had never rested (RULES.md 48).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.fold import Contribution
from pipeline.core.judging.packed import (
    pack_count,
    unpack_count,
)
from pipeline.core.judging.publish import published
from pipeline.core.judging.settled import Settled
from pipeline.core.judging.state import Conversation, sealed
from pipeline.core.judging.views import TraceView
from pipeline.core.packing import Words, pack_id, unpack_id
from pipeline.core.shelf import length, read_length
from pipeline.core.tiers import Tiers
from pipeline.core.timeline import HOUR, SECOND, TimeRules
from schemas.verdict import Verdict

CONVERSATION = b"c"
RESTING, PLAIN = b"\x01", b"\x02"
"""Before the state of a conversation at rest; the hour in which it leaves follows, in four bytes. A plain one has
nothing but one session, and began when that did."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Conversation).decode


class Kept(Tiers[Conversation]):
    """The conversations, by the key of their state.

    Args:
        judge: gives the verdicts of a conversation as it is now.
    """

    def __init__(
        self,
        book: ContractBook,
        rules: TimeRules,
        guard: SettledGuard,
        judge: Callable[[bytes, Conversation], Sequence[Verdict]],
    ) -> None:
        super().__init__((RESTING, PLAIN))
        self._rules, self._judge = rules, judge
        self.words = Words()
        self.settled = Settled(book, guard, self.words)
        self._restless: set[bytes] = set()

    # -- as a map ------------------------------------------------------------------------------------------------------

    def __setitem__(self, key: bytes, conversation: Conversation) -> None:
        self.awake[key] = conversation

    def pop(self, key: bytes, default: Conversation | None = None) -> Conversation | None:
        """Take it out, awake."""
        conversation = self.get(key, default)
        self._drop(key)
        return conversation

    def look(self) -> Iterator[Conversation]:
        """All of them, without waking any: of one at rest there is no `published`."""
        yield from self.awake.values()
        for key, state in self.resting.items():
            yield _read(key, state)

    def settle(
        self,
        key: bytes,
        conversation: Conversation,
        sessions: Sequence[Session],
        verdicts: Sequence[Verdict],
        views: Sequence[TraceView],
        watermark: int,
    ) -> int:
        """Pack what has settled. Returns: how many spans of it are in no session."""
        self._restless.add(key)
        return self.settled.settle(key, conversation, sessions, verdicts, views, watermark)

    def leaves_at(self, key: bytes, conversation: Conversation, views: Sequence[TraceView] = ()) -> int:
        """When its retention is over; 0 where nothing says."""
        ends = [view.end for view in views] + [session.end for session in self.settled.sessions(key)]
        ends += [one.event_time for held in conversation.outcomes.values() if (one := held.newest()) is not None]
        return max([conversation.leaves, *(end + self._rules.retention + self._rules.bucket for end in ends)])

    # -- resting -------------------------------------------------------------------------------------------------------

    def rest(self, but: Container[bytes]) -> None:
        """Lay on the shelf what woke or settled and has nothing under way.

        Args:
            but: those that are to be judged.
        """
        for key in self._restless:
            conversation = self.awake.get(key)
            if conversation is not None and key not in but and _may_rest(conversation):
                self._shelve(key, conversation)
        self._restless = set()

    def may_rest(self, key: bytes) -> None:
        """A question that kept it from resting may have been answered."""
        self._restless.add(key)

    def _shelve(self, key: bytes, conversation: Conversation) -> None:
        leaves = -(-self.leaves_at(key, conversation) // HOUR)
        stripped = self._stripped(conversation, tenant="", name="", due=0, leaves=0)
        hour = leaves.to_bytes(4, "big")
        bare = Conversation("", "", packed=stripped.packed[:1], counted=stripped.counted[:1], began=stripped.began)
        if stripped == bare and stripped.began == self._first_start(key):
            (counted,), (packed,) = stripped.counted, stripped.packed
            self.resting.put(key, PLAIN + hour + length(len(counted)) + counted + packed)
        else:
            self.resting.put(key, RESTING + hour + _encode(stripped))
        self._drop(key)

    def _first_start(self, key: bytes) -> int:
        """Of its first packed session, in whole seconds; 0 where there is none."""
        sessions = self.settled.sessions(key)
        return sessions[0].start // SECOND * SECOND if sessions else 0

    def state(self, key: bytes) -> bytes | None:
        """For a checkpoint; None if it is gone."""
        conversation = self.awake.get(key)
        if conversation is None:
            return self.resting.get(key)
        return _encode(self._stripped(conversation) if conversation.packed else conversation)

    def _stripped(self, conversation: Conversation, **changes: str | int) -> Conversation:
        """Without what can be had again from the packed sessions."""
        n = len(conversation.packed)
        counted = [pack_count(one.revision, one.contribution, self.words) for one in conversation.published[:n]]
        rest = conversation.published[n:]
        return msgspec.structs.replace(conversation, published=rest, counted=counted, **changes)

    def _wake(self, key: bytes) -> Conversation | None:
        state = self.resting.pop(key)
        if state is None:
            return None
        conversation = self.awake[key] = _read(key, state)
        self._restless.add(key)
        self._complete(key, conversation)
        return conversation

    def _complete(self, key: bytes, conversation: Conversation) -> None:
        """Unpack its sessions, and bring back what was published of them."""
        self.settled.unpack(key, conversation)
        conversation.began = conversation.began or self._first_start(key)
        verdicts = self._judge(key, conversation)
        before = [
            sealed(unpack_count(counted, self.words)[0])
            if index < conversation.sealed
            else published(verdict, *unpack_count(counted, self.words))
            for index, (verdict, counted) in enumerate(zip(verdicts, conversation.counted, strict=False))
        ]
        conversation.published[:0] = before
        conversation.counted = []

    # -- restoring and leaving -----------------------------------------------------------------------------------------

    def load(self, key: bytes, state: bytes) -> Conversation | None:
        """Returns: the conversation, if it is awake."""
        if self.lay(key, state):
            return None
        conversation = self.awake[key] = _decode(state)
        return conversation

    def restored(self, watermark: int) -> Iterator[Contribution]:
        """When all is loaded: what the packed sessions count."""
        self._swept_at = watermark // HOUR
        for conversation in self.look():
            yield from self._counted(conversation)
        for key, conversation in self.awake.items():
            if conversation.packed:
                self._complete(key, conversation)

    def overdue(self, key: bytes, watermark: int) -> bool:
        """Whether it rests, and its retention is over."""
        state = self.resting.get(key)
        return state is not None and _hour(state) * HOUR <= watermark

    def due(self, watermark: int) -> list[bytes]:
        """Those at rest whose retention is over, as far as it was their turn to be looked at."""
        return [key for key, state in self.turn(watermark) if _hour(state) <= watermark // HOUR]

    def leave(self, key: bytes) -> list[Contribution]:
        """Forget one. Returns: what its sessions count."""
        conversation = self.awake.get(key)
        if conversation is None:
            state = self.resting.pop(key)
            return list(self._counted(_read(key, state))) if state is not None else []
        self._drop(key)
        return [one.contribution for one in conversation.published if one.contribution is not None]

    def _counted(self, conversation: Conversation) -> Iterator[Contribution]:
        for data in conversation.counted:
            _, one = unpack_count(data, self.words)
            if one is not None:
                yield one

    def _drop(self, key: bytes) -> None:
        self.awake.pop(key, None)
        self.settled.forget(key)


def key_of(tenant: str, conversation: str) -> bytes:
    """Of the state of a conversation."""
    return CONVERSATION + tenant.encode() + b"\0" + pack_id(conversation)


def read_key(key: bytes) -> tuple[str, str]:
    """Tenant and conversation."""
    tenant, _, name = key[1:].partition(b"\0")
    return tenant.decode(), unpack_id(name)


def _read(key: bytes, state: bytes) -> Conversation:
    """A conversation at rest, named after its key."""
    if state[:1] == PLAIN:
        size, at = read_length(state, 5)
        conversation = Conversation("", "", packed=[state[at + size :]], counted=[state[at : at + size]])
    else:
        conversation = _decode(memoryview(state)[5:])
    conversation.tenant, conversation.name = read_key(key)
    conversation.leaves = _hour(state) * HOUR
    return conversation


def _hour(state: bytes) -> int:
    return int.from_bytes(state[1:5], "big")


def _may_rest(conversation: Conversation) -> bool:
    asks = any(one.answered < one.stamp for one in conversation.subjects.values())
    return bool(conversation.packed or conversation.idle) and not (conversation.traces or conversation.causes or asks)
