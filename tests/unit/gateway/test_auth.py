from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.gateway.auth import BadTokens, bearer_tokens
from tests.unit.gateway.conftest import FakeBroker, Gateway

TOKEN = "a-token-of-twenty-char"
BODY = b'{"resourceSpans": [{}]}'


@pytest.fixture
def guarded(tmp_path: Path, broker: FakeBroker) -> Gateway:
    file = tmp_path / "tokens"
    file.write_text(f"# the shop's\nanother-token-entirely\n\n  {TOKEN}  \n")
    return Gateway(broker, authorize=bearer_tokens(file))


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", "Bearer another-token-entirely"])
def test_a_token_of_the_file_is_admitted(guarded: Gateway, header: str) -> None:
    assert guarded.post("/v1/traces", BODY, content_type="application/json", authorization=header)[0] == 200


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer # the shop's"],
)
def test_any_other_is_not_and_nothing_is_written(guarded: Gateway, broker: FakeBroker, header: str) -> None:
    for path in ("/v1/traces", "/v1/logs", "/v1/outcomes"):
        status, body, _ = guarded.post(path, BODY, content_type="application/json", authorization=header)
        assert status == 401
        assert TOKEN.encode() not in body
    assert broker.taken == []


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n", f"{TOKEN}\n123456789012345\n"], ids=ascii)
def test_a_file_that_guards_nothing_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)

    with pytest.raises(BadTokens, match=str(file)):
        bearer_tokens(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="none-here"):
        bearer_tokens(tmp_path / "none-here")
