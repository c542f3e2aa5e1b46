"""Business keys as few bytes: those that traces state and no outcome is addressed to, which is nearly all of them.

The rule this file keeps: whoever asks for a key gets what was last told of it, packed or not. Whoever changes a state
touches it; a state to which outcomes are addressed changes at any time and stays an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

import msgspec

from pipeline.core.correlating.state import Kept, KeyState, Statement
from pipeline.core.packing import Words, pack_id, unpack_id
from pipeline.core.shelf import SMALL_PAGE, length, read_length
from pipeline.core.tiers import Tiers
from schemas.outcome import TRACE_KEY

FEW = 8
"""Statements of a key that is packed."""
OF_ITSELF, OF_OTHERS = b"\x01", b"\x02"
"""Before a packed state: of a trace that states its own id, which the key says; of some traces that state the key."""

_encode = msgspec.msgpack.Encoder().encode


class KeyStates(Tiers[KeyState], MutableMapping[bytes, KeyState]):
    """By the key of their state: `k`, the word for tenant and name, the value."""

    def __init__(self) -> None:
        super().__init__((OF_ITSELF, OF_OTHERS), SMALL_PAGE)
        self.words = Words()

    def key(self, tenant: str, name: str, value: str) -> bytes:
        number = self.words.number((tenant, name))
        if number is None:
            return b"k\xff\xff" + "\0".join((tenant, name, value)).encode()
        return b"k" + number.to_bytes(2, "big") + pack_id(value)

    def __setitem__(self, key: bytes, state: KeyState) -> None:
        packed = self._pack(key, state)
        if packed is None:
            self.resting.pop(key)
            self.awake[key] = state
        else:
            self.awake.pop(key, None)
            self.resting.put(key, packed)

    def __delitem__(self, key: bytes) -> None:
        if self.awake.pop(key, None) is None and self.resting.pop(key) is None:
            raise KeyError(key)

    def encoded(self, key: bytes) -> bytes:
        """For a checkpoint."""
        return self.resting.get(key) or _encode(self.awake[key])

    def look(self, watermark: int) -> Iterator[tuple[bytes, KeyState]]:
        """The packed ones whose turn it is; they stay packed."""
        for key, packed in self.turn(watermark):
            yield key, self._unpack(key, packed)

    def _wake(self, key: bytes) -> KeyState | None:
        """It stays packed until it is touched."""
        packed = self.resting.get(key)
        return None if packed is None else self._unpack(key, packed)

    def _pack(self, key: bytes, state: KeyState) -> bytes | None:
        statements = state.statements
        if state.outcomes or not 0 < len(statements) <= FEW or key[1:3] == b"\xff\xff":
            return None
        if state.name == TRACE_KEY and [one.hex() for one in statements] == [state.value]:
            (one,) = statements.values()
            return OF_ITSELF + _moment(one) + pack_id(one.conversation)
        names = sorted({one.conversation for one in statements.values()})
        parts = [OF_OTHERS, bytes((len(names),))]
        for name in names:
            packed = pack_id(name)
            parts += (length(len(packed)), packed)
        for trace_id, one in statements.items():
            parts += (length(len(trace_id)), trace_id, bytes((names.index(one.conversation),)), _moment(one))
        return b"".join(parts)

    def _unpack(self, key: bytes, packed: bytes) -> KeyState:
        tenant, name = self.words[int.from_bytes(key[1:3], "big")]
        value = unpack_id(key[3:])
        if packed[:1] == OF_ITSELF:
            stamp, start, at = _read_moment(packed, 1)
            one = Statement(stamp, start, unpack_id(packed[at:]))
            return KeyState(tenant, name, value, {bytes.fromhex(value): one}, {})
        names, at = [], 2
        for _ in range(packed[1]):
            size, at = read_length(packed, at)
            names.append(unpack_id(packed[at : at + size]))
            at += size
        statements = {}
        while at < len(packed):
            size, at = read_length(packed, at)
            trace_id, place = packed[at : at + size], packed[at + size]
            stamp, start, at = _read_moment(packed, at + size + 1)
            statements[trace_id] = Statement(stamp, start, names[place])
        return KeyState(tenant, name, value, statements, {})


class KeptKeys(Kept[KeyState]):
    """The keys of a partition, most of them packed."""

    __slots__ = ("packed",)

    def __init__(self, prefix: bytes, expires: Callable[[KeyState], int | None], retention: int) -> None:
        super().__init__(prefix, KeyState, expires, retention)
        self.packed = KeyStates()
        self.states = self.packed

    def key(self, *parts: str) -> bytes:
        tenant, name, value = parts
        return self.packed.key(tenant, name, value)

    def take_over(self, key: bytes, encoded: bytes) -> None:
        """Load a key, packed or not."""
        if not self.packed.lay(key, encoded):
            self.load(key, encoded)

    def due(self, watermark: int) -> Iterator[tuple[bytes, KeyState]]:
        yield from super().due(watermark)
        for key, state in list(self.packed.look(watermark)):
            last = self._expires(state)
            if last is not None and last + self._retention < watermark:
                yield key, state

    def changed(self) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        states, gone = super().changed()
        return [*states, *self.packed.words.dump()], gone

    def _encoded(self, key: bytes) -> bytes:
        return self.packed.encoded(key)

    def _arm(self, key: bytes, state: KeyState, now: int) -> None:
        if key in self.packed.awake:
            super()._arm(key, state, now)


def _moment(one: Statement) -> bytes:
    stamp = one.stamp.to_bytes((one.stamp.bit_length() + 7) // 8, "big")
    return one.start.to_bytes(8, "big") + bytes((len(stamp),)) + stamp


def _read_moment(data: bytes, at: int) -> tuple[int, int, int]:
    """(stamp, start, where it ends)."""
    end = at + 9 + data[at + 8]
    return int.from_bytes(data[at + 9 : end], "big"), int.from_bytes(data[at : at + 8], "big"), end
