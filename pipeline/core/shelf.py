"""A map from bytes to bytes that holds millions of small items: what has settled and is seldom asked for.

The rule this file keeps: an item costs its own bytes and a few more (two lengths, its share of a page), in place of the
several objects and pointers that a dict would need. Pages are split one at a time (linear hashing), so that growing
never makes anybody wait. What is in it does not depend on the order in which it came, nor does any look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

PAGE, SMALL_PAGE = 4096, 1024
"""Bytes that a page holds on average: a look-up searches one page. The smaller one is for items below 100 bytes."""


def length(n: int) -> bytes:
    """A length of up to four bytes; the first says by its two high bits how many."""
    if n < 0x40:
        return bytes((n,))
    if n < 0x4000:
        return (n | 0x4000).to_bytes(2, "big")
    return (n | 0xC0000000).to_bytes(4, "big")


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """(length, where what it is the length of begins)."""
    first = data[at]
    if first < 0x40:
        return first, at + 1
    if first < 0x80:
        return int.from_bytes(data[at : at + 2], "big") & 0x3FFF, at + 2
    return int.from_bytes(data[at : at + 4], "big") & 0x3FFFFFFF, at + 4


class Shelf:
    """The map; `page` is the average size of its pages."""

    __slots__ = ("_level", "_n", "_page", "_pages", "_size", "_swept")

    def __init__(self, page: int = PAGE) -> None:
        self._page = page
        self._pages: list[bytes] = [b""]
        self._level = 1  # pages at the beginning of this round of splits
        self._n = self._size = 0
        self._swept = 0

    def __len__(self) -> int:
        return self._n

    @property
    def size(self) -> int:
        """Bytes of all items, lengths included."""
        return self._size

    def get(self, key: bytes) -> bytes | None:
        page = self._pages[self._page_of(key)]
        found = _find(page, key)
        return None if found is None else page[found[1] : found[2]]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and _find(self._pages[self._page_of(key)], key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        """Add or replace."""
        self.pop(key)
        item = length(len(key)) + key + length(len(value)) + value
        self._pages[self._page_of(key)] += item
        self._n += 1
        self._size += len(item)
        while self._size > self._page * len(self._pages):
            self._split()

    def pop(self, key: bytes) -> bytes | None:
        """Take out."""
        number = self._page_of(key)
        page = self._pages[number]
        found = _find(page, key)
        if found is None:
            return None
        start, begins, ends = found
        self._pages[number] = page[:start] + page[ends:]
        self._n -= 1
        self._size -= ends - start
        return page[begins:ends]

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All, in no order that means anything; while it runs nothing may change."""
        for page in self._pages:
            yield from _items(page)

    def sweep(self, share: float) -> Iterator[tuple[bytes, bytes]]:
        """The items of a share of the pages, those next that were looked at longest ago; all of them for 1."""
        for _ in range(min(len(self._pages), int(len(self._pages) * share) + 1)):
            self._swept = (self._swept + 1) % len(self._pages)
            yield from list(_items(self._pages[self._swept]))

    def _page_of(self, key: bytes) -> int:
        place = crc32(key)
        number = place & (2 * self._level - 1)
        return number if number < len(self._pages) else place & (self._level - 1)

    def _split(self) -> None:
        source = len(self._pages) - self._level
        items = list(_items(self._pages[source]))
        self._pages.append(b"")
        parts: dict[int, list[bytes]] = {source: [], len(self._pages) - 1: []}
        for key, value in items:
            parts[self._page_of(key)] += (length(len(key)), key, length(len(value)), value)
        for number, part in parts.items():
            self._pages[number] = b"".join(part)
        if len(self._pages) == 2 * self._level:
            self._level *= 2


def _items(page: bytes) -> Iterator[tuple[bytes, bytes]]:
    at, end = 0, len(page)
    while at < end:
        size, at = read_length(page, at)
        key = page[at : at + size]
        size, at = read_length(page, at + size)
        yield key, page[at : at + size]
        at += size


def _find(page: bytes, key: bytes) -> tuple[int, int, int] | None:
    """(where the item starts, where its value begins, where it ends)."""
    wanted = length(len(key)) + key
    if wanted not in page:  # most look-ups end here, at the speed of C
        return None
    at, end = 0, len(page)
    while at < end:
        start = at
        size, at = read_length(page, at)
        here = page.startswith(wanted, start)
        size, at = read_length(page, at + size)
        if here:
            return start, at, at + size
        at += size
    return None
