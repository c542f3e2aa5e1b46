"""Plain values as few bytes: texts that many items share are kept once, as numbered words.

The rule this file keeps: what is unpacked equals what was packed (a tuple comes back as a list). A word's number never
changes; when there are too many words, a new one is spelled out: texts that differ every time do not fill memory.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import msgspec

from pipeline.core.shelf import length, read_length
from pipeline.core.timeline import SECOND

WORD = b"w"
MOST_WORDS = 1 << 14

_float = struct.Struct(">d")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, ...] | str).decode

# The first byte says what follows: 0-127 itself; 128-191 and the next byte a word; 192-223 a list of 0 to 30.
_WORD, _LIST, _LONG_LIST = 0x80, 0xC0, 0xDF
_NONE, _FALSE, _TRUE, _FLOAT, _LONG_INT, _NEGATIVE, _TEXT, _BYTES, _SHAPE, _PAIRS, _INT = range(0xE0, 0xEB)
_NANOSECONDS = 0xFF
_LONGEST_SECONDS = 1 << 23
_INT_BYTES = 8
"""An int of up to so many bytes: `_INT` and one less than their number."""


class Own(str):
    """A text that is this item's alone: it is no word."""

    __slots__ = ()


class Words:
    """The words of a partition: texts, and shapes, which are the keys of dicts.

    Args:
        changed: numbers of words that are new since a checkpoint took them.
    """

    __slots__ = ("_numbers", "_words", "changed")

    def __init__(self) -> None:
        self._words: dict[int, str | tuple[str, ...]] = {}
        self._numbers: dict[str | tuple[str, ...], int] = {}
        self.changed: list[int] = []

    def number(self, word: str | tuple[str, ...]) -> int | None:
        """Its number; None where there is no room for another."""
        number = self._numbers.get(word)
        if number is None and len(self._words) < MOST_WORDS:
            number = self._numbers[word] = len(self._words)
            self._words[number] = word
            self.changed.append(number)
        return number

    def __getitem__(self, number: int) -> Any:
        return self._words[number]

    def dump(self) -> list[tuple[bytes, bytes]]:
        """The new ones, as state."""
        states = [(WORD + number.to_bytes(2, "big"), _encode(self._words[number])) for number in self.changed]
        self.changed = []
        return states

    def load(self, key: bytes, state: bytes) -> None:
        number, word = int.from_bytes(key[1:], "big"), _decode(state)
        self._words[number] = word
        self._numbers[word] = number


def pack(value: Any, words: Words) -> bytes:
    """None, bool, int, float, str, bytes, and lists, tuples and dicts (with text keys) of them."""
    out = bytearray()
    _write(value, words, out)
    return bytes(out)


def unpack(data: bytes, words: Words, at: int = 0) -> tuple[Any, int]:
    """(the value at that place, where the next one begins)."""
    tag = data[at]
    at += 1
    if tag < _WORD:
        return tag, at
    if tag < _LIST:
        return words[(tag & 0x3F) << 8 | data[at]], at + 1
    if tag <= _LONG_LIST:
        n = tag - _LIST
        if tag == _LONG_LIST:
            n, at = read_length(data, at)
        found = []
        for _ in range(n):
            one, at = unpack(data, words, at)
            found.append(one)
        return found, at
    return _read_tagged(tag, data, words, at)


def _read_tagged(tag: int, data: bytes, words: Words, at: int) -> tuple[Any, int]:
    if tag == _NANOSECONDS:
        n, at = unpack(data, words, at)
        return n / SECOND, at
    if tag >= _INT:
        end = at + tag - _INT + 1
        return int.from_bytes(data[at:end], "big"), end
    if tag <= _TRUE:
        return (None, False, True)[tag - _NONE], at
    if tag == _FLOAT:
        return _float.unpack_from(data, at)[0], at + 8
    if tag == _SHAPE:
        number = int.from_bytes(data[at : at + 2], "big")
        table, at = {}, at + 2
        for name in words[number]:
            table[name], at = unpack(data, words, at)
        return table, at
    n, at = read_length(data, at)
    if tag == _PAIRS:
        pairs = {}
        for _ in range(n):
            name, at = unpack(data, words, at)
            pairs[name], at = unpack(data, words, at)
        return pairs, at
    body = data[at : at + n]
    at += n
    if tag == _TEXT:
        return body.decode(), at
    if tag == _BYTES:
        return body, at
    number = int.from_bytes(body, "big")
    return (-number if tag == _NEGATIVE else number), at


def _write(value: Any, words: Words, out: bytearray) -> None:
    kind = type(value)
    if kind is int:
        _write_int(value, out)
    elif kind is str:
        number = words.number(value)
        if number is None:
            _write_body(_TEXT, value.encode(), out)
        else:
            out += (number | _WORD << 8).to_bytes(2, "big")
    elif kind is bool or value is None:
        out.append(_NONE if value is None else _TRUE if value else _FALSE)
    elif kind is list or kind is tuple:
        if len(value) < _LONG_LIST - _LIST:
            out.append(_LIST + len(value))
        else:
            out.append(_LONG_LIST)
            out += length(len(value))
        for one in value:
            _write(one, words, out)
    elif kind is dict:
        _write_dict(value, words, out)
    elif kind is float:
        _write_float(value, out)
    elif kind is bytes:
        _write_body(_BYTES, value, out)
    elif kind is Own:
        _write_body(_TEXT, value.encode(), out)
    elif isinstance(value, str):
        _write(str(value), words, out)  # the name of an enum
    else:
        raise TypeError(f"no plain value: {value!r}")


def _write_float(value: float, out: bytearray) -> None:
    """Most are seconds, made of whole nanoseconds."""
    n = int(value * SECOND + 0.5) if 0 <= value < _LONGEST_SECONDS else -1
    if n >= 0 and n / SECOND == value:
        out.append(_NANOSECONDS)
        _write_int(n, out)
    else:
        out.append(_FLOAT)
        out += _float.pack(value)


def _write_int(value: int, out: bytearray) -> None:
    if 0 <= value < _WORD:
        out.append(value)
        return
    size = (abs(value).bit_length() + 7) // 8
    body = abs(value).to_bytes(size, "big")
    if value >= 0 and size <= _INT_BYTES:
        out.append(_INT + size - 1)
        out += body
    else:
        _write_body(_LONG_INT if value >= 0 else _NEGATIVE, body, out)


def _write_dict(value: dict[str, Any], words: Words, out: bytearray) -> None:
    """By its shape; one whose values are all dicts has names of its own, which make too many shapes."""
    named = bool(value) and all(type(one) is dict for one in value.values())
    number = None if named else words.number(tuple(value))
    if number is None:
        out.append(_PAIRS)
        out += length(len(value))
        for name, one in value.items():
            _write(name, words, out)
            _write(one, words, out)
    else:
        out.append(_SHAPE)
        out += number.to_bytes(2, "big")
        for one in value.values():
            _write(one, words, out)


def _write_body(tag: int, body: bytes, out: bytearray) -> None:
    out.append(tag)
    out += length(len(body))
    out += body


# -- ids ---------------------------------------------------------------------------------------------------------------

_HEX = re.compile(r"(.*?)((?:[0-9a-f]{2}){4,})", re.DOTALL)
_UUID = re.compile(r"(.*?)([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.DOTALL)
_PLAIN, _HEXED, _UUIDED = range(3)
_LONGEST = 255


def pack_id(text: str) -> bytes:
    """An id as few bytes: most of them end in the digits of a number."""
    for kind, pattern in ((_UUIDED, _UUID), (_HEXED, _HEX)):
        match = pattern.fullmatch(text)
        if match and len(begins := match[1].encode()) <= _LONGEST:
            return bytes((kind, len(begins))) + begins + bytes.fromhex(match[2].replace("-", ""))
    return bytes((_PLAIN,)) + text.encode()


def unpack_id(data: bytes) -> str:
    if data[0] == _PLAIN:
        return data[1:].decode()
    at = 2 + data[1]
    digits = data[at:].hex()
    if data[0] == _UUIDED:
        digits = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return data[2:at].decode() + digits
