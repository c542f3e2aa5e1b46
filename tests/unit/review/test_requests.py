"""The forms in which files hold export requests."""

from __future__ import annotations

import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]

from pipeline.review.requests import requests_in
from tests.unit.core.ingest_support import json_request, json_span, proto

ONE = proto({"gen_ai.operation.name": "chat"})
OTHER = proto({"gen_ai.operation.name": "chat", "session.id": "x" * 300})
JSON = json_request(json_span())


def test_one_request_is_itself():
    assert requests_in(ONE) == [ONE]
    assert requests_in(JSON) == [JSON]
    assert requests_in(b"\xef\xbb\xbf" + JSON) == [b"\xef\xbb\xbf" + JSON]


def test_a_pretty_printed_document_is_one():
    pretty = b'{\n  "resourceSpans": [\n  ]\n}\n'
    assert requests_in(pretty) == [pretty]
    bare = b"[\n{},\n{}\n]"
    assert requests_in(bare) == [bare]


def test_json_lines_are_several():
    assert requests_in(JSON + b"\n\n[]\r\n" + JSON + b"\n") == [JSON, b"[]", JSON]


@pytest.mark.parametrize("parts", [[ONE], [ONE, OTHER], [OTHER] * 3])
def test_requests_after_their_lengths_are_cut_apart(parts: list[bytes]):
    assert requests_in(b"".join(len(part).to_bytes(4, "big") + part for part in parts)) == parts
    assert requests_in(b"".join(_VarintBytes(len(part)) + part for part in parts)) == parts


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"plain text",
        len(ONE).to_bytes(4, "big") + ONE[:-1],
        len(ONE).to_bytes(4, "big") + ONE + b"\0",
        b"\0\0\0\0",
        b"\xff" * 12,
    ],
)
def test_what_is_of_no_such_form_is_left_to_who_reads_it(content: bytes):
    assert requests_in(content) == [content]
