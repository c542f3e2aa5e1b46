"""`/api/forget`: what may be ordered by whom, and when an order is done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pipeline.serve.api import errors_as_json
from pipeline.serve.forgetting import Forgetting, Report, report_of
from pipeline.serve.guard import guard
from pipeline.sinks.erasing import Receipt
from pipeline.tokens import Tokens, load

ERASER, OF_ACME, READER = "eraser-of-everything", "eraser-of-acme-alone", "reader-of-everything"
FILE = "".join(
    f'[[token]]\ntoken = "{token}"\nscopes = ["{scope}"]\ntenant = "{tenant}"\n'
    for token, scope, tenant in ((ERASER, "forget", "*"), (OF_ACME, "forget", "acme"), (READER, "read", "*"))
)


class FakeForgets:
    """Keeps what was ordered."""

    def __init__(self) -> None:
        self.ordered: list[tuple[str, str, str]] = []

    async def forget_conversation(self, tenant: str, conversation: str) -> str:
        self.ordered.append((tenant, "conversation", conversation))
        return "c-1"

    async def forget_subject(self, tenant: str, subject: str) -> str:
        self.ordered.append((tenant, "subject", subject))
        return "s-1"

    async def report(self, order: str) -> Report:
        return Report(order, True, 1, {"judge": {"sessions": 2}})


@pytest.fixture
def forgets() -> FakeForgets:
    return FakeForgets()


def tokens(folder: Path) -> Tokens:
    file = folder / "tokens.toml"
    file.write_text(FILE)
    return load(file)


def asked(
    forgets: FakeForgets, body: Any, folder: Path | None = None, token: str = "", **more: Any
) -> tuple[int, dict[str, Any]]:
    """Status and answer of an order; None as body asks for a report."""

    async def ask() -> tuple[int, dict[str, Any]]:
        known = tokens(folder) if folder else None
        app = web.Application(middlewares=[errors_as_json, *([guard(known)] if known else [])])
        app.router.add_routes(Forgetting(forgets, known).routes())
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with TestClient(TestServer(app)) as client:
            if body is None:
                answer = await client.get("/api/forget/c-1", headers=headers)
            else:
                answer = await client.post("/api/forget", **({"json": body, "headers": headers} | more))
            return answer.status, await answer.json()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("body", "ordered"),
    [
        ({"conversation": "c/1"}, ("default", "conversation", "c/1")),
        ({"tenant": "t", "conversation": 17}, ("t", "conversation", "17")),
        ({"conversation": "trace:" + "AB" * 16}, ("default", "conversation", "trace:" + "ab" * 16)),
        ({"tenant": "t", "subject": " ada@example.org "}, ("t", "subject", "ada@example.org")),
    ],
)
def test_an_order_names_a_conversation_or_a_subject(
    forgets: FakeForgets, body: dict[str, Any], ordered: tuple[str, str, str]
) -> None:
    status, answer = asked(forgets, body)
    assert (status, answer) == (202, {"order": f"{ordered[1][0]}-1"})
    assert forgets.ordered == [ordered]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"conversation": "c", "subject": "s"}, 400),
        ({"conversation": ""}, 400),
        ({"conversation": None}, 400),
        ({"subject": ["a"]}, 400),
        ({"session": "c"}, 400),
        (["c"], 400),
        ({"tenant": "", "conversation": "c"}, 400),
    ],
)
def test_what_cannot_be_meant_erases_nothing(forgets: FakeForgets, body: Any, status: int) -> None:
    assert asked(forgets, body)[0] == status
    assert forgets.ordered == []


def test_only_json_is_taken_so_that_no_foreign_page_can_send_one(forgets: FakeForgets) -> None:
    status, _ = asked(forgets, {}, json=None, data=b'{"conversation": "c"}')
    assert (status, forgets.ordered) == (415, [])
    status, _ = asked(forgets, {}, json=None, data=b"{", headers={"Content-Type": "application/json"})
    assert (status, forgets.ordered) == (400, [])


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        (ERASER, {"tenant": "any", "conversation": "c"}, 202),
        (OF_ACME, {"tenant": "acme", "conversation": "c"}, 202),
        (OF_ACME, {"conversation": "c"}, 202),
        (OF_ACME, {"tenant": "other", "conversation": "c"}, 403),
        (READER, {"conversation": "c"}, 403),
        ("", {"conversation": "c"}, 401),
        (READER, None, 403),
        (OF_ACME, None, 200),
    ],
)
def test_it_takes_a_scope_of_its_own_and_the_tenant_of_the_token(
    forgets: FakeForgets, tmp_path: Path, token: str, body: Any, status: int
) -> None:
    assert asked(forgets, body, tmp_path, token)[0] == status
    assert len(forgets.ordered) == (status == 202)
    if token == OF_ACME and status == 202:
        assert forgets.ordered[0][0] == "acme"


def everywhere(alias: str, partitions: int) -> list[Receipt]:
    found = [Receipt("judge", 0, alias, "sessions", 2), Receipt("sink", 0, alias, "verdicts", 3)]
    for number in range(partitions):
        found += [Receipt("resolve", number, alias, "traces", number), Receipt("correlate", number, alias, "keys", 1)]
    return found


def test_an_order_is_done_when_every_stage_and_the_store_have_said_so() -> None:
    receipts = everywhere("erased:1", 2)
    report = report_of("c-1", receipts, 2)
    assert report.done
    assert report.found == {
        "correlate": {"keys": 2}, "judge": {"sessions": 2}, "resolve": {"traces": 1}, "sink": {"verdicts": 3},
    }  # fmt: skip
    assert not any(report_of("c-1", receipts[:n] + receipts[n + 1 :], 2).done for n in range(1, len(receipts)))
    assert not report_of("c-1", [], 2).done


def test_an_order_about_a_subject_is_done_when_every_partition_has_looked_for_it() -> None:
    looked = [Receipt("judge", number, "", "conversations", 0) for number in range(2)]
    assert report_of("s-1", looked, 2).done
    assert not report_of("s-1", looked[:1], 2).done
    assert not report_of("s-1", [*looked, Receipt("judge", 0, "erased:1", "sessions", 1)], 2).done
    assert report_of("s-1", [*looked, *everywhere("erased:1", 2), *everywhere("erased:2", 2)], 2).conversations == 2
