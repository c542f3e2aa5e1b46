"""By which contracts a partition has judged: whatever others may judge is judged again, once.

The rule this file keeps: what is kept of it is part of the partition's state, so that a contract that came while nobody
ran is told from one that judged already. Settled sessions keep the contract that judged them, and stay settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pipeline.core.contracts.book import CompiledContract, ContractBook
from pipeline.core.judging.accept import SettledGuard
from pipeline.core.judging.state import Conversation

KEY = b"k"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


class JudgedBy:
    """The contracts that this partition knows, by name and content, and how long settling takes by them."""

    def __init__(self, book: ContractBook, guard: SettledGuard) -> None:
        self._book, self._guard = book, guard
        self._known: frozenset[str] = frozenset()
        self._dirty = False

    def load(self, key: bytes, state: bytes) -> bool:
        """Whether the restored key is ours."""
        if key != KEY:
            return self._guard.load(key, state)
        self._known = frozenset(_decode(state))
        return True

    def news(self, watermark: int) -> list[CompiledContract]:
        """The contracts in force that were not when it was asked last."""
        self._guard.adopt(watermark)
        found = [one for one in self._book if _mark(one) not in self._known]
        if found:
            self._known = frozenset(_mark(one) for one in self._book)
            self._dirty = True
        return found

    def changed(self) -> Iterator[tuple[bytes, bytes]]:
        if self._dirty:
            self._dirty = False
            yield KEY, _encode(sorted(self._known))
        yield from self._guard.changed()


def touched_by(
    contracts: Iterable[CompiledContract], conversations: Iterable[tuple[bytes, Conversation]], width: int
) -> Iterator[bytes]:
    """The conversations of which a session may be judged, or cut, by one of these contracts: it ended since they hold.

    Args:
        width: of a bucket, ns.
    """
    since = min((one.effective_from for one in contracts), default=None)
    if since is None:
        return
    for key, conversation in conversations:
        ends = [one.contribution.bucket + width for one in conversation.published if one.contribution is not None]
        if ends and max(ends) > since:
            yield key


def _mark(contract: CompiledContract) -> str:
    return f"{contract.name} {contract.digest}"
