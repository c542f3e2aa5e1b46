"""The traces of a partition: those that may still move as objects, those that have settled as a few bytes each.

The rule this file keeps: of a settled trace its conversation, its start and where it leads are kept, for late spans and
for those that ask, until retention is over (RULES.md 48); one of which more is to be kept, such as who asked it, is the
exception and keeps all.
"""

from __future__ import annotations

from collections.abc import MutableMapping

import msgspec

from pipeline.core.packing import pack_id, unpack_id
from pipeline.core.resolving.leads import Way
from pipeline.core.resolving.state import TraceState
from pipeline.core.shelf import SMALL_PAGE
from pipeline.core.tiers import Tiers
from pipeline.core.timeline import HOUR
from schemas.outcome import TRACE_KEY

SIMPLE, FULL = b"\x01", b"\x02"
"""Before the state of a settled trace; the hour in which it leaves follows, in four bytes."""
TRACE_ID_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TraceState).decode


class Traces(Tiers[TraceState], MutableMapping[bytes, TraceState]):
    """By the key of their state, which ends in the trace id. Whoever gets a settled one may change it until `settle`.

    Args:
        retention: how long after its end a settled trace leaves, ns.
    """

    def __init__(self, retention: int) -> None:
        super().__init__((SIMPLE, FULL), SMALL_PAGE)
        self._retention = retention
        self._out: set[bytes] = set()

    def __setitem__(self, key: bytes, trace: TraceState) -> None:
        self.awake[key] = trace

    def __delitem__(self, key: bytes) -> None:
        if self.awake.pop(key, None) is None and self.resting.pop(key) is None:
            raise KeyError(key)

    def settle(self, key: bytes) -> None:
        """Pack it, if it has settled."""
        trace = self.awake.get(key)
        if trace is not None and trace.settled is not None:
            self.resting.put(key, self._pack(trace))
            del self.awake[key]
        self._out.discard(key)

    def settle_all(self) -> None:
        """Pack what was taken out to be looked at."""
        for key in list(self._out):
            self.settle(key)

    def due(self, watermark: int) -> list[bytes]:
        """Settled ones whose retention is over, as far as it was their turn to be looked at."""
        hour = watermark // HOUR
        return [key for key, state in self.turn(watermark) if int.from_bytes(state[1:5], "big") < hour]

    def load(self, key: bytes, state: bytes) -> TraceState | None:
        """Returns: the trace, if it may still move."""
        if self.lay(key, state):
            return None
        trace = self.awake[key] = _decode(state)
        return trace

    def state(self, key: bytes) -> bytes | None:
        """For a checkpoint; None if it is gone."""
        trace = self.awake.get(key)
        return self.resting.get(key) if trace is None else _encode(trace)

    def _wake(self, key: bytes) -> TraceState | None:
        state = self.resting.pop(key)
        if state is None:
            return None
        trace = self.awake[key] = self._unpack(key, state)
        self._out.add(key)
        return trace

    def _pack(self, trace: TraceState) -> bytes:
        hour = (-(-(trace.last_end + self._retention) // HOUR)).to_bytes(4, "big")
        simple = _simple(trace.tenant, trace.trace_id, trace.conversation, trace.told_start, trace.last_end)
        ids = [] if trace.conversation else trace.settled
        kept = msgspec.structs.replace(
            trace, stamp=0, first_end=0, waited=True, told=simple.told, settled=ids, used=False
        )
        if kept == simple:
            return SIMPLE + hour + trace.told_start.to_bytes(8, "big") + pack_id(trace.conversation)
        return FULL + hour + _encode(kept)

    def _unpack(self, key: bytes, state: bytes) -> TraceState:
        if state[:1] == FULL:
            return _decode(memoryview(state)[5:])
        tenant, trace_id = key[1 : -TRACE_ID_BYTES - 1].decode(), key[-TRACE_ID_BYTES:]
        last_end = int.from_bytes(state[1:5], "big") * HOUR - self._retention
        return _simple(tenant, trace_id, unpack_id(state[13:]), int.from_bytes(state[5:13], "big"), last_end)


def _simple(tenant: str, trace_id: bytes, conversation: str, start: int, last_end: int) -> TraceState:
    """A settled trace that went to its own conversation, states no key but itself, and was asked by nobody."""
    return TraceState(
        tenant,
        trace_id,
        {},
        conversation,
        waited=True,
        told=(start, conversation),
        keys=[(TRACE_KEY, trace_id.hex())],
        settled=[],
        last_end=last_end,
        way=Way(conversation, trace_id, 0, (start, trace_id)),
        told_start=start,
        lead=trace_id,
    )
