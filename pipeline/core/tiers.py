"""A map of two tiers: what is in use as objects, what is at rest as bytes on a shelf.

The rule this file keeps: to whoever looks something up it is the same in which of the two it is. What rests is looked
at once in a day of event time, a share of it at a time, so that what is over leaves without anybody waiting.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

from pipeline.core.shelf import PAGE, Shelf
from pipeline.core.timeline import HOUR

HOURS_OF_A_SWEEP = 24
"""In so many hours of event time everything at rest is looked at once."""

State = TypeVar("State")
Other = TypeVar("Other")


class Tiers(Mapping[bytes, State]):
    """The map.

    Args:
        marks: the first byte of states at rest, and of no others.
        page: the average size of the shelf's pages.
    """

    def __init__(self, marks: tuple[bytes, ...], page: int = PAGE) -> None:
        self._marks = marks
        self.awake: dict[bytes, State] = {}
        self.resting = Shelf(page)
        self._swept_at = 0

    @abstractmethod
    def _wake(self, key: bytes) -> State | None:
        """What rests, as an object; None if nothing does."""

    def find(self, key: bytes) -> State | None:
        """As an object."""
        state = self.awake.get(key)
        return self._wake(key) if state is None else state

    @overload
    def get(self, key: bytes, default: None = None, /) -> State | None: ...
    @overload
    def get(self, key: bytes, default: State | Other, /) -> State | Other: ...
    def get(self, key: bytes, default: State | Other | None = None, /) -> State | Other | None:
        state = self.find(key)
        return default if state is None else state

    def __getitem__(self, key: bytes) -> State:
        state = self.find(key)
        if state is None:
            raise KeyError(key)
        return state

    def __contains__(self, key: object) -> bool:
        return key in self.awake or key in self.resting

    def __len__(self) -> int:
        return len(self.awake) + len(self.resting)

    def __iter__(self) -> Iterator[bytes]:
        yield from list(self.awake)
        yield from [key for key, _ in self.resting.items()]

    def lay(self, key: bytes, state: bytes) -> bool:
        """Take over from a checkpoint what rests; whether it does."""
        if state[:1] not in self._marks:
            return False
        self.resting.put(key, state)
        return True

    def turn(self, watermark: int) -> Iterator[tuple[bytes, bytes]]:
        """Those at rest whose turn it is to be looked at, an hour's share for each hour that went by."""
        hour = watermark // HOUR
        share = min(1.0, (hour - self._swept_at) / HOURS_OF_A_SWEEP)
        if share <= 0:
            return iter(())
        self._swept_at = hour
        return self.resting.sweep(share)
