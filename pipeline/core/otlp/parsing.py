"""JSON as senders write it, to plain values.

The rule this file keeps: one value that is odd costs nothing beside it. No number passes through a double, and one that
Python makes no number of, as bytes that are no UTF-8, is kept as text for whoever reads that place.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

MAX_DIGITS = 2048  # of a number that is read as one; no 64-bit integer and no id is nearly as long


class Fraction(str):
    """A JSON number with a fraction or an exponent, or of endless digits, as written."""

    __slots__ = ()


_decode = msgspec.json.Decoder(float_hook=Fraction).decode


def parse(value: bytes) -> Any:
    """The document; bytes that are no UTF-8 become lone surrogates. Raises: ValueError, RecursionError."""
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):  # stricter than senders are: bad UTF-8, NaN
        text = value.decode("utf-8-sig", "surrogateescape")
        return json.loads(text, parse_int=_digits, parse_float=Fraction, parse_constant=Fraction)


def _digits(text: str) -> int | Fraction:
    """Python makes no number of more digits than it likes; one such must not cost all that is beside it."""
    return int(text) if len(text) <= MAX_DIGITS else Fraction(text)
