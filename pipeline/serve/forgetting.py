"""`/api/forget`: an erasure is ordered, and what it has found so far is told.

The rule this file keeps: an order is taken once it lies in Kafka, and is carried out from then on whatever happens to
this process; ordering the same again does no harm. A token's tenant is the only one whose sessions it may erase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from aiohttp import web

from pipeline.core.ids import normalise_id, trace_address
from pipeline.core.resolving.leads import pseudo
from pipeline.serve.asking import Refusal, json_body
from pipeline.sinks.erasing import Receipt
from pipeline.tokens import Scope, Tokens

PATH = "/api/forget"
DEFAULT_TENANT = "default"
FIELDS = ("tenant", "conversation", "subject")


class Report(msgspec.Struct, frozen=True):
    """What became of an order.

    Args:
        done: every stage and the store have erased what it is about.
        conversations: how many it is about, as far as is known.
        found: stage -> what -> how many.
    """

    order: str
    done: bool
    conversations: int
    found: dict[str, dict[str, int]]


class Forgets(Protocol):
    """What carries orders out."""

    async def forget_conversation(self, tenant: str, conversation: str) -> str:
        """Order it; returns the order's name."""

    async def forget_subject(self, tenant: str, subject: str) -> str:
        """Order it, by the subject as senders write it; returns the order's name."""

    async def report(self, order: str) -> Report: ...


def report_of(order: str, receipts: Iterable[Receipt], partitions: int) -> Report:
    """What the receipts say that have come so far.

    Args:
        order: begins with `s` where it is about a subject, which every partition of stage 4 looks for.
    """
    found: dict[str, Counter[str]] = {}
    heard: dict[str, set[tuple[str, int]]] = {}
    looked = set()
    for one in receipts:
        if not one.alias:
            looked.add(one.partition)
            continue
        found.setdefault(one.stage, Counter())[one.what] += one.n
        heard.setdefault(one.alias, set()).add((one.stage, one.partition))
    everywhere = {(stage, number) for stage in ("resolve", "correlate") for number in range(partitions)}
    done = all(places >= everywhere and ("sink", 0) in places for places in heard.values())
    begun = len(looked) == partitions if order.startswith("s") else bool(heard)
    return Report(order, begun and done, len(heard), {stage: dict(counts) for stage, counts in sorted(found.items())})


class Forgetting:
    """The handlers.

    Args:
        tokens: as `guard` has them, which lets nobody come here who may not; None: anybody may.
    """

    def __init__(self, forgets: Forgets, tokens: Tokens | None = None) -> None:
        self._forgets, self._tokens = forgets, tokens

    def routes(self) -> list[web.RouteDef]:
        return [web.post(PATH, self.order), web.get(PATH + "/{order}", self.report)]

    async def order(self, request: web.Request) -> web.Response:
        """A body of `tenant` (optional) and either `conversation` or `subject`, as JSON."""
        shown = request.headers.get("Authorization", "")
        of_token = self._tokens.admit(shown, Scope.FORGET).tenant if self._tokens is not None else None
        tenant, field, value = _asked(await _body(request), of_token)
        if field == "subject":
            order = await self._forgets.forget_subject(tenant, value)
        else:
            order = await self._forgets.forget_conversation(tenant, value)
        response = json_body({"order": order})
        response.set_status(202)
        return response

    async def report(self, request: web.Request) -> web.Response:
        return json_body(msgspec.to_builtins(await self._forgets.report(request.match_info["order"])))


async def _body(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":  # what a foreign page in a browser cannot send
        raise Refusal(415, "Content-Type must be application/json")
    try:
        body = msgspec.json.decode(await request.read())
    except msgspec.DecodeError as error:
        raise Refusal(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) or not body.keys() <= set(FIELDS):
        raise Refusal(400, "an object of tenant and either conversation or subject was expected", allowed=list(FIELDS))
    return body


def _asked(body: dict[str, Any], of_token: str | None) -> tuple[str, str, str]:
    """Tenant, which of the two it is, and its value."""
    tenant = normalise_id(body.get("tenant", of_token or DEFAULT_TENANT))
    if not tenant:
        raise Refusal(400, "tenant: says nothing (blank, null or no text)", parameter="tenant")
    if of_token is not None and tenant != of_token:
        raise Refusal(403, f"the token may erase sessions of the tenant {of_token} alone")
    given = [field for field in ("conversation", "subject") if field in body]
    if len(given) != 1:
        raise Refusal(400, "exactly one of conversation and subject is needed", allowed=list(FIELDS))
    value = normalise_id(body[given[0]])
    if not value:
        raise Refusal(400, f"{given[0]}: says nothing (blank, null or no text)", parameter=given[0])
    trace = trace_address(value)
    return tenant, given[0], pseudo(trace) if trace is not None and given[0] == "conversation" else value
