"""Few bytes for plain values and ids, and the shelf that holds millions of them: what goes in comes out."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.packing import MOST_WORDS, Own, Words, pack, pack_id, unpack, unpack_id
from pipeline.core.shelf import PAGE, Shelf

TEXTS = st.text(max_size=20)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=60,
)
IDS = TEXTS | st.uuids().map(str) | st.from_regex(r"[a-z-]{0,9}[0-9a-f]{0,40}", fullmatch=True)


@given(PLAIN)
@settings(deadline=None)
def test_what_is_unpacked_equals_what_was_packed(value: Any) -> None:
    words = Words()
    data = pack(value, words)
    restored = Words()
    for key, state in words.dump():
        restored.load(key, state)
    found, end = unpack(data, restored)
    assert found == value
    assert end == len(data)
    assert words.dump() == []


def test_seconds_are_exact_to_the_last_bit() -> None:
    for seconds in (0.0, 251.5114, 1e-9, math.pi, 86_400.000000001, -1.5, 1e300, math.inf):
        assert unpack(pack(seconds, Words()), Words())[0] == seconds


def test_texts_that_differ_every_time_fill_no_memory() -> None:
    words = Words()
    for number in range(MOST_WORDS + 10):
        pack(f"name {number}", words)
    assert len(words.dump()) == MOST_WORDS
    assert unpack(pack("one more", words), words)[0] == "one more"
    pack(Own("order 7"), fresh := Words())
    assert fresh.dump() == []


@given(IDS)
@settings(deadline=None)
def test_an_id_comes_back_and_takes_no_more_than_its_text_and_two_bytes(text: str) -> None:
    assert unpack_id(pack_id(text)) == text
    assert len(pack_id(text)) <= len(text.encode()) + 2


def test_the_digits_of_an_id_take_half() -> None:
    assert len(pack_id("conv-" + "0123456789abcdef" * 2)) == 2 + 5 + 16
    assert len(pack_id("550e8400-e29b-41d4-a716-446655440000")) == 2 + 16


@given(st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=200) | st.none()), max_size=600))
@settings(deadline=None)
def test_a_shelf_is_a_map(changes: list[tuple[int, bytes | None]]) -> None:
    shelf, known = Shelf(), dict[bytes, bytes]()
    for number, value in changes:
        key = b"key" * (number % 50) + b"%d" % number
        if value is None:
            assert shelf.pop(key) == known.pop(key, None)
        else:
            shelf.put(key, value)
            known[key] = value
        assert shelf.get(key) == known.get(key)
    assert dict(shelf.items()) == dict(shelf.sweep(1.0)) == known
    assert len(shelf) == len(known)


def test_a_key_that_lies_within_a_value_is_not_found() -> None:
    shelf = Shelf()
    shelf.put(b"a", b"\x01b\x01c")
    assert b"b" not in shelf
    assert shelf.get(b"b") is None


def test_every_item_is_looked_at_once_in_a_sweep_of_many_parts() -> None:
    shelf = Shelf()
    items = {b"%d" % number: b"x" * 100 for number in range(2000)}
    for key, value in items.items():
        shelf.put(key, value)
    assert shelf.size > 20 * PAGE
    seen = [key for _ in range(24) for key, _ in shelf.sweep(1 / 24)]
    assert set(seen) == items.keys()
