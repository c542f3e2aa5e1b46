"""What no sender should send: any JSON where something else belongs, and requests of which bytes were changed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("\ud800\udfff\0 1"), max_size=8)
"""Halves of surrogate pairs among it, as JSON may hold them."""
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
documents = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def mutated(payloads: Sequence[bytes], how: str, chance: Random) -> bytes:
    """One of the payloads with some of its bytes changed: `flip`, `cut`, `insert` or `swap`."""
    value = bytearray(chance.choice(payloads))
    for _ in range(chance.randint(1, 20)):
        at = chance.randrange(len(value))
        if how == "flip":
            value[at] = chance.randrange(256)
        elif how == "cut":
            del value[at : at + chance.randint(1, 3)]
        elif how == "insert":
            value[at:at] = chance.randbytes(chance.randint(1, 3))
        else:
            other = chance.randrange(len(value))
            value[at], value[other] = value[other], value[at]
    return bytes(value)
