"""Files that hold no OTLP: each is told by its name and in plain words, and the others are read all the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.review.inspect import inspect

GOLDEN = Path(__file__).parents[2] / "golden" / "langfuse-v3-langgraph"
PROTOBUF, JSON = (GOLDEN / f"traces.otlp.{kind}" for kind in ("pb", "json"))

FOREIGN = {
    "text": (b"hello world\n", "is plain text"),
    "text with letters": ("Grüße".encode() * 300, "is plain text"),
    "nothing": (b"", "is empty"),
    "blanks": (b" \n\n", "is empty"),
    "JSON of another shape": (b'{"a": 1, "b": [2]}', "neither resourceSpans nor resourceLogs, but a, b"),
    "lines of JSON of another shape": (b'{"level": "info"}\n{"level": "warn"}\n', "begins as JSON"),
    "a list": (b"[1, 2]", "is a JSON list"),
    "a text in JSON": (b'"resourceSpans"', "is plain text"),
    "metrics": (b'{"resourceMetrics": []}', "holds metrics, which trueup does not read"),
    "JSON that was cut": (JSON.read_bytes()[:300], "begins as JSON and cannot be read to its end"),
    "deep JSON": (b'{"a":' * 100_000, "begins as JSON and cannot be read to its end"),
    "protobuf that was cut": (PROTOBUF.read_bytes()[:300], "neither JSON nor a whole protobuf request"),
    "gzip": (gzip.compress(PROTOBUF.read_bytes()), "is packed with gzip; unpack it first"),
    "bytes": (bytes(range(256)), "neither JSON nor a whole protobuf request"),
}


@pytest.mark.parametrize(("content", "said"), FOREIGN.values(), ids=list(FOREIGN))
def test_what_holds_no_otlp_is_told_in_plain_words(content: bytes, said: str) -> None:
    (found,) = inspect([("file", content)]).files

    assert said in found.unreadable
    assert (found.spans, found.sessions) == (0, [])
    assert [loss.reason for loss in found.lost] == ["not_otlp"]


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"resourceSpans": []}', b'{"resourceLogs": []}'])
def test_a_request_without_anything_in_it_is_a_request(content: bytes) -> None:
    (found,) = inspect([("file", content)]).files
    assert (found.unreadable, found.lost) == ("", [])


def test_of_several_requests_in_a_file_a_broken_one_is_a_loss() -> None:
    (found,) = inspect([("file", b'{"resourceSpans": []}\n{"other": 1}\n')]).files
    assert (found.unreadable, [loss.reason for loss in found.lost]) == ("", ["not_otlp"])


def test_together_the_others_are_read() -> None:
    content = PROTOBUF.read_bytes()
    alone = inspect([("a", content)]).files[0]

    together, foreign = inspect([("notes", b"hello"), ("a", content)], together=True).files

    assert together == alone
    assert (foreign.file, foreign.unreadable[:13]) == ("notes", "is plain text")
