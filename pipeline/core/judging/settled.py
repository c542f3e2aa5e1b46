"""What has settled of the conversations that are awake: packed sessions, and marks by which spans are known again.

The rule this file keeps: what has settled stays as it is; a span that would join it is refused, one that it knows is a
duplicate (RULES.md 48).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import msgspec

from pipeline.core.contracts.book import ContractBook
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.boundaries import Session
from pipeline.core.judging.packed import Unpacked, mark_of, pack_marks, pack_session, unpack_marks, unpack_session
from pipeline.core.judging.state import Conversation, FreshSpan
from pipeline.core.judging.views import TraceView
from pipeline.core.packing import Words
from schemas.span import TraceSpans
from schemas.verdict import Status, Verdict


class Known(NamedTuple):
    """What of a record settled sessions know already.

    Args:
        record: what is left of it; None if nothing is.
        repeated: spans that are known. refused: spans that would join a packed session.
    """

    record: TraceSpans | None
    repeated: int
    refused: list[FreshSpan]


class Settled:
    """By the key of their state."""

    def __init__(self, book: ContractBook, guard: SettledGuard, words: Words) -> None:
        self._book, self._guard, self._words = book, guard, words
        self._unpacked: dict[bytes, list[Unpacked]] = {}
        self._idle: dict[bytes, frozenset[bytes]] = {}

    def unpack(self, key: bytes, conversation: Conversation) -> None:
        """It is awake from now on."""
        self._unpacked[key] = [unpack_session(one, self._words, self._book) for one in conversation.packed]

    def forget(self, key: bytes) -> None:
        """It is not awake any more."""
        self._unpacked.pop(key, None)
        self._idle.pop(key, None)

    def sessions(self, key: bytes) -> list[Session]:
        """The settled sessions of a conversation, first to last."""
        return [one.session for one in self._unpacked.get(key, ())]

    def known(self, key: bytes, conversation: Conversation, record: TraceSpans, watermark: int) -> Known:
        """Compare a record with what has settled."""
        unpacked = self._unpacked.get(key, [])
        if not unpacked and not conversation.idle:
            return Known(record, 0, [])
        home = next((one for one in unpacked if record.trace_id in _trace_ids(one)), None)
        marks = home.marks if home is not None else self._idle_marks(key, conversation)
        new = [one for one in record.spans if mark_of(record.trace_id, one[0]) not in marks]
        repeated = len(record.spans) - len(new)
        if home is not None:
            return Known(None, repeated, [FreshSpan(record.trace_id, one[0], None, watermark) for one in new])
        left = record if len(new) == len(record.spans) else msgspec.structs.replace(record, spans=new)
        return Known(left if new else None, repeated, [])

    def holds_trace(self, key: bytes, trace_id: bytes) -> bool:
        """Whether a packed session does."""
        return any(trace_id in _trace_ids(one) for one in self._unpacked.get(key, ()))

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
        for session, verdict in list(zip(sessions, verdicts, strict=True))[len(conversation.packed) :]:
            if not (self._guard.is_settled(session.end, watermark) and _is_decided(verdict)):
                break
            ids = [trace.trace_id for trace in session.traces]
            marks = [mark_of(one, span_id) for one in ids for span_id in conversation.traces[one].spans]
            conversation.packed.append(pack_session(session, marks, self._words))
            packed = Session([], session.turns, session.family, session.claim, session.summary)
            self._unpacked.setdefault(key, []).append(Unpacked(packed, frozenset(marks)))
            for one in ids:
                del conversation.traces[one]
        working = {trace.trace_id for session in sessions for trace in session.traces}
        idle = [view for view in views if view.trace_id not in working and self._guard.is_settled(view.end, watermark)]
        count = 0
        if idle:
            marks = [
                mark_of(one.trace_id, span_id) for one in idle for span_id in conversation.traces[one.trace_id].spans
            ]
            conversation.idle = pack_marks(self._idle_marks(key, conversation).union(marks))
            self._idle.pop(key, None)
            count = len(marks)
            for view in idle:
                del conversation.traces[view.trace_id]
        if (conversation.packed or conversation.idle) and not any(one.spans for one in conversation.traces.values()):
            conversation.traces.clear()
        return count

    def next_seals(self, key: bytes, conversation: Conversation) -> float:
        """The last moment at which the first session that is not sealed is not to be; for ever if none is packed."""
        if len(conversation.packed) == conversation.sealed:
            return inf
        return self._guard.seals_at(self._unpacked[key][conversation.sealed].session.end)

    def seal_next(self, key: bytes, conversation: Conversation) -> None:
        """Seal it. Its marks go: stage 2 refuses spans as old as it is."""
        index, unpacked = conversation.sealed, self._unpacked[key]
        session = unpacked[index].session
        unpacked[index] = Unpacked(session, frozenset())
        conversation.packed[index] = pack_session(session, (), self._words)
        conversation.sealed += 1

    def settles_next(self, sessions: Sequence[Session], views: Sequence[TraceView]) -> int:
        """When the first that is not packed will have settled; 0 if there is none."""
        ends = [one.end for one in sessions if one.packed is None][:1]
        working = {trace.trace_id for session in sessions for trace in session.traces}
        ends += [view.end for view in views if view.trace_id not in working]
        return min((self._guard.settled_at(end) for end in ends), default=0)

    def _idle_marks(self, key: bytes, conversation: Conversation) -> frozenset[bytes]:
        marks = self._idle.get(key)
        if marks is None:
            marks = self._idle[key] = unpack_marks(conversation.idle)
        return marks


def _trace_ids(one: Unpacked) -> tuple[bytes, ...]:
    assert one.session.summary is not None
    return one.session.summary.trace_ids


def _is_decided(verdict: Verdict) -> bool:
    """Whether time alone changes nothing any more."""
    return verdict.terminal and all(one.status is not Status.PENDING for one in verdict.criteria)
