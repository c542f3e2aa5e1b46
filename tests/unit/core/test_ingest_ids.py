"""Ids made comparable."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import conversation_id, normalise_id, trace_address


@pytest.mark.parametrize("one", [123, 123.0, "123", " 123\n"])
def test_rule_04_numeric_and_text_ids_are_one(one: object):
    assert normalise_id(one) == "123"


@pytest.mark.parametrize(
    "missing", [None, "", "  ", "null", "None", "undefined", True, False, float("nan"), float("inf"), ["a"], {"a": 1}]
)
def test_rule_04_an_id_that_says_nothing_is_missing(missing: object):
    assert normalise_id(missing) == ""


@pytest.mark.parametrize(("given_id", "text"), [("Null", "Null"), ("AbC", "AbC"), (1.5, "1.5"), (0, "0"), (-7, "-7")])
def test_rule_04_case_counts_and_numbers_keep_their_value(given_id: object, text: str):
    assert normalise_id(given_id) == text


def test_rule_04_a_long_id_keeps_its_beginning_in_whole_characters_and_a_digest():
    text = "x" * 199 + "é" * 100
    assert normalise_id(text) == "x" * 199 + "~" + sha256(text.encode()).hexdigest()[:16]
    assert normalise_id("x" * 256) == "x" * 256
    assert normalise_id("é" * 128) == "é" * 128
    assert normalise_id("x" * 257) != normalise_id("x" * 256 + "y")


@given(st.text(max_size=400))
def test_normalising_twice_changes_nothing(text: str):
    once = normalise_id(text)
    assert normalise_id(once) == once
    assert len(once.encode()) <= 256


def test_rule_04_our_own_name_for_a_trace_is_no_conversation_id():
    name = "trace:" + "0aB1" * 8
    assert conversation_id(name) == ""
    assert trace_address(name) == bytes.fromhex("0ab1" * 8)
    assert conversation_id("trace:42") == "trace:42"
    assert trace_address("trace:42") is None
